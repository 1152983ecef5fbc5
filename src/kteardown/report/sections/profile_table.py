"""The table of a profile: the functions with the most time, their growth, and their difference from base."""

from collections.abc import Iterable, Sequence

from kteardown.model.clock import Clock
from kteardown.model.profile_result import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.model.result import Result, Verdict
from kteardown.report.formatting import counted, parameter, point_text
from kteardown.report.table import Block, Table, Text

_ROWS = 15
_VAGUE = 2.0
"""An exponent whose interval is wider than this is not shown."""
_UNITS: dict[Clock, str] = {"instructions": "instructions", "wall": "ns"}


def profile_tables(result: Result) -> list[Table]:
    """Return a table for each profiled workload, at its largest point."""
    return [_table(profile, _UNITS[result.clock]) for profile in result.profiles if profile.functions]


def _table(profile: Profile, unit: str) -> Table:
    rows = [
        f for n, f in enumerate(profile.functions) if n < _ROWS or any(c.grows or c.differs for c in f.costs)
    ]
    names = ("function", "called by")
    keys = Block.of(names, [(f.function, f.callers[0] if f.callers else "") for f in rows], left=names)
    kernels = list(dict.fromkeys(stretch.kernel for stretch in profile.stretches))
    blocks = tuple(_block(profile, rows, kernel, unit) for kernel in kernels)
    at = point_text(_largest(profile, kernels[0]).point)
    title = f"{profile.workload}: where the time goes{f' at {at}' if at else ''}"
    return Table(title, keys, blocks, (*_claims(profile, unit), *_method(profile, kernels, unit)))


def _block(profile: Profile, rows: Sequence[ProfiledFunction], kernel: str, unit: str) -> Block:
    sizes = [parameter(s.point.get(profile.param, "")) for s in profile.stretches if s.kernel == kernel]
    several = len(sizes) > 1
    costs = [next((c for c in f.costs if c.kernel == kernel), None) for f in rows]
    differs = any(c is not None and c.difference_ns is not None for c in costs)
    columns = [kernel]
    if several:
        columns = [f"{kernel} at {sizes[0]}", f"at {sizes[-1]}"]
    columns += [f"{unit} each" if profile.param else unit]
    columns += ["exponent"] if several else []
    columns += ["change"] if differs else []
    return Block.of(columns, [_cells(c, several, differs) for c in costs])


def _cells(cost: FunctionCost | None, several: bool, differs: bool) -> Sequence[Text]:
    if cost is None:
        return (None,) * (2 + 2 * several + differs)
    cells: list[Text] = [_share(cost.smallest_share)] if several else []
    time = f"{cost.self_ns:,.0f}" if cost.self_ns >= 10 else f"{cost.self_ns:.1f}"
    cells += [_share(cost.self_share), time]
    if several:
        cells.append((_exponent(cost), "worse" if cost.grows else None))
    if differs:
        change = cost.difference_ns or 0.0
        tone: Verdict = "worse" if change > 0 else "better"
        cells.append((f"{change:+,.0f}", tone if cost.differs else None))
    return cells


def _claims(profile: Profile, unit: str) -> list[str]:
    """Return a sentence for every claim."""
    each = f"{unit} for each of {profile.param}" if profile.param else unit
    lines = []
    for function in profile.functions:
        for cost in function.costs:
            if cost.grows and cost.exponent_ci:
                lines.append(
                    f"{cost.kernel}: {function.function} grows faster than {profile.param}: exponent "
                    f"{_exponent(cost)}, {_share(cost.smallest_share)} of the time at the smallest point and "
                    f"{_share(cost.self_share)} at the largest{_no_interrupts(cost)}"
                )
    for function in profile.functions:
        for cost in function.costs:
            if cost.differs and cost.difference_ci:
                low, high = cost.difference_ci
                lines.append(
                    f"{cost.kernel}: {function.function} differs from base by {cost.difference_ns:+,.0f} "
                    f"[{low:+,.0f}, {high:+,.0f}] {each}{_no_interrupts(cost)}"
                )
    return lines


def _method(profile: Profile, kernels: Iterable[str], unit: str) -> list[str]:
    lines = []
    for kernel in kernels:
        stretch = _largest(profile, kernel)
        lost = f", {stretch.lost:,} lost" if stretch.lost else ""
        lines.append(
            f"{kernel}: {stretch.samples:,} samples{lost} every {stretch.period_ns:,} {unit} on "
            f"{counted(stretch.cpus, 'CPU')}, {counted(stretch.stretches, 'repetition')} in "
            f"{counted(stretch.boots, 'boot')}, each "
            f"{stretch.stretch_ns:,.0f} {unit} long, sampling included; "
            f"CPUs idle {_share(stretch.idle_share)} of the time"
        )
    lines.append(
        "shares are of the time in which a CPU was busy, in the function itself without its callees; "
        f"intervals are at {profile.confidence:.0%}, and claims are corrected for all functions of the "
        "profile; time with interrupts off is counted where they are enabled again; sampled in separate "
        "boots, which are not compared"
    )
    if any(s.boots == 1 and s.cpus > 1 for s in profile.stretches):
        lines.append(
            "one boot of several CPUs: another order of tasks can give other figures, which the intervals do "
            "not include"
        )
    lines.append("stacks for flame graph tools: profile/*.folded in the run directory")
    return lines


def _largest(profile: Profile, kernel: str) -> ProfiledStretch:
    return [stretch for stretch in profile.stretches if stretch.kernel == kernel][-1]


def _exponent(cost: FunctionCost) -> str:
    if cost.exponent is None or cost.exponent_ci is None:
        return "-"
    low, high = cost.exponent_ci
    return f"{cost.exponent:.1f} [{low:.1f}, {high:.1f}]" if high - low < _VAGUE else "-"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _no_interrupts(cost: FunctionCost) -> str:
    """Return the share of the function's time without interrupts if it is at least half, else nothing."""
    if cost.no_interrupts < 0.5:
        return ""
    return f"; {cost.no_interrupts:.0%} of its time without interrupts"
