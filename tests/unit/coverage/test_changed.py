"""From the diffs of patches to the functions that they change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.coverage.changed import (
    ChangedFunction,
    changed_functions,
    code_of,
    item_at,
    items,
    statement_at,
)
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


FILE = """\
/* int no(void) { */
#define ROUND(a) \\
	do { a++; } while (0)
static LIST_HEAD(all);

struct object {
	int (*free)(void);
} first = { 0 };

static __printf(1, 2) void say(const char *text, ...)
	__acquires(lock)
{
	if (text) {
#ifdef CONFIG_A
		while (1) {
#else
		for (;;) {
#endif
			emit("}");
		}
	}
}

SYSCALL_DEFINE2(read_all, int, fd,
		char *, to)
{
	return '{';
}

DEFINE_IDTENTRY(exc_page_fault)
{
}
int declared(int a);
static inline struct object *get(struct object *o) { return o; }
"""


def test_functions_macros_and_declarations_have_their_lines() -> None:
    assert [(item.kind, item.name, item.first, item.last) for item in items(FILE)] == [
        ("macro", "ROUND", 2, 3),
        ("declaration", "all", 4, 4),
        ("declaration", "struct object", 6, 8),
        ("function", "say", 10, 22),
        ("function", "__do_sys_read_all", 24, 28),
        ("function", "exc_page_fault", 30, 32),
        ("declaration", "declared", 33, 33),
        ("function", "get", 34, 34),
    ]


def test_the_item_at_a_line() -> None:
    found = items(FILE)
    say = item_at(found, 19)
    assert say is not None and say.name == "say"
    assert item_at(found, 5) is None


def test_code_keeps_lines_and_loses_comments_and_strings() -> None:
    assert code_of('a(); /* b\n c */ d("{e}"); // f\ng') == 'a();     \n      d("   ");     \ng'


@pytest.mark.parametrize(
    ("line", "statement"), [(2, (2, 3)), (3, (2, 3)), (4, (4, 4)), (6, (6, 6))]
)
def test_a_statement_has_all_its_lines(line: int, statement: tuple[int, int]) -> None:
    code = ["void f(void) {", "\tcall(a,", "\t     b);", "\tx = 1;", "", "\ty = 2;", "}"]
    assert statement_at(code, line) == statement


_NAME = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("typeof", "if", "do")
)
_BODY = st.recursive(
    st.sampled_from(
        ["x = 1;", "/* } */", '"{";', "'}';", "return;", "#define A {", "if (a)", "\n"]
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda parts: "{\n" + "\n".join(parts) + "\n}"),
    max_leaves=12,
)


@given(st.lists(st.tuples(_NAME, st.lists(_BODY, max_size=3)), max_size=6))
def test_every_function_is_found_whatever_is_in_it(functions: list[tuple[str, list[str]]]) -> None:
    text = "".join(
        f"int {name}(int a)\n{{\n" + "\n".join(body) + "\n}\n" for name, body in functions
    )
    found = [item for item in items(text) if item.kind == "function"]
    assert [item.name for item in found] == [name for name, _ in functions]
    lines = text.split("\n")
    assert all(
        lines[item.first - 1].startswith("int ") and lines[item.last - 1] == "}" for item in found
    )


@given(st.text(alphabet="{}()#;/*\"'\\\n abif=,_ndeflsc", max_size=200))
def test_anything_can_be_read(text: str) -> None:
    last = text.count("\n") + 1
    assert all(1 <= item.first <= item.last <= last for item in items(text))
    assert code_of(text).count("\n") == text.count("\n")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        f"struct {'a ' * 200_000}{{}} {'b ' * 200_000}",
        f"int f(void) {'__x(b) ' * 200_000}{{ }}",
        f"{'a ' * 200_000}{{ {'} ' * 200_000}",
    ],
    ids=["words", "annotations", "braces"],
)
def test_a_long_declaration_is_read_once(text: str) -> None:
    """A scan of all of its words at each further word would take hours."""
    assert len(items(text)) <= 1
