"""Runs the steps of lint and the tests that a change can affect.

    changed_tests.py [COMMIT]      of all that differs from COMMIT, new files included; by default
                                   from HEAD, or, if nothing differs, from the commit before

A step of lint runs if a file that it reads has changed (``LINT``).

A test can be affected by the modules that it imports, directly or not, and by files of which it, or
what it imports of the tests, names the folder or the file. A test that runs commands of kteardown
imports all of it. Tests with guests are affected by what decides how a guest runs (``GUESTS``), and
by a single workload or series only if they name it, as ``full_run.affected`` says. After a change
of a module run those that are about it (``ABOUT``), not all that use it: `make test` does. What
everything depends on (``ALL``) affects all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import grimp

from contents import is_text, listed
from full_run import affected, unit_of

ROOT = Path(__file__).parents[1]
LINT = {
    "ruff": r"\.py$",
    "mypy": r"\.py$",
    "layers": r"^src/.*\.py$",
    "sizes": r"\.(py|[ch])$",
    "doors": r"^(src|scripts)/.*\.py$",
    "texts": r"^series/",
    "agent": r"^agent/",
    "plugins": r"^(plugins|agent)/",
    "coverage": r"^(agent|coverage|kernels|scripts|series|src|workloads)/",
}
"""The steps of lint, and what matches the files that each reads."""
ALL = ("pyproject.toml", "Makefile", "scripts/setup", "tests/__init__.py", ".ci/run")
PYTEST = (sys.executable, "-P", "-m", "pytest")
GUESTS = ("agent", "experiments", "kernels", "plugins", "series", "workloads")
"""Folders that decide how a guest runs."""
ABOUT = {
    "coverage": ("coverage", "try"),
    "hunt": ("hunt",),
    "inputs": ("run",),
    "kernels": ("kernels", "escape", "after_a_hostile_build"),
    "model": ("clock_of_guests", "run"),
    "patches": ("try",),
    "pipeline": ("run",),
    "run": ("repeat", "run", "try"),
    "rundir": ("run",),
    "sandbox": ("escape", "after_a_hostile_build"),
    "script": ("script", "script_agent", "script_port"),
    "seccomp": ("escape", "after_a_hostile_build"),
    "limits": ("escape", "after_a_hostile_build"),
    "metal": ("bundle",),
    "vm": ("clock_of_guests", "machines", "repeat"),
}
"""By package or module: the files of tests/vm that are about it. Each guest of the others uses it,
too."""
_COMMAND = re.compile(
    r"""\bkteardown\.cli\b|["']kteardown["']|\bkteardown (?:run|try|compare|plan)\b"""
)


def is_finding(name: str) -> bool:
    """Whether a file is of our own findings, and no page: the tool does not read it."""
    return name.startswith("findings/") and not name.endswith(".md")


