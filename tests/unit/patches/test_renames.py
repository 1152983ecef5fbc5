from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.patches.renames import Edit, Edits, edits


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("\told(a);\n", "\tnew(a);\n", {Edit("old", "new")}),
        ("\tx->old = p->old;\n", "\tx->new = p->new;\n", {Edit("old", "new")}),
        # With other breaks of lines, comments and includes.
        (
            "/* old */\n#include <old.h>\n\tif (old(a,\n\t\tb))\n",
            "/*\n * that is new\n */\n#include <linux/new.h>\n\tif (new(a, b)) // new\n",
            {Edit("old", "new")},
        ),
        ("\tf(a);\n", "\tf(a, NULL);\n", {Edit("f")}),
        ("\tf(a);\n", "\tf(&x->y, a);\n", {Edit("f")}),
        ("\tf(a, g(c), d);\n", "\tf(a, d);\n", {Edit("f")}),
        ("\tf(a, b);\n", "\tf(a, g(1, 2), b);\n", {Edit("f")}),
        ("\tf();\n", "\tf(true);\n", {Edit("f")}),
        # The call begins before the hunk, and ends after it.
        ("\tf(a,\n\t  b,\n\t  c);\n", "\tf(a,\n\t  b, NULL,\n\t  c);\n", {Edit("f")}),
        ("\tf(a,\n\t  g(b));\n", "\tf(a,\n\t  g(b), c);\n", {Edit("f")}),
        ("\told(a);\n", "\tnew(a, 0);\n", {Edit("old", "new"), Edit("new")}),
        # A function with other arguments takes the place of the old one.
        (
            "\tif (old(buffer, task) && b)\n",
            "\tif (new(buffer, g(other)->name, 4) && b)\n",
            {Edit("old", "new"), Edit("new")},
        ),
        ("\told(a, (b));\n", "\tnew(c, &(b));\n", {Edit("old", "new"), Edit("new")}),
        ("int a;\n", "int a;  /* b */\n", set()),
    ],
)
def test_changes_of_names_and_arguments(before: str, after: str, found: set[Edit]) -> None:
    around = "int f(void)\n{{\n{}\treturn 0;\n}}\n"
    assert edits(around.format(before), around.format(after)) == Edits(frozenset(found), True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\told(a);\n", "\tnew(a) + 1;\n"),
        ("\told(a);\n", "\tnew(b + 1);\n\tmore();\n"),
        ("\tf(old(a), 1);\n", "\tf(new(a), 2);\n"),
        ("\tf(a);\n", "\tf(a + 1);\n"),
        ("\told(a);\n", "\tnew(a);\n\tmore();\n"),
        ("\told(a);\n", ""),
        ("", "\tcond_resched();\n"),
        ("\tx = 1;\n", "\tx = 2;\n"),
        ("\tx = true;\n", "\tx = false;\n"),
        ("\tint x;\n", "\tlong x;\n"),
        ("\tif (a)\n", "\tif (a && b)\n"),
        ('\tputs("a");\n', '\tputs("b");\n'),
        ("\tx = '\"'; y = 1;\n", "\tx = '\"'; y = 2;\n"),
        ('\tputs("/*"); y = 1;\n', '\tputs("/*"); y = 2;\n'),
        # One name has two others.
        ("\told(a);\n\told(b);\n", "\tnew(a);\n\tnewer(b);\n"),
    ],
)
def test_other_changes(before: str, after: str) -> None:
    around = "int f(void)\n{{\n{}\treturn 0;\n}}\n"
    assert not edits(around.format(before), around.format(after)).complete


NAMES = st.sampled_from(["a", "b", "c", "old_one", "old_two"])
LINES = st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12)


@given(LINES, st.sets(st.sampled_from(["old_one", "old_two"])))
def test_a_rename_is_all_that_differs(lines: list[list[str]], renamed: set[str]) -> None:
    def text(names: dict[str, str]) -> str:
        calls = ([names.get(name, name) for name in line] for line in lines)
        return "".join(f"\t{callee}({', '.join(rest)});\n" for callee, *rest in calls)

    used = {name for line in lines for name in line if name in renamed}
    found = edits(text({}), text({name: f"new{name}" for name in renamed}))
    assert found == Edits(frozenset(Edit(name, f"new{name}") for name in used), True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(" * 30_000 + "\n", "g(" * 30_000 + "\n"),
        ("f(" + "a, " * 20_000 + "\n", "f(" + "b + a, " * 8_000 + "\n"),
        ("/*" * 500_000, "/*" * 400_000),
        ('"' + "\\" * 500_001, '"' + "\\" * 500_000),
        ("a;\nb;\n" * 50_000, "a;\nc;\n" * 50_000),
        ("x" * 1_000_000 + "\na;\n", "x" * 1_000_000 + "\nb;\n"),
    ],
    ids=["calls", "arguments", "comments", "strings", "hunks", "line"],
)
def test_hostile_texts_take_little_time(before: str, after: str) -> None:
    edits(before, after)
