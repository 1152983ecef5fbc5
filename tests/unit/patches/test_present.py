"""Which hunks of a series a source has already. The sources are small C files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.kernels import apply_patches
from kteardown.patches.present import Present, present_hunks

BASE = """\
static bool refrigerator(bool check)
{
	bool frozen = false;

	for (;;) {
		lock(&freezer);
		freeze = freezing(current);
		unlock(&freezer);

		frozen = true;
		schedule();
	}

	return frozen;
}

static bool other(bool check)
{
	bool frozen = false;

	for (;;) {
		frozen = true;
		yield_to(current);
	}

	return frozen;
}
"""
CHECK = (
    "\n		frozen = true;\n		schedule",
    "\n		if (!freeze)\n			break;\n\n		frozen = true;\n		schedule",
)
WHOLE = Present(frozenset({1}), frozenset({(1, "kernel/freezer.c", 1)}))
NOTHING = Present(frozenset(), frozenset())


def git(tree: Path, *argv: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "-C", str(tree), *identity, *argv], check=True, capture_output=True)


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def series(tmp_path: Path, texts: Sequence[str]) -> list[Path]:
    """The patches that lead from the first of ``texts`` to the last."""
    tree = tmp_path / "author"
    (tree / "kernel").mkdir(parents=True)
    git(tree, "init", "-q")
    for text in texts:
        (tree / "kernel/freezer.c").write_text(text)
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "change", "--allow-empty")
    git(tree, "format-patch", "-q", "--root", "-o", str(tmp_path / "patches"))
    return sorted((tmp_path / "patches").iterdir())[1:]


def present(tmp_path: Path, texts: Sequence[str], source: str) -> Present:
    patches = series(tmp_path, texts)
    tree = tmp_path / "source"
    (tree / "kernel").mkdir(parents=True)
    (tree / "kernel/freezer.c").write_text(source)
    read = apply_patches.read_series(tree, patches)
    files = apply_patches.touched(tree, read)
    return present_hunks(read, files, [patch.hunks() for patch in read])


CHANGED = edited(BASE, CHECK)


def test_a_source_without_the_change_has_nothing(tmp_path: Path) -> None:
    assert present(tmp_path, [BASE, CHANGED], BASE) == NOTHING


@pytest.mark.parametrize(
    "source",
    [
        CHANGED,
        f"int more;\n\n{CHANGED}",
        edited(CHANGED, ("freezing(current);", "freezing(current) && !stop();")),
        edited(
            CHANGED,
            ("		unlock(&freezer);\n", "		unlock(&freezer);\n		count++;\n"),
        ),
    ],
)
def test_a_change_is_there_even_if_the_context_differs(source: str, tmp_path: Path) -> None:
    assert present(tmp_path, [BASE, CHANGED], source) == WHOLE


def test_the_same_lines_in_another_function_are_another_change(tmp_path: Path) -> None:
    source = edited(
        BASE,
        (
            "	for (;;) {\n		frozen = true;",
            "	for (;;) {\n\n		if (!freeze)\n			break;\n\n		frozen = true;",
        ),
    )
    assert present(tmp_path, [BASE, CHANGED], source) == NOTHING


def test_what_a_later_patch_changes_again_is_there(tmp_path: Path) -> None:
    again = edited(CHANGED, ("if (!freeze)", "if (!freeze || check)"))
    both = Present(
        frozenset({1, 2}), frozenset({(1, "kernel/freezer.c", 1), (2, "kernel/freezer.c", 1)})
    )
    assert present(tmp_path, [BASE, CHANGED, again], again) == both


def test_lines_that_the_series_adds_and_removes_say_nothing(tmp_path: Path) -> None:
    assert present(tmp_path, [BASE, CHANGED, BASE], BASE) == NOTHING
    assert present(tmp_path / "again", [BASE, CHANGED, BASE], CHANGED).patches == {1, 2}


def test_a_removal_is_there_only_if_the_lines_are_gone(tmp_path: Path) -> None:
    assert present(tmp_path, [CHANGED, BASE], BASE) == WHOLE
    elsewhere = edited(
        BASE,
        (
            "		schedule();\n",
            "		schedule();\n		if (!freeze)\n			break;\n",
        ),
    )
    assert present(tmp_path / "again", [CHANGED, BASE], elsewhere) == NOTHING


def test_a_part_of_a_patch_is_counted_by_its_hunks(tmp_path: Path) -> None:
    changed = edited(CHANGED, ("yield_to(current)", "yield_to(next)"))
    result = present(tmp_path, [BASE, changed], CHANGED)
    assert result == Present(frozenset(), frozenset({(1, "kernel/freezer.c", 1)}))
