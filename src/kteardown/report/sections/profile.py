"""Where the time goes: the functions with the most time, and differential flame graphs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kteardown.model.clock import Clock
from kteardown.model.judged import Verdict
from kteardown.model.point import key
from kteardown.model.result import Result
from kteardown.model.samples import Stacks
from kteardown.model.stack_profile import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.report.chart_model import Chart, FlameFrame, Gallery, slug
from kteardown.report.charts import written
from kteardown.report.formatting import parameter, point_text
from kteardown.report.material import Material
from kteardown.report.table import Block, Table, Text

_ROWS = 15
_VAGUE = 2.0
"""An exponent whose interval is wider than this is not shown."""
_UNITS: dict[Clock, str] = {"instructions": "instructions", "wall": "ns", "contention": "ns"}


def profile_tables(result: Result) -> list[Table]:
    """Return a table for each profiled workload, at its largest point."""
    return [
        _table(profile, _UNITS[result.clock]) for profile in result.profiles if profile.functions
    ]


def _table(profile: Profile, unit: str) -> Table:
    rows = [
        f
        for n, f in enumerate(profile.functions)
        if n < _ROWS or any(c.grows or c.differs for c in f.costs)
    ]
    names = ("function", "called by")
    keys = Block.of(
        names, [(f.function, f.callers[0] if f.callers else "") for f in rows], left=names
    )
    kernels = list(dict.fromkeys(stretch.kernel for stretch in profile.stretches))
    blocks = tuple(_block(profile, rows, kernel, unit) for kernel in kernels)
    at = point_text(_largest(profile, kernels[0]).point)
    title = f"{profile.workload}: where the time goes{f' at {at}' if at else ''}"
    stretches = [_largest(profile, kernel) for kernel in kernels]
    notes = (
        *written("claims", profile, unit, _exponent),
        *written("method", profile, stretches, unit),
    )
    return Table(title, keys, blocks, notes)


def _block(profile: Profile, rows: Sequence[ProfiledFunction], kernel: str, unit: str) -> Block:
    sizes = [
        parameter(s.point.get(profile.param, "")) for s in profile.stretches if s.kernel == kernel
    ]
    several = len(sizes) > 1
    costs = [next((c for c in f.costs if c.kernel == kernel), None) for f in rows]
    differs = any(c is not None and c.difference_ns is not None for c in costs)
    columns = [f"{kernel} at {sizes[0]}", f"at {sizes[-1]}"] if several else [kernel]
    columns.append(f"{unit} each" if profile.param else unit)
    columns += ["exponent"] if several else []
    columns += ["change"] if differs else []
    lines: list[Sequence[Text]] = []
    for cost in costs:
        if cost is None:
            lines.append((None,) * len(columns))
            continue
        cells: list[Text] = [_share(cost.smallest_share)] if several else []
        time = f"{cost.self_ns:,.0f}" if cost.self_ns >= 10 else f"{cost.self_ns:.1f}"
        cells += [_share(cost.self_share), time]
        if several:
            cells.append((_exponent(cost), "worse" if cost.grows else None))
        if differs:
            change = cost.difference_ns or 0.0
            tone: Verdict = "worse" if change > 0 else "better"
            cells.append((f"{change:+,.0f}", tone if cost.differs else None))
        lines.append(cells)
    return Block.of(columns, lines)


def _largest(profile: Profile, kernel: str) -> ProfiledStretch:
    return [stretch for stretch in profile.stretches if stretch.kernel == kernel][-1]


def _exponent(cost: FunctionCost) -> str:
    if cost.exponent is None or cost.exponent_ci is None:
        return "-"
    low, high = cost.exponent_ci
    return f"{cost.exponent:.1f} [{low:.1f}, {high:.1f}]" if high - low < _VAGUE else "-"


def _share(value: float) -> str:
    return f"{value:.1%}"


_LEAST = 0.003
"""A smaller part of the whole is too thin to see and is left out."""
_FULL = 0.02
"""A difference of this part of base's time, or half of the largest if that is more, has the full
colour."""


@dataclass
class _Node:
    """A function on one path, with the ns in it and its callees by kernel."""

    name: str
    ns: dict[str, float] = field(default_factory=dict)
    children: "dict[str, _Node]" = field(default_factory=dict)

    def add(self, kernel: str, ns: float) -> None:
        self.ns[kernel] = self.ns.get(kernel, 0.0) + ns


def flame_gallery(material: Material) -> Gallery | None:
    """Return every profiled variant compared with base at every point; None if there is no
    profile."""
    stacks = material.evidence.stacks
    charts: dict[tuple[str, ...], Chart] = {}
    bases = {(s.workload, key(s.point)): s for s in stacks if s.kernel == "base"}
    pairs = [(bases.get((s.workload, key(s.point))), s) for s in stacks if s.kernel != "base"]
    compared = [(base, s) for base, s in pairs if base] or [(base, base) for base in bases.values()]
    for base, s in compared:
        for width in dict.fromkeys(("base", s.kernel)):
            charts[s.kernel, _point_label(s), width] = _chart(base, s, width)
    if not charts:
        return None
    largest = _point_label(max((s for _, s in compared), key=lambda s: sum(s.ns.values())))
    first = next(option for option in charts if option[1] == largest)
    return Gallery("flame", ("kernel", "at", "widths by time on"), charts, first)


def _point_label(s: Stacks) -> str:
    return f"{s.workload} {point_text(s.point)}".rstrip()


def _chart(base: Stacks, changed: Stacks, width: str) -> Chart:
    root = _Node("all")
    for s in (base, changed) if changed is not base else (base,):
        for path, ns in s.ns.items():
            node = root
            node.add(s.kernel, ns)
            for name in path:
                node = node.children.setdefault(name, _Node(name))
                node.add(s.kernel, ns)
    totals = {s.kernel: sum(s.ns.values()) for s in (base, changed)}
    nodes = _walk(root, width, _LEAST * totals[width])
    differences = [
        (node.ns.get(changed.kernel, 0.0) - node.ns.get(base.kernel, 0.0)) / totals[base.kernel]
        for *_, node in nodes
    ]
    full = max(_FULL, max(map(abs, differences)) / 2)
    hidden = (
        1 - sum(node.ns.get(width, 0.0) for _, level, node in nodes if level == 1) / totals[width]
    )
    at = f" at {point_text(base.point)}" if base.point else ""
    against = f": {changed.kernel} against base" if changed is not base else ""
    frames = []
    for (left, level, node), difference in zip(nodes, differences, strict=True):
        ours, theirs = (node.ns.get(kernel, 0.0) for kernel in (base.kernel, changed.kernel))
        text = f"base: {ours:,.0f}, {ours / totals[base.kernel]:.1%} of its time"
        if changed is not base:
            text += f"; {changed.kernel}: {theirs:,.0f}, {theirs / totals[changed.kernel]:.1%}"
            text += f"; difference: {theirs - ours:+,.0f}"
        more = max(-1.0, min(1.0, difference / full))
        place = 100 * left / totals[width], 100 * node.ns.get(width, 0.0) / totals[width]
        frames.append(FlameFrame(*place, level, node.name, text, more))
    return Chart(
        name=slug("flame", changed.kernel, base.workload, point_text(base.point), f"by-{width}"),
        title=f"Where the time goes{at}{against}",
        about=(
            f"Flame graph of {base.workload}{at}{against}, {len(nodes)} functions; the table of "
            "functions has the figures."
        ),
        drawn=tuple(frames),
        notes=(
            f"the outermost function is at the top; widths are times on {width}; paths below "
            f"{_LEAST:.1%} of its time are left out, {hidden:.1%} at the first level",
            f"blue: less time than on base, orange: more; full colour at {full:.0%} of base's time",
        )[: 1 if changed is base else 2],
    )


def _walk(root: _Node, width: str, least: float) -> list[tuple[float, int, _Node]]:
    """Return the wide nodes, each with its left end in ns and its depth."""
    placed = [(0.0, 0, root)]
    for left, level, node in placed:
        end = left
        for child in sorted(node.children.values(), key=lambda child: child.name):
            ns = child.ns.get(width, 0.0)
            if ns >= least:
                placed.append((end, level + 1, child))
                end += ns
    return placed
