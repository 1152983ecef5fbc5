"""Find what a kernel reported about itself in its log, and classify the outcome of a boot. No side
effects.

It reports oopses, warnings, lockdep reports and leaks.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kteardown.model.record import AgentError, Bye, KernelProblem, Outcome, ProblemKind, parse
from kteardown.model.script_records import OutputLine
from kteardown.paths import shipped_table

TRIAL_MARK = "kteardown: trial "
"""What the agent writes to the log at the start of each trial, followed by the index of the
trial."""
_EXCERPT = 40
"""Lines of a report that are kept; the whole console is in the run directory."""
_LONGEST = 300
_MOST_LINES = 100_000
_WRITTEN = 20_000
"""As many lines as the agent reports of a log."""

_KNOWN = shipped_table("vm/kernel_log")
_KINDS = TypeAdapter(dict[ProblemKind, re.Pattern[str]]).validate_python(
    {kind: "|".join(patterns) for kind, patterns in _KNOWN["kinds"].items()}
)
_PARTS = {name: re.compile(pattern) for name, pattern in _KNOWN["parts"].items()}
_STAMP = re.compile(r"^\s*\[\s*(\d+)\.(\d{6})\]")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
"""How /dev/kmsg shows what is not a printable character, newlines within a message too."""
_MARK = re.compile(rf"^{re.escape(TRIAL_MARK)}(\d+)")


def lines_of(console: str) -> list[str]:
    """Return the lines of a console that are not empty, without timestamps and control characters.

    Of more than 100,000 lines they are the last ones: 4 MB of a real log have 60,000.
    """
    plain = (plain_line(line) for line in re.split(r"[\r\n]+", console)[-_MOST_LINES:])
    return [line[:_LONGEST] for line in plain if line]


def plain_line(line: str) -> str:
    """Return the text of a line of a console, without its timestamp and control characters."""
    return _PARTS["escapes"].sub("", _PARTS["prefix"].sub("", line, count=1)).strip()


def without_written(console: str, written: Mapping[int, str]) -> str:
    """Return a console without the lines that user space wrote to the log, which can read like a
    panic."""

    def is_kernels(line: str) -> bool:
        stamp = _STAMP.match(line)
        return not stamp or plain_line(line)[:_LONGEST] not in written.get(
            int(stamp[1] + stamp[2]), ""
        )

    return "\n".join(filter(is_kernels, re.split(r"[\r\n]+", console))) if written else console


def kind_of(line: str) -> ProblemKind | None:
    """Return the kind of the problem that this line of a log reports; None if it reports none."""
    if _PARTS["no_problem"].match(line):
        return None
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(line)), None)


def signature(kind: ProblemKind, excerpt: Sequence[str]) -> str:
    """Return what a report has in common with a report of the same problem in another boot or
    kernel."""
    # The first line has no addresses, offsets, tasks and line numbers. Where it names no place,
    # what does is added: the locks of a lockdep report, the functions that allocated what leaked.
    first = _PARTS["address"].sub("#", _PARTS["suffix"].sub("", _PARTS["task"].sub("", excerpt[0])))
    if kind == "lockdep":
        locks = dict.fromkeys(
            name for line in excerpt[:20] for name in _PARTS["lock"].findall(line)
        )
        place = next((line for line in excerpt[1:4] if re.match(r"\S+\.[ch]:\d+ ", line)), "")
        return " ".join([first, *locks, _PARTS["address"].sub("#", place)]).strip()
    if kind == "leak":
        functions = [
            _PARTS["suffix"].sub("", name)
            for line in excerpt
            for name in _PARTS["function"].findall(line)
        ]
        return " ".join([first, *functions[:8]])
    return first


def problems(console: str) -> tuple[KernelProblem, ...]:
    """Return every problem that the kernel reported, once each, in the order of its first report.

    ``trials`` are the trials that were running; an oops and the panic that it causes are one
    problem. The log that a panic prints again is not read.
    """
    lines = lines_of(console)
    panic = next(
        (number for number, line in enumerate(lines) if kind_of(line) == "panic"), len(lines)
    )
    again = (n for n, line in enumerate(lines[panic:], panic) if _PARTS["replay"].match(line))
    lines = lines[: next(again, len(lines))]
    problem_by_key: dict[tuple[ProblemKind, str], KernelProblem] = {}
    trial: int | None = None
    report: ProblemKind | None = None
    left = 0
    for number, line in enumerate(lines):
        mark = _MARK.match(line)
        if mark:
            trial = int(mark[1])
        left = 0 if mark or _PARTS["rule"].match(line) else left - 1
        kind = kind_of(line)
        if kind is None or (report is not None and left > 0 and _belongs(report, kind)):
            left = 0 if _PARTS["end"].match(line) else left
            continue
        excerpt = _excerpt(lines, number)
        report = kind
        left = _EXCERPT
        key = (kind, signature(kind, excerpt))
        if key not in problem_by_key:
            problem_by_key[key] = KernelProblem(
                kind=kind, line=line, signature=key[1], excerpt=excerpt
            )
        if trial is not None and trial not in problem_by_key[key].trials:
            problem_by_key[key] = problem_by_key[key].model_copy(
                update={"trials": (*problem_by_key[key].trials, trial)}
            )
    return tuple(problem_by_key.values())


def last_lines_of(console: str) -> tuple[str, ...]:
    """Return the end of a console, up to 40 lines; of a panic, its beginning, before the whole
    log."""
    # If the CPUs were idle, the stacks of the blocked tasks say more, where the kernel printed
    # them.
    lines = [line for line in lines_of(console) if not _PARTS["registers"].match(line)]
    panic = next((number for number, line in enumerate(lines) if kind_of(line) == "panic"), None)
    if panic is None:
        return tuple(lines[-_EXCERPT:])
    blocked = next(
        (number for number, line in enumerate(lines) if _PARTS["blocked"].match(line)), None
    )
    idle = any(_PARTS["idle"].search(line) for line in lines[panic : panic + _EXCERPT])
    start = blocked if idle and blocked is not None else panic
    return tuple(lines[start : start + _EXCERPT])


def _belongs(first: ProblemKind, later: ProblemKind) -> bool:
    """Return whether a later line is a part of the report that it is printed in."""
    if later in ("oops", "panic"):
        return first in ("oops", "corruption", "stall")
    return later == first or (later == "warning" and first in ("corruption", "leak"))


def _excerpt(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """Return the report that begins at ``start``, up to its end mark, without registers."""
    excerpt: list[str] = []
    for line in lines[start:]:
        if (excerpt and (_MARK.match(line) or _PARTS["all_cpus"].match(line))) or len(
            excerpt
        ) == _EXCERPT:
            break
        if not _PARTS["registers"].match(line):
            excerpt.append(line)
        if _PARTS["end"].match(line):
            break
    return tuple(excerpt)


@dataclass
class RecordsSeen:
    """A summary of what was received through the records port."""

    lines: int = 0
    bye: bool = False
    error: str | None = None
    """The detail of the agent's ``error`` record."""
    cut: int = 0
    """The number of bytes after the last newline."""
    written: dict[int, str] = field(default_factory=dict)
    """What user space wrote to the kernel's log (/dev/kmsg), by the time of the log in
    microseconds."""

    def note(self, raw: bytes) -> None:
        """Read a line, if it is a record that counts here."""
        if b'"bye"' in raw or b'"error"' in raw or b'"facility"' in raw:
            with contextlib.suppress(ValidationError):
                record = parse(raw)
                self.bye |= isinstance(record, Bye)
                self.error = record.detail if isinstance(record, AgentError) else self.error
                if (
                    isinstance(record, OutputLine)
                    and record.facility
                    and len(self.written) < _WRITTEN
                ):
                    text = _ESCAPED.sub(lambda byte: chr(int(byte[1], 16)), record.text)
                    at_us = record.at_ns // 1000
                    self.written[at_us] = self.written.get(at_us, "") + _PARTS["escapes"].sub(
                        "", text
                    )


