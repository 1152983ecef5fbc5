from __future__ import annotations

from typing import Literal

import pytest

from kteardown.model.record import BootEnd, BootStart, Record
from kteardown.model.script_records import OutputLine, ScriptEnd
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.environment import error_lines, printed_notes


def line(text: str, source: Literal["script", "log"] = "script") -> OutputLine:
    return OutputLine(trial=0, repetition=0, source=source, at_ns=0, text=text)


def boot(number: int, kernel: str, *records: Record) -> BootRecords:
    start = BootStart(
        kernel=kernel, block=0, seed=1, acceleration="icount", host_load=0, started_at=""
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(number, 0, start, end, records)


def dropped(number: int) -> ScriptEnd:
    return ScriptEnd(trial=0, repetition=0, how="exit", code=0, dropped=number)


@pytest.mark.parametrize(
    "text",
    [
        "x.sh: line 3: foo: command not found",
        "mount: permission Denied",
        "mount: /mnt: unknown filesystem type 'ext4'.",
        "Error",
    ],
)
def test_lines_that_look_like_an_error(text: str) -> None:
    assert error_lines([line(text), line(text)]) == [text]


@pytest.mark.parametrize("text", ["terrors", "0 failing", "errors_total 5", "done"])
def test_lines_that_do_not(text: str) -> None:
    assert error_lines([line(text)]) == []


def test_the_log_is_not_of_the_script_and_long_lines_are_cut() -> None:
    assert error_lines([line("error", "log")]) == []
    assert error_lines([line("error" + " x" * 500)]) == ["error" + " x" * 77 + " "]


def test_a_note_names_all_kernels_that_printed_the_same() -> None:
    lines = [line(f"error {number}") for number in range(5)]
    notes = list(
        printed_notes([boot(0, "base", *lines), boot(1, "mine", *lines), boot(2, "quiet")])
    )
    assert notes == [
        "on base, mine the script printed: error 0; error 1; error 2, and 2 more lines"
    ]


def test_only_the_first_boot_of_a_kernel_is_read() -> None:
    boots = [boot(0, "base", line("error 1")), boot(1, "base", line("error 2"))]
    assert list(printed_notes(boots)) == ["on base the script printed: error 1"]


def test_lines_that_are_not_kept_are_counted() -> None:
    notes = list(printed_notes([boot(0, "base", dropped(1000), dropped(234))]))
    assert notes == ["base: 1,234 lines of the script and of the log are not kept"]
