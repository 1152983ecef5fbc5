"""The sentences of what was present, without marks of any format."""

from collections.abc import Sequence

from kteardown.catalogue.releases import version_of
from kteardown.report.formatting import saved_percent
from kteardown.visible import on_one_line
from kteardown_observe.calibrate import ARCH, InstructionRate
from kteardown_observe.counts import MachineCounts, ObservedMachine
from kteardown_observe.estimate import INSTRUCTIONS, CostEstimate, Improvement
from kteardown_observe.judge import Judgement, PresentProblem
from kteardown_observe.limit_words import limits_text

_WIDE = 1.1
"""A range is printed if its high end is more than this many times its low end."""
_OWNERS = 3
_UNITS = {
    INSTRUCTIONS: (
        (1e12, "{} trillion instructions"),
        (1e9, "{} billion instructions"),
        (1e6, "{} million instructions"),
        (1e3, "{} thousand instructions"),
        (1, "{} instructions"),
    ),
    "kb": ((1 << 20, "{} GB"), (1 << 10, "{} MB"), (1, "{} kB")),
    "ns": ((1e9, "{} s"), (1e6, "{} ms"), (1e3, "{} us"), (1, "{} ns")),
}


def machine_text(counts: MachineCounts) -> str:
    """Return what machine it is."""
    host = counts.host
    parts = [f"Linux {host.release or 'of an unknown release'}"]
    if host.arch and host.arch != ARCH:
        parts.append(host.arch)
    if host.possible_cpus:
        parts.append(f"{host.online_cpus or '?'} of {host.possible_cpus} possible CPUs")
    if (host.numa_nodes or 1) > 1:
        parts.append(f"{host.numa_nodes} NUMA nodes")
    if host.memory_kb:
        parts.append(amount(host.memory_kb, host.memory_kb, host.memory_kb, "kb"))
    if host.container:
        parts.append("in a container")
    return on_one_line(", ".join(parts))


def taken_text(counts: MachineCounts) -> str:
    """Return by whom and at what cost the counts were taken."""
    taken = counts.taken
    count = len(taken.removed_instances)
    removed = f"; removed what {count} killed collector(s) had left in tracefs" if count else ""
    return on_one_line(
        f"read as {taken.user} in {taken.wall_s:.1f} s, with {taken.cpu_s:.2f} s of CPU time and "
        f"{taken.peak_kb / 1024:.0f} MB{removed}"
    )


def summary_text(judgement: Judgement) -> str:
    """Return how many problems were looked for, and how many are there."""
    here = len(judgement.present)
    unknown = len(judgement.unknown)
    looked_for = here + len(judgement.absent) + unknown
    absent = f"{len(judgement.absent)} {'is' if len(judgement.absent) == 1 else 'are'} not"
    rest = f", and {unknown} could not be counted" if unknown else ""
    number_here = f"{here} {'is' if here == 1 else 'are'}" if here else "none is"
    problems = f"looked for {looked_for} problems: {number_here} here, {absent}{rest}"
    return f"{problems}; {limits_text(judgement.limits)}"


def title_text(present: PresentProblem) -> str:
    """Return what there are many of, with the number and the owners that have most."""
    least = "" if present.is_complete else "at least "
    number_text = count_text(present.problem.count, present.number)
    owners = owners_text(present)
    return f"{present.problem.title}: {least}{number_text}{owners}"


def count_text(count: str, number_of: int) -> str:
    """Return a number of objects, or a size if the count is one."""
    if count.endswith("_kb"):
        return amount(number_of, number_of, number_of, "kb")
    return f"{number_of:,}"


def owners_text(present: PresentProblem) -> str:
    """Return who has most, in parentheses; empty if nobody is known."""
    owners = present.owners
    problem = present.problem
    if not owners:
        return ""
    if problem.of == "largest":
        return f" ({on_one_line(owners[0].name)})"
    texts = [
        f"{on_one_line(owner.name)} has {count_text(problem.count, owner.number)}"
        for owner in owners[:_OWNERS]
    ]
    return f" ({', '.join(texts)})"


def cost_text(present: PresentProblem) -> str:
    """Return what it costs when."""
    if present.cost is None:
        return f"{present.problem.event}: how much was not measured"
    return f"{present.problem.event}: {bounded_text(present)}"


def bounded_text(present: PresentProblem) -> str:
    """Return the cost with its unit; of a bound, only the end that bounds."""
    assert present.cost is not None
    cost = present.cost
    if present.at_most and present.at_least:
        return f"roughly {range_text(cost)}"
    if present.at_most:
        return f"at most {amount(cost.high, cost.high, cost.high, cost.unit)}"
    if present.at_least:
        return f"at least {amount(cost.low, cost.low, cost.low, cost.unit)}"
    return range_text(cost)


