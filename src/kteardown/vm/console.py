"""Classify the outcome of a boot by its records, its console and how the machine ended. No side effects."""

import re
from dataclasses import dataclass
from typing import Literal

from kteardown.model.record import Outcome
from kteardown.vm.kernel_log import kind_of, lines_of


@dataclass
class RecordsSeen:
    """A summary of what was received through the records port."""

    lines: int = 0
    bye: bool = False
    error: str | None = None
    """The detail of the agent's ``error`` record."""
    cut: int = 0
    """The number of bytes after the last newline."""


@dataclass(frozen=True)
class Ending:
    """How the machine ended.

    ``powered-off`` and ``reset``: by the guest; ``silent``: without a record for the time allowed;
    ``flooded``: with more output than is allowed; ``broken``: QEMU itself failed. ``detail`` describes the
    last three. What a silent guest printed after
    ``console_bytes`` of its console is the answer to the lab's interrupt.
    """

    how: Literal["powered-off", "reset", "silent", "flooded", "broken"]
    detail: str = ""
    note: str = ""
    """Text that is added to the end of the console: the registers of a silent guest."""
    console_bytes: int | None = None


_PANIC = re.compile(r"Kernel panic - not syncing")
_OUT_OF_MEMORY_PANIC = re.compile(r"not syncing: (?:System is deadlocked on memory|Out of memory)")
# From mm/oom_kill.c. The out-of-memory killer of a memory cgroup prints "Memory cgroup out of memory", which
# does not count: a workload may cause it on purpose.
_OUT_OF_MEMORY = re.compile(r"(?<!cgroup )Out of memory(?: and no killable|: Killed process| \(oom_kill)")
_INIT_DIED = re.compile(r"not syncing: Attempted to kill init! exitcode=(0x[0-9a-f]{8})")
# An error of the agent before the records port is open, when it cannot write an error record.
_AGENT_ERROR = re.compile(r"kteardown-agent: error: ")


def classify(console: str, records: RecordsSeen, ending: Ending) -> tuple[Outcome, str]:
    """Return the outcome of a boot and one line with the reason, which is empty for an ``ok`` boot.

    A failure of QEMU takes precedence, then an error record of the agent, then the kernel's messages: a
    kernel that panics while it powers off, after the agent's ``bye``, has the outcome ``panic``.
    """
    lines = lines_of(console)
    outcome: Outcome
    if ending.how == "broken":
        outcome, detail = "infrastructure-error", ending.detail
    elif records.error is not None:
        outcome, detail = "agent-error", records.error
    elif panic := _first(lines, _PANIC):
        outcome, detail = _panic(lines, panic)
    elif records.bye and ending.how == "powered-off":
        outcome, detail = "ok", ""
    else:
        outcome, detail = _unfinished(lines, ending)
    if records.cut:
        detail = f"{detail}; the last record was cut after {records.cut} bytes".removeprefix("; ")
    return outcome, detail


def _unfinished(lines: list[str], ending: Ending) -> tuple[Outcome, str]:
    out_of_memory = _first(lines, _OUT_OF_MEMORY)
    if out_of_memory:
        return "oom", out_of_memory
    if ending.how == "silent":
        # Not the last line of the console: it is often an old message of the boot.
        return "hang", "; ".join(filter(None, (ending.detail, _first_problem(lines))))
    if ending.how == "flooded":
        return "agent-error", f"{ending.detail}; {_last_message(lines)}"
    if ending.how == "reset":
        return "panic", f"the guest reset itself without a panic message; {_last_message(lines)}"
    early = f"the guest powered off before the agent's bye; {_last_message(lines)}"
    return "agent-error", _first(lines, _AGENT_ERROR) or early


def _panic(lines: list[str], panic: str) -> tuple[Outcome, str]:
    oops = _first_problem(lines[: lines.index(panic)])
    if _OUT_OF_MEMORY_PANIC.search(panic):
        return "oom", panic
    died = _INIT_DIED.search(panic)
    # Without panic_on_oops, an oops in a system call of PID 1 kills PID 1. The outcome is then a panic.
    if died and not oops:
        status = int(died[1], 16)  # In the format of wait(2).
        how = f"was killed by signal {status & 0x7F}" if status & 0x7F else f"exited with {status >> 8}"
        return "agent-error", f"the agent {how}: {panic}"
    return "panic", f"{panic}; {oops}" if oops else panic


def _last_message(lines: list[str]) -> str:
    """Return the first oops or complaint of the kernel, or else the last line of the console."""
    last = f"last on the console: {lines[-1]}" if lines else "nothing on the console"
    return _first_problem(lines) or last


def _first_problem(lines: list[str]) -> str:
    """Return the first oops or, without one, the first complaint of another kind; empty if there is none."""
    kinds = [(kind, line) for line in lines if (kind := kind_of(line))]
    grave = [line for kind, line in kinds if kind in ("oops", "corruption", "stall")]
    return (grave or [line for _, line in kinds] or [""])[0]


def _first(lines: list[str], pattern: re.Pattern[str]) -> str:
    return next((line for line in lines if pattern.search(line)), "")
