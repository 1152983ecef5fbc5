"""Source lines from the line table of a program that is compiled as a kernel is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kteardown.kernels.source_lines import Frame, SourceLines, parse_addr2line
from kteardown.model.arch import ARCHITECTURES

SOURCE = """\
volatile int sink;
__attribute__((noinline)) void inner(void)
{
	sink++;
}
__attribute__((noinline)) void outer(void)
{
	inner();
	sink++;
}
static inline __attribute__((always_inline)) void relax(void)
{
	__asm__ volatile("nop");
}
__attribute__((noinline)) void waits(void)
{
	relax();
}
int main(void)
{
	outer();
	waits();
	return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("tree") / "build"
    (build.parent / "kernel").mkdir()
    build.mkdir()
    (build.parent / "kernel" / "part.c").write_text(SOURCE)
    flags = ["-O1", "-g1", f"-fdebug-prefix-map={build}=.", "-fno-pie", "-no-pie"]
    compiler = ARCHITECTURES["x86_64"].compiler
    subprocess.run([compiler, *flags, "-o", "vmlinux", "../kernel/part.c"], cwd=build, check=True)
    symbols = subprocess.run(
        ["nm", "vmlinux"], cwd=build, check=True, capture_output=True, text=True
    ).stdout
    (build / "System.map").write_text(
        "".join(f"{line}\n" for line in symbols.splitlines() if line[0] != " ")
    )
    return build


def address(folder: Path, name: str) -> int:
    found = re.search(
        rf"^([0-9a-f]+) \w {name}$", (folder / "System.map").read_text(), re.MULTILINE
    )
    assert found
    return int(found[1], 16)


def call_of_inner(folder: Path) -> int:
    """The offset in outer() of the instruction after its call."""
    text = subprocess.run(
        ["objdump", "-d", "--disassemble=outer", folder / "vmlinux"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = text.splitlines()
    call = next(number for number, line in enumerate(lines) if "call" in line)
    return int(lines[call + 1].split(":")[0], 16) - address(folder, "outer")


def test_a_stack_gets_the_line_of_the_call_and_not_of_the_return(folder: Path) -> None:
    offset = call_of_inner(folder)
    (line,) = SourceLines(folder, "x86_64").annotate([f"outer+{offset:#x}/0x20"])
    assert line == f"outer+{offset:#x}/0x20 (kernel/part.c:8)"


def test_the_instruction_pointer_gets_its_own_line(folder: Path) -> None:
    offset = call_of_inner(folder)
    (line,) = SourceLines(folder, "x86_64").annotate([f"RIP: 0010:outer+{offset:#x}/0x20"])
    assert line == f"RIP: 0010:outer+{offset:#x}/0x20 (kernel/part.c:9)"


def test_the_address_of_a_hang_gets_its_function(folder: Path) -> None:
    at = f"{address(folder, 'inner'):016x}"
    (line,) = SourceLines(folder, "x86_64").annotate([f"no record for 30 s, at {at}, {at}"])
    inner = re.escape("inner (kernel/part.c:") + r"\d\)"
    assert re.fullmatch(rf"no record for 30 s, at {inner}, {inner}", line)


def test_code_of_an_inlined_function_has_the_line_that_calls_it(folder: Path) -> None:
    start = address(folder, "waits")
    dump = subprocess.run(
        ["objdump", "-d", "--disassemble=waits", folder / "vmlinux"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    nop = next(
        int(line.split(":")[0], 16) for line in dump.splitlines() if re.search(r"\bnop$", line)
    )
    lines = SourceLines(folder, "x86_64").annotate(
        [f"no record for 5 s, at {nop:016x}", f"RIP: 0010:waits+{nop - start:#x}/0x20"]
    )
    assert lines == (
        "no record for 5 s, at waits (kernel/part.c:17, in relax)",
        f"RIP: 0010:waits+{nop - start:#x}/0x20 (kernel/part.c:17, in relax)",
    )


@pytest.mark.parametrize(
    "text", ["unknown_function+0x1/0x2", "no place at all", "at 00000000000000zz", ""]
)
def test_other_text_is_unchanged(folder: Path, text: str) -> None:
    assert SourceLines(folder, "x86_64").annotate([text, text]) == (text, text)


def test_without_a_line_table_the_text_is_unchanged(tmp_path: Path) -> None:
    assert SourceLines(tmp_path, "x86_64").annotate(["outer+0x1/0x2"]) == ("outer+0x1/0x2",)


def test_annotated_text_is_not_annotated_again(folder: Path) -> None:
    lines = SourceLines(folder, "x86_64")
    once = lines.annotate([f"outer+{call_of_inner(folder):#x}/0x20"])
    assert lines.annotate(once) == once


def test_addr2line_output() -> None:
    text = (
        "0x10\ninner\n./../include/a.h:3 (discriminator 2)\nouter\n./../mm/b.c:7\n"
        "0x20\n??\n??:0\n0x30\nmemcpy\nmemcpy_64.o:?\n"
    )
    assert parse_addr2line(text) == {
        0x10: (Frame("inner", "include/a.h", 3), Frame("outer", "mm/b.c", 7)),
        0x20: (),
        0x30: (),
    }
