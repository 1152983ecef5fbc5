"""What a macro or a structure changes is found in the instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.kernels.object_changes import _bodies, changed_functions
from kteardown.model.arch import ARCHITECTURES

TEXT = """int printf(const char *, ...);
#define LIMIT 5
struct place { char a; int b; };
static int counter = 1;
int limited(int n) { return n * LIMIT; }
int second(struct place *p) { return p->b; }
__attribute__((noinline)) static int helper(int n) { return n ^ counter++; }
int called(int n) { return printf("%d", n) + helper(n); }
"""
MOVED = 'int first(int n) { return printf("before all") + n; }\n'


def build(folder: Path, text: str) -> Path:
    (folder / "mm").mkdir(parents=True)
    (folder / "one.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-g1", "-c", "one.c", "-o", "mm/one.o"], check=True, cwd=folder)
    return folder


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (TEXT.replace("LIMIT 5", "LIMIT 7"), ("limited",)),
        (TEXT.replace("char a;", "char a; long c;"), ("second",)),
        (TEXT.replace("n ^ counter++", "n | counter++"), ("helper",)),
        (TEXT.replace("n ^ counter++", "n ^ (counter += n * n + 12345)"), ("helper",)),
        # Functions, strings and variables that move do not count.
        (
            TEXT.replace("static int counter", MOVED + "static int others[9] = {3}, counter"),
            ("first",),
        ),
        (TEXT.replace('"%d"', '"of another length: %d"'), ()),
    ],
)
def test_functions_differ_by_their_instructions(
    text: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    base, variant = build(tmp_path / "base", TEXT), build(tmp_path / "variant", text)
    found = changed_functions(base, variant, ["mm/one.o"], "x86_64")
    assert found is not None
    assert found[0] == ({"mm/one.o": names} if names else {})


TASK = """struct part { long x, y; };
struct task {
    long first; int state; struct part part; char rest[300]; long last; struct part *link;
};
extern struct task init_task;
int state(struct task *t) { return t->state; }
struct part *part(struct task *t) { return t->link ? &t->part : (struct part *)t->rest; }
long global(void) { return init_task.part.y; }
long many(struct task *t, int n) {
    long sum = 0; while (n--) sum += t[n].last ^ t[n].part.x; return sum;
}
int limit(struct task *t) { return t->state > 5 ? t->state : 0; }
int calls(struct task *t);
int last(struct task *t) { if (t->last > 3) calls(t + 1); return calls(t) + t->state; }
long both(struct task *t) { return t->part.x + t->part.y; }
"""


def test_a_field_that_moved_is_no_change_of_the_functions_that_use_it(tmp_path: Path) -> None:
    after = (
        TASK.replace("int state;", "int state; long added[40];")
        .replace("> 5", "> 6")  # Of these the code changes, too.
        .replace("t->part.x + t->part.y", "t->part.x - t->part.y")
    )
    base, variant = build(tmp_path / "base", TASK), build(tmp_path / "variant", after)
    found = changed_functions(base, variant, ["mm/one.o"], "x86_64")
    assert found is not None
    differing, moved = (set(each["mm/one.o"]) for each in found)
    assert differing >= {"part", "global", "many", "limit", "last", "both"}
    assert moved >= {"part", "global", "last"}
    assert not moved & {"limit", "both"}


def test_a_function_that_reads_another_field_only_moved_too(tmp_path: Path) -> None:
    """The code does not say why a displacement differs: the diffs say which functions they
    change."""
    base, variant = (
        build(tmp_path / "base", TASK),
        build(tmp_path / "variant", TASK.replace("return t->state;", "return t->first;")),
    )
    found = changed_functions(base, variant, ["mm/one.o"], "x86_64")
    assert found is not None
    assert found[0] == {"mm/one.o": ("state",)}


def test_what_is_not_linked_yet_does_not_count() -> None:
    """A call is to the next instruction until it is linked, in whichever function that seems to
    be."""
    first, second = (
        f"0000000000000000 <f.cold>:\n   7:\tcall   {n} <seems_{n}+0x4>\t{n}: "
        "R_X86_64_PLT32\tcalled-0x4\n\n"
        for n in (8, 9)
    )
    assert _bodies(first) == _bodies(second) == {"f": ["call   \tR_X86_64_PLT32\tcalled-0x4\n"]}
    assert _bodies(first.replace("f.cold", ".altinstr_aux")) == {}


def test_every_function_of_a_new_object_differs(tmp_path: Path) -> None:
    base, variant = tmp_path, build(tmp_path / "variant", "int alone(void) { return 3; }\n")
    assert changed_functions(base, variant, ["mm/one.o"], "x86_64") == (
        {"mm/one.o": ("alone",)},
        {},
    )


def test_without_a_disassembler_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [changed_functions(tmp_path, tmp_path, ["a.o"], arch) for arch in ARCHITECTURES] == [
        None,
        None,
    ]
