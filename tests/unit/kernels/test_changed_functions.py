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
        (TEXT.replace("static int counter", MOVED + "static int others[9] = {3}, counter"), ("first",)),
        (TEXT.replace('"%d"', '"of another length: %d"'), ()),
    ],
)
def test_functions_differ_by_their_instructions(text: str, names: tuple[str, ...], tmp_path: Path) -> None:
    base, variant = build(tmp_path / "base", TEXT), build(tmp_path / "variant", text)
    found = changed_functions(base, variant, ["mm/one.o"], "x86_64")
    assert found == ({"mm/one.o": names} if names else {})


def test_what_is_not_linked_yet_does_not_count() -> None:
    """A call is to the next instruction until it is linked, in whichever function that seems to be."""
    first, second = (
        f"0000000000000000 <f.cold>:\n   7:\tcall   {n} <seems_{n}+0x4>\t{n}: R_X86_64_PLT32\tcalled-0x4\n\n"
        for n in (8, 9)
    )
    assert _bodies(first) == _bodies(second) == {"f": ["call   \tR_X86_64_PLT32\tcalled-0x4\n"]}
    assert _bodies(first.replace("f.cold", ".altinstr_aux")) == {}


def test_every_function_of_a_new_object_differs(tmp_path: Path) -> None:
    base, variant = tmp_path, build(tmp_path / "variant", "int alone(void) { return 3; }\n")
    assert changed_functions(base, variant, ["mm/one.o"], "x86_64") == {"mm/one.o": ("alone",)}


def test_without_a_disassembler_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [changed_functions(tmp_path, tmp_path, ["a.o"], arch) for arch in ARCHITECTURES] == [None, None]
