"""Makes the records that a script leaves behind."""

from __future__ import annotations

from pathlib import Path

from kteardown.model.script_records import Delta, OutputLine

RECORDED = Path(__file__).parents[2] / "data" / "script"
"""What benchmarks printed on a host."""


def printed(*texts: str) -> list[OutputLine]:
    """Lines of the script, one every 10 ns."""
    return [
        OutputLine(trial=0, repetition=0, source="script", at_ns=10 * index, text=text)
        for index, text in enumerate(texts)
    ]


def logged(*texts: tuple[int, str]) -> list[OutputLine]:
    """Lines of the log, with their times in us."""
    return [
        OutputLine(trial=0, repetition=0, source="log", at_ns=1000 * at, text=text)
        for at, text in texts
    ]


def delta(file: str, name: str, change: int, before: int = 1000) -> Delta:
    """A counter that changed."""
    return Delta(trial=0, repetition=0, file=file, name=name, before=before, after=before + change)


def recorded(program: str) -> list[OutputLine]:
    """The lines that a benchmark printed."""
    return printed(*(RECORDED / f"{program}.txt").read_text(encoding="utf-8").splitlines())
