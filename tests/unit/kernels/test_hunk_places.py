"""Which function a hunk belongs to, and into which git puts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unidiff.patch import Hunk, PatchSet

from kteardown.kernels.hunk_places import (
    block_of,
    function_before,
    function_of,
    is_same_function,
    misplaced,
    name_of,
    places_of,
    text_of,
)

TWIN = """\
static void %s(struct queue *q)
{
	lock(q);
	q->users++;
	unlock(q);
}
"""


def hunk(header: str, lines: str, start: int = 10) -> Hunk:
    before = sum(line[0] != "+" for line in lines.splitlines())
    after = sum(line[0] != "-" for line in lines.splitlines())
    text = f"--- a/x.c\n+++ b/x.c\n@@ -{start},{before} +{start},{after} @@ {header}\n{lines}"
    return PatchSet(text)[0][0]


CHANGE = " 	lock(q);\n+	q->time = now();\n 	q->users++;\n 	unlock(q);\n"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("static int f(struct x *x,", "f"),
        ("static struct very_long *", "static struct very_long *"),
        ("struct cgroup {", "struct cgroup"),
        (
            "static const struct file_operations fops = {",
            "static const struct file_operations fops",
        ),
        ("SYSCALL_DEFINE3(read, unsigned int, fd", "SYSCALL_DEFINE3(read"),
        ("COMPAT_SYSCALL_DEFINE2(kill, int", "COMPAT_SYSCALL_DEFINE2(kill"),
        ("DEFINE_SHOW_ATTRIBUTE(one);", "DEFINE_SHOW_ATTRIBUTE(one"),
        ("int limit = 5;", "int limit"),
    ],
)
def test_the_first_line_of_a_function_names_it(line: str, name: str) -> None:
    assert name_of(line) == name


def test_a_header_that_git_cut_names_the_function_all_the_same() -> None:
    line = "static int a_function(struct one_argument *one, struct another_argument *another)"
    assert is_same_function(line[:60], line)
    assert is_same_function("static int a_function(void)", line)
    assert not is_same_function("static int another_function(void)", line)


@pytest.mark.parametrize(
    ("header", "lines", "function"),
    [
        ("void f(void)", " 	a();\n+	b();\n", "void f(void)"),
        ("void f(void)", " }\n \n void g(void)\n {\n+	b();\n", "void g(void)"),
        ("void f(void)", " }\n \n+int limit;\n \n", ""),
        ("void f(void)", " 	a();\n+#define B 1\n", ""),
        ("void f(void)", " 	a();\n+out:\n 	b();\n", "void f(void)"),
        ("out:", " 	a();\n+	b();\n", None),
        ("", " 	a();\n+	b();\n", None),
    ],
)
def test_a_hunk_says_which_function_it_changes(
    header: str, lines: str, function: str | None
) -> None:
    assert function_of(hunk(header, lines)) == function


def moved(tmp_path: Path, text: str, header: str, line: int, start: int = 3) -> list[str]:
    """Why the change is not right at ``line``, where git says that it has put it."""
    (tmp_path / "x.c").write_text(text)
    output = f"Checking patch x.c...\nHunk #1 succeeded at {line} (offset 9 lines).\n"
    hunks = {"x.c": [hunk(header, CHANGE, start)]}
    return [wrong.why for wrong in misplaced(tmp_path, hunks, output)]


def test_a_hunk_that_also_fits_in_its_function_is_misplaced(tmp_path: Path) -> None:
    first, second = TWIN % "first", TWIN % "second"
    after = second.replace("	lock(q);\n", "	lock(q);\n	q->time = now();\n")
    (why,) = moved(tmp_path, first + after, "static void first(struct queue *q)", 9)
    assert "first" in why
    assert "second" in why
    assert not moved(tmp_path, first + after, "static void second(struct queue *q)", 9)


def test_a_hunk_whose_function_has_it_already_is_misplaced(tmp_path: Path) -> None:
    both = "".join(
        (TWIN % name).replace("	lock(q);\n", "	lock(q);\n	q->time = now();\n")
        for name in ("first", "second")
    )
    assert moved(tmp_path, both, "static void first(struct queue *q)", 10)
    assert not moved(tmp_path, both, "static void second(struct queue *q)", 10)


def test_a_hunk_far_away_in_another_function_is_misplaced(tmp_path: Path) -> None:
    after = (TWIN % "renamed").replace("	lock(q);\n", "	lock(q);\n	q->time = now();\n")
    header = "static void before(struct queue *q)"
    assert not moved(tmp_path, after, header, 3)
    assert moved(tmp_path, "\n" * 500 + after, header, 503)
    assert not moved(tmp_path, "\n" * 500 + after, header, 503, start=480)


@given(st.lists(st.sampled_from(["", "a", "b", "int f(void)", "	x();"]), max_size=30), st.data())
def test_every_place_of_a_block_is_found(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    block = lines[first:last]
    text = f"{block_of(lines)}"
    expected = [
        at for at in range(len(lines) - len(block) + 1) if lines[at : at + len(block)] == block
    ]
    if block:
        places = list(places_of(text, block_of(block)))
        assert [text.count("\n", 0, place) for place in places] == expected
        for at, place in zip(expected, places, strict=True):
            starts = [line for line in lines[:at] if line[:1].isalpha()]
            assert function_before(text, place) == (starts[-1] if starts else "")


def test_a_file_that_does_not_exist_has_no_text(tmp_path: Path) -> None:
    assert text_of(tmp_path / "x.c") == ""
