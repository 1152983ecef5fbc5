"""Whether a fitted series changes the functions that it was made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.patches.moved_changes import moved_elsewhere

FILLER = "".join(f"	step({number});\n" for number in range(200))
TREE = f"""\
static void first(struct queue *q)
{{
	lock(q);
	q->waiting++;
	unlock(q);
}}

static void last(struct queue *q)
{{
{FILLER}	lock(q);
	q->waiting--;
	unlock(q);
}}
"""
LINE = "+	q->time = now();\n"


def patch(folder: Path, header: str, start: int, lines: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    before = sum(line[0] != "+" for line in lines.splitlines())
    after = sum(line[0] != "-" for line in lines.splitlines())
    text = (
        "From: a <a@b>\nSubject: [PATCH] change\n\n---\ndiff --git a/kernel/q.c b/kernel/q.c\n"
        f"--- a/kernel/q.c\n+++ b/kernel/q.c\n@@ -{start},{before} +{start},{after} @@ {header}\n"
        f"{lines}"
    )
    (folder / "0001-change.patch").write_text(text)
    return [folder / "0001-change.patch"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/kernel").mkdir(parents=True)
    (tmp_path / "tree/kernel/q.c").write_text(TREE)
    return tmp_path / "tree"


def moved(tree: Path, posted: tuple[str, int, str], fitted: tuple[str, int, str]) -> str:
    folder = tree.parent
    return moved_elsewhere(
        tree, patch(folder / "posted", *posted), patch(folder / "fitted", *fitted)
    )


LOCKED = f" 	lock(q);\n{LINE} 	q->waiting++;\n"
HERE = ("static void first(struct queue *q)", 3, LOCKED)
THERE = ("static void last(struct queue *q)", 210, LOCKED)


def test_a_change_in_its_function_may_be_at_another_line(tree: Path) -> None:
    assert not moved(tree, ("static void first(struct old *q)", 900, LOCKED), HERE)


@pytest.mark.parametrize(("posted", "fitted"), [(HERE, THERE), (THERE, HERE)])
def test_a_change_in_another_function_is_named(
    posted: tuple[str, int, str], fitted: tuple[str, int, str], tree: Path
) -> None:
    assert "0001-change.patch" in moved(tree, posted, fitted)


def test_a_function_with_a_new_name_is_the_same_if_it_is_near(tree: Path) -> None:
    assert not moved(tree, ("static void old_name(struct queue *q)", 20, LOCKED), HERE)
    assert moved(tree, ("static void old_name(struct queue *q)", 900, LOCKED), HERE)


def test_code_outside_of_functions_may_be_anywhere(tree: Path) -> None:
    added = " }\n \n+#define LIMIT 5\n \n"
    assert not moved(tree, ("void a(void)", 900, added), ("void first(struct queue *q)", 6, added))


def test_code_that_would_stand_twice_is_named(tree: Path) -> None:
    twice = " 	lock(q);\n+	q->waiting++;\n 	q->waiting++;\n"
    header = "static void first(struct queue *q)"
    assert moved(tree, (header, 3, twice), (header, 3, twice))


def test_code_that_the_patch_only_moves_does_not_stand_twice(tree: Path) -> None:
    lines = " 	lock(q);\n-	q->waiting++;\n 	unlock(q);\n+	q->waiting++;\n }\n"
    header = "static void first(struct queue *q)"
    assert not moved(tree, (header, 3, lines), (header, 3, lines))