@dataclass(frozen=True)
class Ending:
    """How the machine ended.

    ``powered-off`` and ``reset``: by the guest; ``silent``: without a record for the time allowed;
    ``flooded``: with more output than is allowed; ``broken``: QEMU itself failed. ``detail``
    describes the last three. What a silent guest printed after ``console_bytes`` of its console is
    the answer to the lab's interrupt.
    """

    how: Literal["powered-off", "reset", "silent", "flooded", "broken"]
    detail: str = ""
    note: str = ""
    """Text that is added to the end of the console: the registers of a silent guest."""
    console_bytes: int | None = None


def said_at_end(
    printed: str, records: RecordsSeen, ending: Ending, answer: str = ""
) -> dict[str, Any]:
    """Return fields of a BootEnd, of what a kernel printed by itself, and in ``answer`` to an
    interrupt."""
    console = without_written(printed, records.written)
    outcome, detail = classify(console, records, ending)
    last = () if outcome == "ok" else last_lines_of(answer or console)
    return {"outcome": outcome, "detail": detail, "problems": problems(console), "last_lines": last}


def classify(console: str, records: RecordsSeen, ending: Ending) -> tuple[Outcome, str]:
    """Return the outcome of a boot and one line with the reason, which is empty for an ``ok``
    boot."""
    # A failure of QEMU takes precedence, then an error record of the agent, then the kernel's
    # messages: a kernel that panics while it powers off, after the agent's ``bye``, has the outcome
    # ``panic``. It resets the machine (panic=-1): before a normal end, what reads like a panic was
    # written by a script.
    lines = lines_of(console)
    outcome: Outcome
    if ending.how == "broken":
        outcome = "infrastructure-error"
        detail = ending.detail
    elif records.error is not None:
        outcome = "agent-error"
        detail = records.error
    elif records.bye and ending.how == "powered-off":
        outcome = "ok"
        detail = ""
    elif panic := _first(lines, _PARTS["panic"]):
        outcome, detail = _panic(lines, panic)
    else:
        outcome, detail = _unfinished(lines, ending)
    if records.cut:
        detail = f"{detail}; the last record was cut after {records.cut} bytes".removeprefix("; ")
    return outcome, detail


