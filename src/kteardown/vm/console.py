"""What a guest's console and its end say about how the boot went: pure, text in, outcome out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kteardown.model.record import Outcome


@dataclass(frozen=True)
class RecordsSeen:
    """What came through the records port."""

    lines: int = 0
    bye: bool = False
    error: str | None = None
    """The detail of the agent's ``error`` record."""
    cut: int = 0
    """Bytes of a last line that never got its newline."""


@dataclass(frozen=True)
class Ending:
    """How the machine ended.

    ``powered-off`` and ``reset`` are the guest's doing; ``silent``: no record for the time allowed;
    ``broken``: the emulator itself failed. ``detail`` is what the machine adds to the last two.
    """

    how: Literal["powered-off", "reset", "silent", "broken"]
    detail: str = ""
    note: str = ""
    """What the machine leaves at the end of the console: the registers of a silent guest."""


# "[    1.234567] ", with CONFIG_PRINTK_CALLER "[    1.234567][    T1] ", and colours of a terminal.
_PREFIX = re.compile(r"^\s*(?:\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])?\s?)+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x20-\x7e]")
_LONGEST = 300

_PANIC = re.compile(r"Kernel panic - not syncing")
_OUT_OF_MEMORY_PANIC = re.compile(r"not syncing: (?:System is deadlocked on memory|Out of memory)")
# mm/oom_kill.c; the out-of-memory killer of a memory cgroup says "Memory cgroup out of memory", and a
# workload may want that one.
_OUT_OF_MEMORY = re.compile(r"(?<!cgroup )Out of memory(?: and no killable|: Killed process| \(oom_kill)")
_INIT_DIED = re.compile(r"not syncing: Attempted to kill init! exitcode=(0x[0-9a-f]{8})")
# What the agent says before the records port is open, and so cannot say as a record.
_AGENT_SAID = re.compile(r"kteardown-agent: error: ")
_OOPS = re.compile(
    r"^(?:BUG: |Oops: |Unable to handle kernel |Internal error: |kernel BUG at |general protection fault"
    r"|watchdog: BUG: |stack segment: |invalid opcode: |divide error: )"
)
_COMPLAINT = re.compile(
    r"^(?:rcu: INFO: rcu_\w+ (?:self-)?detected|INFO: task .* blocked for more than|INFO: rcu_|WARNING: "
    r"|BUG: workqueue lockup)"
)


def classify(console: str, records: RecordsSeen, ending: Ending) -> tuple[Outcome, str]:
    """The outcome of a boot, and the line that tells why; the line of an ``ok`` boot is empty.

    The emulator's own failure goes first, then what the agent said itself, then what the kernel
    said: a kernel that panics while it powers off, after the agent's ``bye``, panicked.
    """
    lines = _lines(console)
    outcome, detail = _verdict(lines, records, ending)
    if records.cut:
        detail = f"{detail}; the last record was cut after {records.cut} bytes".removeprefix("; ")
    return outcome, detail


def _verdict(lines: list[str], records: RecordsSeen, ending: Ending) -> tuple[Outcome, str]:
    if ending.how == "broken":
        return "infrastructure-error", ending.detail
    if records.error is not None:
        return "agent-error", records.error
    panic = _first(lines, _PANIC)
    if panic:
        return _panic(lines, panic)
    if records.bye and ending.how == "powered-off":
        return "ok", ""
    return _unfinished(lines, ending)


def _unfinished(lines: list[str], ending: Ending) -> tuple[Outcome, str]:
    starved = _first(lines, _OUT_OF_MEMORY)
    if starved:
        return "oom", starved
    if ending.how == "silent":
        return "hang", "; ".join(filter(None, (ending.detail, _last_words(lines))))
    if ending.how == "reset":
        return "panic", f"the guest reset itself without a panic message; {_last_words(lines)}"
    said = _first(lines, _AGENT_SAID)
    if said:
        return "agent-error", said
    return "agent-error", f"the guest powered off before the agent's bye; {_last_words(lines)}"


def _panic(lines: list[str], panic: str) -> tuple[Outcome, str]:
    oops = _first(lines[: lines.index(panic)], _OOPS)
    if _OUT_OF_MEMORY_PANIC.search(panic):
        return "oom", panic
    died = _INIT_DIED.search(panic)
    # Without panic_on_oops a kernel bug in PID 1's own system call kills PID 1: still the kernel's.
    if died and not oops:
        return "agent-error", f"{_death(int(died[1], 16))}: {panic}"
    return "panic", f"{panic}; {oops}" if oops else panic


def _death(status: int) -> str:
    """``status`` as wait(2) gives it."""
    signal = status & 0x7F
    return f"the agent was killed by signal {signal}" if signal else f"the agent exited with {status >> 8}"


def _last_words(lines: list[str]) -> str:
    telling = _first(lines, _OOPS) or _first(lines, _COMPLAINT)
    if telling:
        return telling
    return f"last on the console: {lines[-1]}" if lines else "nothing on the console"


def _first(lines: list[str], pattern: re.Pattern[str]) -> str:
    return next((line for line in lines if pattern.search(line)), "")


def _lines(console: str) -> list[str]:
    """The console's lines that say something, without timestamps and control characters."""
    plain = (_ESCAPES.sub("", _PREFIX.sub("", line)).strip() for line in re.split(r"[\r\n]+", console))
    return [line[:_LONGEST] for line in plain if line]
