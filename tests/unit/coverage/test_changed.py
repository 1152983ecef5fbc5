"""From the diffs of patches to the functions that they change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.coverage.changed import ChangedFunction, changed_functions
from kteardown.errors import BuildError

BEFORE = """\
#define LIMIT 3
struct pool {
	int size;
};

static void first(struct pool *p)
{
	p->size = 1;
}

/* Called often. */
static void second(struct pool *p)
{
	if (p->size)
		p->size--;
}

static void last(void)
{
}
"""


def patch_of(tmp_path: Path, after: dict[str, str | None]) -> tuple[list[ChangedFunction], Path]:
    """The changes from ``BEFORE`` in mm/pool.c to ``after``, as the patch that git makes of
    them."""
    tree = tmp_path / "linux"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm/pool.c").write_text(BEFORE)
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "before"], check=True)
    for name, text in after.items():
        if text is None:
            (tree / name).unlink()
        else:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
    subprocess.run([*git, "add", "-A"], check=True)
    patch = tmp_path / "0001-change.patch"
    patch.write_bytes(
        subprocess.run([*git, "diff", "--cached"], check=True, capture_output=True).stdout
    )
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    return changed_functions([patch], tree), patch


def test_a_static_function_with_its_lines_and_the_statement(tmp_path: Path) -> None:
    after = BEFORE.replace("\t\tp->size--;", "\t\tp->size -=\n\t\t\tLIMIT;")
    (change,), _ = patch_of(tmp_path, {"mm/pool.c": after})
    assert change == ChangedFunction("mm/pool.c", "second", "function", True, True, ((14, 16),))


def test_comments_and_indentation_do_not_count(tmp_path: Path) -> None:
    after = "#include <linux/mm.h>\n" + BEFORE.replace("Called often", "Called seldom").replace(
        "\tp->size = 1;", "        p->size = 1;"
    )
    assert patch_of(tmp_path, {"mm/pool.c": after})[0] == []


def test_macros_and_structs_are_changes_of_the_file(tmp_path: Path) -> None:
    after = BEFORE.replace("LIMIT 3", "LIMIT 4").replace("int size", "long size")
    changes, _ = patch_of(tmp_path, {"mm/pool.c": after})
    assert [(change.kind, change.name) for change in changes] == [
        ("macro", "LIMIT"),
        ("declaration", "struct pool"),
    ]


def test_functions_that_come_and_go(tmp_path: Path) -> None:
    after = BEFORE.replace("static void last", "static void latest")
    after += "\nstatic inline int added(int a)\n{\n\treturn a;\n}\n"
    changes, _ = patch_of(tmp_path, {"mm/pool.c": after, "Makefile": "obj-y += pool.o\n"})
    assert {(c.name, c.exists_before, c.exists_after) for c in changes if c.kind == "function"} == {
        ("last", True, False),
        ("latest", False, True),
        ("added", False, True),
    }
    assert [str(c) for c in changes if c.kind != "function"] == ["Makefile"]


def test_a_removed_file(tmp_path: Path) -> None:
    changes, _ = patch_of(tmp_path, {"mm/pool.c": None})
    assert {c.name for c in changes if c.kind == "function"} == {"first", "second", "last"}
    assert not any(c.exists_after for c in changes)


def test_a_patch_that_does_not_apply(tmp_path: Path) -> None:
    _, patch = patch_of(tmp_path, {"mm/pool.c": BEFORE.replace("= 1", "= 2")})
    (tmp_path / "linux/mm/pool.c").write_text("int other;\n")
    with pytest.raises(BuildError, match="does not apply"):
        changed_functions([patch], tmp_path / "linux")