def changed(root: Path, since: str | None) -> list[str]:
    """The files that differ from the commit ``since``, as paths below ``root``."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
        return [name for name in done.stdout.split("\0") if name]

    new = git("ls-files", "-o", "--exclude-standard", "-z")
    names = [*git("diff", "--name-only", "-z", since or "HEAD"), *new]
    return names or ([] if since else git("diff", "--name-only", "-z", "HEAD~1"))


def lint_steps(names: Iterable[str]) -> list[str]:
    """The steps of lint that a change of the files ``names`` can affect."""
    names = [name for name in names if not is_finding(name)]
    if any(name in (*ALL, "requirements-dev.txt") for name in names):
        return list(LINT)
    return [step for step, read in LINT.items() if any(re.search(read, name) for name in names)]


def affected_tests(root: Path, names: Iterable[str]) -> list[str]:
    """The test files that a change of the files ``names`` can affect."""
    names = sorted(name for name in names if not is_finding(name))
    everything = [name for name in listed(root, ["tests"]) if Path(name).name.startswith("test_")]
    unit = [name for name in everything if name.startswith("tests/unit/")]
    guests = [name for name in everything if name.startswith(("tests/vm/", "tests/kvm/test_ends"))]
    if any(name in ALL or Path(name).name == "conftest.py" for name in names):
        return unit + guests
    chosen = _by_imports(root, names, unit) | {name for name in names if name in unit}
    # Not a text: nothing of a cover letter is built or run.
    decide = [name for name in names if name.partition("/")[0] in GUESTS and not is_text(name)]
    units = dict.fromkeys(map(unit_of, decide))
    return sorted(chosen | affected(root, list(units), guests) | _with_guests(root, names, guests))


def _with_guests(root: Path, names: Iterable[str], guests: Collection[str]) -> set[str]:
    """Those of ``guests`` that are about a module of ``names``, or use a file of tests that is
    among them."""
    concerned = set()
    for path in map(Path, names):
        if path.parts[0] == "src":
            # An optional package is known by its own name.
            name = (
                path.parts[2] if path.parts[1] == "kteardown" else path.parts[1].partition("_")[2]
            )
            about = ABOUT.get(Path(name).stem, ())
            concerned |= {f"tests/vm/test_{name}.py" for name in about}
        elif path.parts[:2] in (("tests", "vm"), ("tests", "kvm")):
            # What is no module is run in guests.
            word = re.compile(rf"\b{path.stem}\b" if path.suffix == ".py" else "")
            concerned |= {
                name
                for name in guests
                if name == str(path) or word.search((root / name).read_text())
            }
    return concerned & set(guests)


def _packages(root: Path) -> list[str]:
    return [path.parent.name for path in sorted(root.glob("src/kteardown*/__init__.py"))]


def _by_imports(root: Path, names: Iterable[str], tests: Iterable[str]) -> set[str]:
    """Those of ``tests`` that import what a file of ``names`` has, or that name the file or its
    folder."""
    sys.path[:0] = [str(root / "tests"), str(root / "src")]
    graph = grimp.build_graph(*_packages(root), "unit", cache_dir=None)
    modules = {_module(name) for name in names if name.endswith(".py")}
    others = [Path(name) for name in names if not name.startswith(("src/", "tests/unit/"))]
    words = {rf"[\"'/]{re.escape(path.parts[0])}[\"'/]" for path in others}
    words |= {rf"\b{re.escape(path.name)}\b" for path in others}
    words |= {rf"\b{path.stem}\b" for path in others if path.parts[0] in (*GUESTS, "scripts")}
    mention = re.compile("|".join(words)) if words else None
    importing = set()
    for test in tests:
        module = _module(test)
        needed = {module, *graph.find_upstream_modules(module)}
        unit_modules = [name.replace(".", "/") for name in needed if name.startswith("unit")]
        files = [root / "tests" / f"{name}.py" for name in unit_modules]
        text = "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
        if _COMMAND.search(text):
            needed |= {name for name in modules if name.startswith("kteardown")}
        if needed & modules or (mention and mention.search(text)):
            importing.add(test)
    return importing


def _module(name: str) -> str:
    parts = Path(name).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] in ("src", "tests") else parts).removesuffix(".__init__")


def main(arguments: list[str]) -> int:
    """Run lint and then the tests, and return the exit status."""
    names = changed(ROOT, arguments[0] if arguments else None)
    steps = " ".join(lint_steps(names))
    print(f"lint: {steps or 'no step reads what changed'}", flush=True)
    if steps:
        lint = subprocess.run(["make", "lint", f"LINT={steps}"], cwd=ROOT, check=False)
        if lint.returncode:
            return lint.returncode
    tests = affected_tests(ROOT, names)
    guests = [name for name in tests if not name.startswith("tests/unit/")]
    unit = sorted(set(tests) - set(guests))
    summary = (
        f"{len(names)} files changed: {len(unit)} files of unit tests, {len(guests)} with guests"
    )
    print(summary, flush=True)
    status = 0
    for group, dist in ((unit, "worksteal"), (guests, "loadfile")):
        command = [*PYTEST, "-n", "2", "--dist", dist, "-m", "not full", *group]
        # Status 5: no test is left without those that are only for `make test-all`.
        if group and (code := subprocess.run(command, cwd=ROOT, check=False).returncode) not in (
            0,
            5,
        ):
            status = code
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
