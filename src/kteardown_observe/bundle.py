"""Joins the modules of the collector to one program, which needs only Python 3.6 or later.

A person should be able to read the program before running it as root: the text of the modules stays
as it is, each docstring of a module as comments.
"""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "collector"
PACKAGE = "kteardown_observe.collector"
PINS = Path(__file__).parent / "programs" / "pins.py"
"""The program for drgn: what keeps removed memory cgroups."""
MODULES = (
    "files",
    "tally",
    "limits",
    "cgroup_totals",
    "machine",
    "memory",
    "system",
    "processes",
    "locks",
    "status",
    "cgroup_folders",
    "network",
    "namespaces",
    "mounts",
    "descriptors",
    "maps",
    "calibration",
    "tracing",
    "rates",
    "main",
)
"""In the order in which the program has them: a module uses only those before it."""
HEADER = '''#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Counts what a Linux machine has many of. It only reads, and needs only Python 3.6 or later.

    python3 observe.py > counts.json         (as root it sees more)
    ssh HOST 'python3 -' < observe.py > counts.json
    python3 observe.py --help

It reads /proc and /sys for about 2 seconds of CPU time (--cpu-limit), and at most 12 seconds in
all, and prints one JSON object, format 1. It writes no file, sends nothing anywhere, and asks the
kernel for its network devices and routes by a netlink socket. The output says what is missing.

The comments say what each part reads, and which locks of the kernel that takes. A busy machine can
feel these: a part of /proc/locks stops all taking of file locks for a moment, mountinfo delays
mounts, a list of network devices holds rtnl. kteardown observe counts.json says what the counts
mean. Made by kteardown observe --collector.
"""
'''


def program() -> str:
    """Return the text of the program."""
    texts = [(name, (FOLDER / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    plain: set[str] = set()
    names: dict[str, set[str]] = {}
    parts = []
    for name, text in texts:
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.Import):
                plain |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not _is_own(node):
                names.setdefault(node.module, set()).update(alias.name for alias in node.names)
        parts.append(_part(name, text, tree))
    imports = [f"import {name}" for name in sorted(plain)]
    imports += [_import(name, names[name]) for name in sorted(names)]
    end = 'if __name__ == "__main__":\n    sys.exit(main())\n'
    return "\n".join([HEADER, *imports, "", "", *parts, end])


def _import(module: str, names: set[str]) -> str:
    wrapped = textwrap.fill(", ".join(sorted(names)), 90, initial_indent=" " * 4)
    inner = wrapped.replace("\n", "\n    ")
    return (
        f"from {module} import (\n{inner},\n)"
        if len(names) > 3
        else (f"from {module} import {', '.join(sorted(names))}")
    )


def _is_own(node: ast.ImportFrom) -> bool:
    return bool(node.module and node.module.startswith(PACKAGE))


def _part(name: str, text: str, tree: ast.Module) -> str:
    """Return a module without its imports, and with its docstring as comments."""
    lines = text.splitlines()
    comment = [f"# {'-' * 20} {name} {'-' * (76 - len(name))}", "#"]
    comment += [f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines()]
    removed = set(_lines_of_imports(tree)) | set(_lines_of(tree.body[0]))
    kept = [line for number, line in enumerate(lines, 1) if number not in removed]
    return "\n".join([*comment, "", *"\n".join(kept).strip("\n").split("\n"), "", ""])


def _lines_of_imports(tree: ast.Module) -> Iterator[int]:
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _lines_of(node)


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