def range_text(cost: CostEstimate) -> str:
    """Return a cost with its unit."""
    return amount(cost.low, cost.value, cost.high, cost.unit)


def amount(low: float, value: float, high: float, unit: str) -> str:
    """Return a value with its unit, or its range if that is wide."""
    size, text = next(
        ((size, text) for size, text in _UNITS[unit] if value >= size), _UNITS[unit][-1]
    )
    if high <= _WIDE * low or not value:
        return text.format(_short(value / size))
    return text.format(f"{_short(low / size)} to {_short(high / size)}")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def part_text(part: PresentProblem) -> str:
    """Return a problem that the teardown of another one causes."""
    return f"{title_text(part)}; {cost_text(part)}"


def time_text(present: PresentProblem, rate: InstructionRate | None) -> str:
    """Return how much CPU time it takes on this machine, as a range.

    Empty if that is not known, or if the release sleeps: it takes much longer then.
    """
    cost = present.cost
    if rate is None or cost is None or cost.unit != INSTRUCTIONS or cost.sleeps_in:
        return ""
    low = cost.low * rate.low_ns
    high = cost.high * rate.high_ns
    time = amount(low, (low + high) / 2, high, "ns")
    return f"about {time} of CPU time here, if what it touches is in the cache"


def bounds_text(present: PresentProblem) -> str:
    """Return why a cost is a bound; empty if it is none."""
    parts = []
    if present.at_most:
        parts.append(f"so much only if {present.at_most}")
    if present.at_least:
        parts.append(f"perhaps more: {present.at_least}")
    return "; ".join(parts)


def sleep_text(present: PresentProblem) -> str:
    """Return that the release sleeps for each object; empty if it does not, or costs no work."""
    cost = present.cost
    if cost is None or not cost.sleeps_in or cost.unit != INSTRUCTIONS:
        return ""
    return f"besides, it sleeps for each of them, in {cost.sleeps_in}()"


def how_text(present: PresentProblem) -> str:
    """Return what the number is, if its name does not say it."""
    return f"counted: {on_one_line(present.how)}" if present.how else ""


def basis_text(present: PresentProblem, host: ObservedMachine) -> str:
    """Return where the law was measured, and how far beyond it the machine is."""
    cost = present.cost
    if cost is None:
        return ""
    where = f"measured on {_listed(cost.releases)}"
    if version_of(host.release or "") is None:
        where += " (the release of this machine is unknown)"
    elif all(version_of(name) != version_of(host.release or "") for name in cost.releases):
        where += ", the nearest to this release"
    if host.arch and host.arch != ARCH:
        where += f", on {ARCH}"
    if present.beyond and present.beyond >= _WIDE:
        where += f", with up to {cost.reach:,}; here are {_short(present.beyond)} times as many"
    growth = "; it grows faster than their number" if cost.is_superlinear else ""
    return f"{where}{growth}"


def _listed(names: Sequence[str]) -> str:
    """Return ``6.1, 6.12 and 7.2``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def relief_text(present: PresentProblem) -> str:
    """Return what would make it less; empty if nothing is known."""
    if not present.improvements:
        return ""
    texts = [_relief(improvement) for improvement in present.improvements]
    condition = f", if {present.problem.relief_if}" if present.problem.relief_if else ""
    return f"less with {', with '.join(texts)}{condition}"


def _relief(improvement: Improvement) -> str:
    shares = sorted((improvement.low, improvement.high))
    low, high = (saved_percent(1 - share) for share in shares)
    by = f"{low}" if low == high else f"{low} to {high}"
    if improvement.is_series:
        return f"our series {improvement.name} (by {by}, on {improvement.on_release})"
    return f"Linux {improvement.name} (by {by})"


def unknown_text(judgement: Judgement) -> str:
    """Return what was not counted, or not all of it, by reason; empty if all was."""
    by_reason: dict[str, list[str]] = {}
    unknown = [(problem.name, reason) for problem, reason in judgement.unknown]
    unknown += [(limit.name, reason) for limit, reason in judgement.limits.unknown]
    for name, reason in unknown:
        by_reason.setdefault(on_one_line(reason), []).append(name)
    reasons = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    if not reasons:
        return ""
    as_root = "; root can read more" if judgement.counts.taken.user != "root" else ""
    return f"not counted, or only a part of them: {'; '.join(reasons)}{as_root}"
