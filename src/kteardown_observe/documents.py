"""What was present, for programs: JSON, and metrics for the textfile collector of node_exporter."""

from dataclasses import asdict
from typing import Any

from kteardown_observe.calibrate import InstructionRate
from kteardown_observe.estimate import INSTRUCTIONS
from kteardown_observe.judge import Judgement, PresentProblem
from kteardown_observe.limits import limit_document

FORMAT = 1
"""Of the JSON."""
_KB = 1024


def document_of(judgement: Judgement, rate: InstructionRate | None) -> dict[str, Any]:
    """Return the JSON of ``observe --json``."""
    counts = judgement.counts
    return {
        "kteardown_observe": FORMAT,
        "machine": counts.host.model_dump(),
        "taken": counts.taken.model_dump(),
        "problems": [_problem(present) for present in judgement.present],
        "absent": [problem.name for problem in judgement.absent],
        "unknown": {problem.name: reason for problem, reason in judgement.unknown},
        "limits": [limit_document(used) for used in judgement.limits.used],
        "unknown_limits": {limit.name: reason for limit, reason in judgement.limits.unknown},
        "rate": asdict(rate) if rate else None,
        "rates": counts.rates.model_dump() if counts.rates else None,
    }


def _problem(present: PresentProblem) -> dict[str, Any]:
    return {
        "name": present.problem.name,
        "title": present.problem.title,
        "event": present.problem.event,
        "part_of": present.problem.part_of,
        "number": present.number,
        "is_complete": present.is_complete,
        "owners": [owner.model_dump() for owner in present.owners],
        "cost": asdict(present.cost) if present.cost else None,
        "at_least": present.at_least,
        "at_most": present.at_most,
        "how": present.how,
        "times_beyond": present.beyond,
        "improvements": [asdict(improvement) for improvement in present.improvements],
        "improvements_if": present.problem.relief_if,
    }


def openmetrics_of(judgement: Judgement) -> str:
    """Return metrics in the text format of OpenMetrics, which Prometheus reads, too.

    All are gauges in base units, without times of their own. Every problem that could be counted
    has its number, so that a graph has no gaps.
    """
    counts = judgement.counts
    numbers = {
        problem.name: counts.counts[problem.count].amount(problem.of)
        for problem in judgement.absent
    }
    numbers |= {present.problem.name: present.number for present in judgement.present}
    names = {present.problem.name for present in judgement.present}
    is_present = {name: int(name in names) for name in numbers}
    costs = [present for present in judgement.present if present.cost]
    work = [present for present in costs if _unit(present) == INSTRUCTIONS]
    memory = [present for present in costs if _unit(present) != INSTRUCTIONS]
    cpu = "kteardown_collector_cpu_seconds"
    families = (
        _family("problem_objects", "Objects of a problem of kteardown observe.", numbers),
        _family("problem_present", "Whether so many are a problem.", is_present),
        _costs("problem_cost_instructions", "Instructions that a problem costs.", work),
        _costs("problem_memory_bytes", "Memory that a problem keeps.", memory, "bytes", _KB),
        _limits(judgement),
        [f"# TYPE {cpu} gauge", f"# UNIT {cpu} seconds"],
        [f"# HELP {cpu} CPU time that the collector took."],
        [f"{cpu} {counts.taken.cpu_s:g}", "# EOF"],
    )
    return "\n".join(line for family in families for line in family) + "\n"


def _bound(present: PresentProblem) -> str:
    """Return which bound a cost is: ``none``, ``at_most``, ``at_least`` or ``both``."""
    if present.at_most and present.at_least:
        return "both"
    return "at_most" if present.at_most else "at_least" if present.at_least else "none"


def _unit(present: PresentProblem) -> str:
    return present.cost.unit if present.cost else ""


def _family(name: str, help_text: str, values: dict[str, int]) -> list[str]:
    lines = [f"# TYPE kteardown_{name} gauge", f"# HELP kteardown_{name} {help_text}"]
    return lines + [
        f'kteardown_{name}{{problem="{key}"}} {value}' for key, value in sorted(values.items())
    ]


def _limits(judgement: Judgement) -> list[str]:
    name = "kteardown_limit_used_ratio"
    lines = [f"# TYPE {name} gauge", f"# UNIT {name} ratio"]
    lines += [f"# HELP {name} How much of a limit of the kernel is used; 1 if it is reached."]
    shares = sorted((used.limit.name, used.share) for used in judgement.limits.used)
    return lines + [f'{name}{{limit="{limit}"}} {share:.6f}' for limit, share in shares]


def _costs(
    name: str, help_text: str, problems: list[PresentProblem], unit: str = "", factor: int = 1
) -> list[str]:
    lines = [f"# TYPE kteardown_{name} gauge"]
    lines += [f"# UNIT kteardown_{name} {unit}"] if unit else []
    lines += [f"# HELP kteardown_{name} {help_text}"]
    for present in problems:
        assert present.cost is not None
        cost = present.cost
        ends = (("low", cost.low), ("middle", cost.value), ("high", cost.high))
        labels = f'problem="{present.problem.name}",bound="{_bound(present)}"'
        lines += [
            f'kteardown_{name}{{{labels},end="{end}"}} {value * factor:g}' for end, value in ends
        ]
    return lines
