"""Counts of instructions become those of functions and lines, inlined functions included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.coverage.attribute import (
    Counts,
    DebugInfo,
    FunctionId,
    attribute,
    counts_of,
)
from kteardown.errors import InputError
from kteardown.vm.qemu_library import CodeBlock, TrialBlocks

SOURCE = """\
volatile int a, b; void __schedule(void);
static inline __attribute__((always_inline)) void inlined(int n)
{
	a = n;
}
__attribute__((noinline)) void outer(int n)
{
	inlined(n);
	b = n;
	inlined(n + 1);
}
__attribute__((noinline)) void deep(int n) { a = n; b = n; a = b; }
__attribute__((noinline)) void helper(int n) { b = n; deep(a); a = n; }
__attribute__((noinline)) void changed(int n) { helper(a); b = n; }
__attribute__((noinline)) void other(int n) { b = n; helper(a); helper(b); b = 1; __schedule(); }
__attribute__((noinline)) void __schedule(void) { deep(b); a = 2; }
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) int again(int n)
{
	return n ? again(n - 1) + b * a : 0;
}
int main(void)
{
	outer(1);
	changed(2);
	other(3);
	a = again(4);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of a kernel: a program with a line table, and its symbols."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "p.c").write_text(SOURCE)
    flags = ["-g1", "-O2", "-no-pie", "-fcf-protection=none", f"-fdebug-prefix-map={folder}=."]
    subprocess.run(["gcc", *flags, "-o", "vmlinux", "p.c"], cwd=folder, check=True)
    symbols = subprocess.run(
        ["nm", "vmlinux"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    (folder / "System.map").write_text(symbols)
    return folder


def blocks_of(
    folder: Path, inside: int, outside: int, name: str = "outer"
) -> tuple[CodeBlock, ...]:
    """Every instruction of a function as a block of its own."""
    argv = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", "vmlinux"]
    text = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in text.splitlines()]
    at = [
        int(parts[0][:-1], 16)
        for parts in words
        if len(parts) > 1 and parts[0][-1] == ":" and parts[0] != "vmlinux:"
    ]
    return tuple(CodeBlock(address, inside, outside, "1") for address in at)


def test_inlined_functions_have_their_own_counts(program: Path) -> None:
    info = DebugInfo(program)
    trial = TrialBlocks(1, blocks_of(program, 3, 0))
    inside, outside = attribute(trial, info)
    outer, inlined = (inside.functions[FunctionId("p.c", name)] for name in ("outer", "inlined"))
    assert outer.calls == 3
    assert inlined.calls == 2 * 3  # It was inlined twice.
    assert outer.instructions + inlined.instructions == inside.instructions == 3 * len(trial.blocks)
    assert inside.lines["p.c", 4] == 2 * 3
    assert inside.lines["p.c", 9] == 3
    assert not outside.functions
    # Of the function with what is inlined into it, all; of the inlined one its own.
    counts = counts_of(trial, inside=True)
    assert info.instructions_in(counts, {FunctionId("p.c", "outer")}) == inside.instructions
    assert info.instructions_in(counts, {FunctionId("p.c", "inlined")}) == inlined.instructions


def test_a_cost_has_its_part_of_what_others_call_too(program: Path) -> None:
    info = DebugInfo(program)
    # As often as if changed() was called twice and other() three times.
    times = {"changed": 2, "other": 3, "helper": 8, "deep": 11, "__schedule": 3}
    blocks = {name: blocks_of(program, count, 0, name) for name, count in times.items()}
    counts = counts_of(
        TrialBlocks(1, tuple(block for each in blocks.values() for block in each)), inside=True
    )
    cost = {name: len(each) for name, each in blocks.items()}
    found = info.with_callees(counts, {FunctionId("p.c", "changed")})
    assert found == pytest.approx(2 * cost["changed"] + 2 * cost["helper"] + 2 * cost["deep"])
    # Where another kernel calls them through a pointer, which is not seen, they count all the same.
    shares = info.shares_of_callees(counts, {FunctionId("p.c", "changed")})
    unseen = info.with_callees(counts, {FunctionId("p.c", "absent")}, shares)
    assert unseen == pytest.approx(2 * cost["helper"] + 2 * cost["deep"])
    # The scheduler is not followed, only counted where it is changed.
    other = info.with_callees(counts, {FunctionId("p.c", "other")})
    assert other == pytest.approx(3 * cost["other"] + 6 * cost["helper"] + 6 * cost["deep"])
    own = info.with_callees(counts, {FunctionId("p.c", "__schedule")})
    assert own == pytest.approx(3 * cost["__schedule"] + 3 * cost["deep"])


def test_overlapping_blocks_add_up(program: Path) -> None:
    first = blocks_of(program, 1, 2)[0]
    twice = TrialBlocks(1, (first, CodeBlock(first.address, 5, 0, "1")))
    assert counts_of(twice, inside=True) == {first.address: 6}
    assert counts_of(twice, inside=False) == {first.address: 2}


def test_without_debug_information_an_address_belongs_to_its_symbol(program: Path) -> None:
    info = DebugInfo(program)
    start = next(
        int(line.split()[0], 16)
        for line in (program / "System.map").read_text().splitlines()
        if " _start" in line
    )
    done = info.count({start: 4})
    assert done.functions == {FunctionId("", "_start"): Counts(4, 4)}


def test_a_kernel_without_debug_information_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no debug information"):
        DebugInfo(tmp_path)


def test_functions_are_found_by_their_symbols(program: Path) -> None:
    found = DebugInfo(program).named({"outer", "inlined", "not_there"})
    assert {function.name for function in found} == {"outer"}
    assert all(function.file.endswith("p.c") for function in found)


def entered(info: DebugInfo, counts: dict[int, int], *names: str) -> list[tuple[str, str, int]]:
    found = info.entered(counts, names)
    return sorted((e.name, "+".join(sorted(e.callers)), e.times) for e in found if e.times)


def test_entries_by_caller(program: Path) -> None:
    info = DebugInfo(program)
    # deep() is called once more than its callers call it: through a pointer.
    times = {"outer": 3, "changed": 2, "other": 3, "helper": 8, "deep": 12, "__schedule": 3}
    blocks = [block for name, n in times.items() for block in blocks_of(program, n, 0, name)]
    counts = counts_of(TrialBlocks(1, tuple(blocks)), inside=True)
    assert entered(info, counts, "deep") == [
        ("deep", "", 1),
        ("deep", "__schedule", 3),
        ("deep", "helper", 8),
    ]
    assert entered(info, counts, "helper", "absent") == [
        ("helper", "changed", 2),
        ("helper", "other", 3),
        ("helper", "other", 3),
    ]
    # The two copies of a function that is inlined.
    assert entered(info, counts, "inlined") == [("inlined", "outer", 3)] * 2


def test_what_the_compiler_divided_off_is_not_entered(program: Path, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").symlink_to(program / "vmlinux")
    symbols = (program / "System.map").read_text().replace(" deep\n", " deep.part.0\n")
    (tmp_path / "System.map").write_text(symbols)
    counts = counts_of(TrialBlocks(1, blocks_of(program, 5, 0, "deep")), inside=True)
    assert entered(DebugInfo(program), counts, "deep") == [("deep", "", 5)]
    assert entered(DebugInfo(tmp_path), counts, "deep") == []


def test_a_function_that_calls_itself_is_entered_by_others_alone(program: Path) -> None:
    info = DebugInfo(program)
    counts = counts_of(TrialBlocks(1, blocks_of(program, 1, 0, "main")), inside=True)
    again = counts_of(TrialBlocks(1, blocks_of(program, 5, 0, "again")), inside=True)
    (call,) = [at for at, to in info._calls(again) if to == min(again)]
    again[call] = 4
    assert entered(info, {**counts, **again}, "again") == [("again", "main", 1)]
