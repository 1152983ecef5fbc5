"""The collector as one program: Python 3.6, standard library, readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kteardown_observe import bundle

MEMBERS_OF_LATER_VERSIONS = ("os.eventfd",)
"""Used only where hasattr() finds them."""
PROGRAM = bundle.program()
TREE = ast.parse(PROGRAM, feature_version=(3, 6))


def modules() -> dict[str, ast.Module]:
    """Return the trees of all modules of the collector, by name."""
    files = [path for path in bundle.FOLDER.glob("*.py") if path.stem != "__init__"]
    return {path.stem: ast.parse(path.read_text()) for path in files}


def names_of(tree: ast.Module) -> list[str]:
    """Return the names that a module defines at its top."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in ast.walk(target)]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return names


def test_every_module_is_in_it() -> None:
    assert set(bundle.MODULES) == set(modules())


def test_no_two_modules_define_a_name() -> None:
    numbers = Counter(name for tree in modules().values() for name in names_of(tree))
    assert [name for name, number in numbers.items() if number > 1] == []


def test_no_module_hides_what_another_imports() -> None:
    imported = set()
    for node in TREE.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {alias.name for alias in node.names}
    assert not imported & set(names_of(TREE))


def test_a_module_uses_only_those_before_it() -> None:
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(bundle.PACKAGE):
                used = (node.module or "").rpartition(".")[2]
                assert bundle.MODULES.index(used) < bundle.MODULES.index(name)
                assert all(alias.asname is None for alias in node.names)


def test_it_imports_only_the_standard_library() -> None:
    for node in ast.walk(TREE):
        if isinstance(node, ast.Import):
            assert all(alias.name in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module in sys.stdlib_module_names and not node.level


def test_it_needs_python_3_6(tmp_path: Path) -> None:
    (tmp_path / "observe.py").write_text(PROGRAM)
    excluded = [word for name in MEMBERS_OF_LATER_VERSIONS for word in ("--exclude", name)]
    words = ["-t=3.6-", "--eval-annotations", "--no-tips", "--violations", *excluded]
    vermin = Path(sys.executable).parent / "vermin"
    done = subprocess.run(
        [vermin, *words, tmp_path / "observe.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_what_is_newer_is_guarded() -> None:
    for name in MEMBERS_OF_LATER_VERSIONS:
        member = name.rpartition(".")[2]
        assert f'"{member}")' in PROGRAM, f"no hasattr() for {name}"


def test_a_person_can_read_it() -> None:
    assert max(map(len, PROGRAM.splitlines())) <= 100
    assert PROGRAM.startswith("#!/usr/bin/env python3\n# SPDX-License-Identifier: GPL-2.0-only\n")
    assert PROGRAM.isascii()
    for name in bundle.MODULES:
        assert f"# -------------------- {name} --" in PROGRAM
    for name, tree in modules().items():
        docstring = ast.get_docstring(tree) or ""
        for line in docstring.splitlines():
            assert f"# {line}".rstrip() in PROGRAM, name


@pytest.mark.parametrize(
    "name", ["unlink", "remove", "rename", "mkdir", "rmdir", "chmod", "chown", "system", "mount"]
)
def test_it_changes_nothing_but_its_instance_of_tracefs(name: str) -> None:
    forbidden = {name, "O_WRONLY", "O_RDWR", "O_CREAT"}
    for module, tree in modules().items():
        if module != "tracing":
            called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not called & forbidden, module


def test_it_imports_nothing_that_talks_to_other_machines() -> None:
    families = [
        node.attr
        for node in ast.walk(TREE)
        if isinstance(node, ast.Attribute) and node.attr.startswith("AF_")
    ]
    assert families == ["AF_NETLINK"]
    modules_used = {
        alias.name for node in TREE.body if isinstance(node, ast.Import) for alias in node.names
    }
    assert not modules_used & {"subprocess", "urllib", "http", "shutil", "tempfile", "pickle"}


def test_each_docstring_of_a_reading_says_its_locks() -> None:
    for name, tree in modules().items():
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        if any(function.startswith("read_") for function in functions):
            docstring = ast.get_docstring(tree) or ""
            assert "Locks" in docstring and "none yet" not in docstring, name
