"""Each file of unit tests is about one module, and has its name and its place.

The tests of ``src/kteardown/run/create.py`` are in ``tests/unit/run/test_create.py``, those of an
optional package in the folder of its name, those of ``scripts`` in ``tests/unit/scripts``. What is
too long for one file has the subject after the name of the module: ``test_git_tree.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
OF_NO_MODULE = {
    "agent/test_agent_program.py": "the agent is in C",
    "analysis/test_validation.py": "all statistics, on simulated experiments",
    "cli/test_both_clocks.py": "every verb on a run on both clocks",
    "cli/test_damaged_runs.py": "every verb on a damaged run",
    "cli/test_exit_codes.py": "what no verb expects",
    "cli/test_first_hour.py": "errors of the command line, wherever they are found",
    "cli/test_foreign_links.py": "every verb on a run with links of a stranger",
    "cli/test_hostile_run.py": "every verb on a run with names of a stranger",
    "cli/test_main.py": "the command line as a whole",
    "hunt/test_controls.py": "the whole of a hunt, on simulated curves",
    "judge/test_agreement.py": "every way of saying what a result means",
    "judge/test_recorded_runs.py": "runs of earlier versions, from their records to the answer",
    "kernels/test_hostile_patches.py": "everything that applies a patch",
    "observe/test_pins.py": "a program for drgn, which is no module of the package",
    "observe/test_kinds.py": "two tables: of problems, and of kinds of the hunt",
    "report/test_extreme_numbers.py": "every format",
    "report/test_hostile_texts.py": "every format",
    "report/test_names_and_units.py": "every format",
    "report/test_unconfirmed.py": "every format, and what a command ends with",
    "run/test_survival.py": "a kteardown that is killed",
    "test_class_names.py": "the names of all modules",
    "test_docs.py": "the documentation",
    "test_expressions.py": "the regular expressions of all modules",
    "test_mirror.py": "the tests",
}
"""Files of tests that are about no single module, each with what it is about."""
FILES = sorted(str(path.relative_to(UNIT)) for path in UNIT.rglob("test_*.py"))


def module_of(name: str) -> Path | None:
    """Return the module that a file of tests is about, by its name: the longest that fits."""
    path = Path(name)
    top, below = (path.parts[0], path.parts[1:-1]) if len(path.parts) > 1 else ("", ())
    folders = [ROOT / "src" / f"kteardown_{top}", ROOT / "src" / "kteardown" / top]
    folder = ROOT / "scripts" if top == "scripts" else next(filter(Path.is_dir, folders), None)
    words = path.stem.split("_")[1:]
    for end in range(len(words), 0, -1) if folder else ():
        module = Path(folder or "", *below, "_".join(words[:end]))
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if file.is_file():
                return file
    return None


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_tests_mirrors_a_module_or_has_a_reason(name: str) -> None:
    assert (module_of(name) is None) == (name in OF_NO_MODULE)


def test_every_exception_is_a_file() -> None:
    assert set(OF_NO_MODULE) <= set(FILES)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("run/test_create.py", "src/kteardown/run/create.py"),
        ("test_door.py", "src/kteardown/door.py"),
        ("kernels/test_git_tree.py", "src/kteardown/kernels/git.py"),
        ("kernels/test_source_name_of_git.py", "src/kteardown/kernels/source_name.py"),
        ("hunt/test_finds.py", "src/kteardown_hunt/finds.py"),
        ("history/sql/test_database.py", "src/kteardown_history/sql/database.py"),
        ("scripts/test_check_sizes.py", "scripts/check_sizes.py"),
        ("run/test_creation.py", None),
        ("nothing/test_create.py", None),
    ],
)
def test_the_module_is_found_by_the_name(name: str, module: str | None) -> None:
    assert module_of(name) == (ROOT / module if module else None)
