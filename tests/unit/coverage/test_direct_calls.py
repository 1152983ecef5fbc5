"""Direct calls are read from the bytes of a program as objdump reads them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kteardown.coverage.call_paths import calls_of
from kteardown.coverage.direct_calls import DirectCalls

SOURCE = """\
	.globl _start
_start:	call near_by
	jmp near_by
	.byte 0xeb, near_by - after
after:	jne near_by
	call *%rax
	.byte 0x2e, 0xe8
	.long near_by - . - 4
	notrack jmp *%rax
	call far_away
	.byte 0xe8
	.skip 64
near_by: ret
	.section .text.far, "ax"
far_away: jmp _start
	.data
	.globl datum
datum:	.byte 0xe8, 0, 0, 0, 0
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calls")
    (folder / "p.S").write_text(SOURCE)
    # Sections far from each other, as those of a kernel.
    flags = ["-nostdlib", "-no-pie", "-Wl,--section-start=.text.far=0x4000000"]
    subprocess.run(["gcc", *flags, "-o", "vmlinux", "p.S"], cwd=folder, check=True)
    return folder / "vmlinux"


def instructions(program: Path) -> dict[int, str]:
    argv = ["objdump", "--disassemble", "--no-show-raw-insn", str(program)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return {
        int(at, 16): words
        for at, words in re.findall(r"^ *([0-9a-f]+):\t(.*)$", text, re.MULTILINE)
    }


def test_calls_and_jumps_lead_where_objdump_says(program: Path) -> None:
    calls, every = DirectCalls(program), instructions(program)
    direct = {
        at: words for at, words in every.items() if re.match(r"(call|jmp) +[0-9a-f]+ <", words)
    }
    found = {at: calls.target(at) for at in every if calls.target(at) is not None}
    wanted = {at: int(words.split()[1], 16) for at, words in direct.items()}
    assert found == wanted
    assert set(calls_of(program)) <= set(found.items())
    assert len(calls_of(program)) == 5
    assert any(words.startswith("jne") for words in every.values())


def test_what_is_not_code_calls_nothing(program: Path) -> None:
    symbols = subprocess.run(
        ["nm", program], check=True, capture_output=True, text=True
    ).stdout.split()
    datum = int(symbols[symbols.index("datum") - 2], 16)
    calls = DirectCalls(program)
    assert [calls.target(at) for at in (datum, 0, 1 << 63)] == [None, None, None]


@pytest.mark.parametrize("lost", [16, 2000, 4000, 4096, 8192])
def test_a_damaged_program_has_fewer_calls(program: Path, tmp_path: Path, lost: int) -> None:
    data = program.read_bytes()
    (tmp_path / "vmlinux").write_bytes(data[:lost])
    calls, whole = DirectCalls(tmp_path / "vmlinux"), DirectCalls(program)
    assert all(calls.target(at) in (None, whole.target(at)) for at in instructions(program))


def test_a_file_that_is_no_program_has_no_calls(tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"\xe8" * 100)
    assert DirectCalls(tmp_path / "vmlinux").target(0) is None