def _unfinished(lines: list[str], ending: Ending) -> tuple[Outcome, str]:
    out_of_memory = _first(lines, _PARTS["out_of_memory"])
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
    return "agent-error", _first(lines, _PARTS["agent_error"]) or early


def _panic(lines: list[str], panic: str) -> tuple[Outcome, str]:
    oops = _first_problem(lines[: lines.index(panic)])
    if _PARTS["out_of_memory_panic"].search(panic):
        return "oom", panic
    died = _PARTS["init_died"].search(panic)
    # Without panic_on_oops, an oops in a system call of PID 1 kills PID 1. The outcome is then a
    # panic.
    if died and not oops:
        status = int(died[1], 16)  # In the format of wait(2).
        how = (
            f"was killed by signal {status & 0x7F}"
            if status & 0x7F
            else f"exited with {status >> 8}"
        )
        return "agent-error", f"the agent {how}: {panic}"
    return "panic", f"{panic}; {oops}" if oops else panic


def _last_message(lines: list[str]) -> str:
    """Return the first oops or complaint of the kernel, or else the last line of the console."""
    last = f"last on the console: {lines[-1]}" if lines else "the console is empty"
    return _first_problem(lines) or last


def _first_problem(lines: list[str]) -> str:
    """Return the first oops or, without one, the first complaint of another kind; empty if there is
    none."""
    kinds = [(kind, line) for line in lines if (kind := kind_of(line))]
    grave = [line for kind, line in kinds if kind in ("oops", "corruption", "stall")]
    return (grave or [line for _, line in kinds] or [""])[0]


def _first(lines: list[str], pattern: re.Pattern[str]) -> str:
    return next((line for line in lines if pattern.search(line)), "")
