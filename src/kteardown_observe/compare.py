"""Two machines, or one at two times, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

from kteardown.catalogue.problems import load_problems
from kteardown_observe import words
from kteardown_observe.judge import Judgement, PresentProblem
from kteardown_observe.limit_words import percent
from kteardown_observe.limits import JudgedLimits, load_limits

_COLUMNS = ("problem", "first", "second", "cost, first", "cost, second")


@dataclass(frozen=True)
class ProblemPair:
    """A problem that at least one of two machines has; None where it has not."""

    name: str
    first: PresentProblem | None
    second: PresentProblem | None


def pairs(first: Judgement, second: Judgement) -> Iterator[ProblemPair]:
    """Yield the problems of either machine, in the order of the catalogue."""
    firsts = {present.problem.name: present for present in first.present}
    seconds = {present.problem.name: present for present in second.present}
    for problem in load_problems():
        if problem.name in firsts or problem.name in seconds:
            yield ProblemPair(problem.name, firsts.get(problem.name), seconds.get(problem.name))


def comparison_text(first: Judgement, second: Judgement) -> str:
    """Return a table of the problems of either."""
    lines = [f"first: {words.machine_text(first.counts)}"]
    lines += [f"second: {words.machine_text(second.counts)}"]
    rows = [_COLUMNS, *(_row(pair, first, second) for pair in pairs(first, second))]
    rows += _limit_rows(first.limits, second.limits)
    if len(rows) == 1:
        return "\n".join([*lines, "", "neither has a problem that kteardown knows"]) + "\n"
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    lines += [""]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _row(pair: ProblemPair, first: Judgement, second: Judgement) -> tuple[str, ...]:
    return (
        pair.name,
        _number(pair.name, pair.first, first),
        _number(pair.name, pair.second, second),
        _cost(pair.first),
        _cost(pair.second),
    )


def _limit_rows(first: JudgedLimits, second: JudgedLimits) -> Iterator[tuple[str, ...]]:
    """Yield the limits of the kernel that either is close to, each with its shares."""
    close = {used.limit.name for used in (*first.close, *second.close)}
    shares = [
        {used.limit.name: percent(used) for used in limits.used} for limits in (first, second)
    ]
    for limit in load_limits():
        if limit.name in close:
            yield limit.name, *(share.get(limit.name, "not read") for share in shares), "", ""


def _number(name: str, present: PresentProblem | None, judgement: Judgement) -> str:
    if present:
        return f"{'' if present.is_complete else '>='}{present.number:,}"
    for problem in judgement.absent:
        if problem.name == name:
            return f"{judgement.counts.counts[problem.count].amount(problem.of):,}"
    return "not counted"


def _cost(present: PresentProblem | None) -> str:
    if present is None or present.cost is None:
        return ""
    return words.bounded_text(present)
