"""Differential flame graphs: where the time goes, and where it is more or less than on base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kteardown.model.point import key
from kteardown.model.samples import Stacks
from kteardown.report.charts.figure import Chart, Flame, FlameFrame, Gallery, slug
from kteardown.report.formatting import point_text
from kteardown.report.material import Material

_LEAST = 0.003
"""A smaller part of the whole is too thin to see and is left out."""
_FULL = 0.02
"""A difference of this part of base's time, or half of the largest if that is more, has the full colour."""


@dataclass
class _Node:
    """A function on one path, with the ns in it and its callees by kernel."""

    name: str
    ns: dict[str, float] = field(default_factory=dict)
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, kernel: str, ns: float) -> None:
        self.ns[kernel] = self.ns.get(kernel, 0.0) + ns


def flame_gallery(material: Material) -> Gallery | None:
    """Return every profiled variant compared with base at every point; None if there is no profile."""
    found = material.evidence.stacks
    charts: dict[tuple[str, ...], Chart] = {}
    bases = {(s.workload, key(s.point)): s for s in found if s.kernel == "base"}
    pairs = [(bases.get((s.workload, key(s.point))), s) for s in found if s.kernel != "base"]
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
    root = _tree(base, changed)
    totals = {s.kernel: sum(s.ns.values()) for s in (base, changed)}
    nodes = _walk(root, width, _LEAST * totals[width])
    differences = [
        (node.ns.get(changed.kernel, 0.0) - node.ns.get(base.kernel, 0.0)) / totals[base.kernel]
        for *_, node in nodes
    ]
    full = max(_FULL, max(map(abs, differences)) / 2)
    hidden = 1 - sum(node.ns.get(width, 0.0) for _, level, node in nodes if level == 1) / totals[width]
    at = f" at {point_text(base.point)}" if base.point else ""
    against = f": {changed.kernel} against base" if changed is not base else ""
    frames = [
        FlameFrame(
            100 * left / totals[width],
            100 * node.ns.get(width, 0.0) / totals[width],
            level,
            node.name,
            _hover_text(node, totals, base.kernel, changed.kernel),
            max(-1.0, min(1.0, difference / full)),
        )
        for (left, level, node), difference in zip(nodes, differences, strict=True)
    ]
    return Chart(
        name=slug("flame", changed.kernel, base.workload, point_text(base.point), f"by-{width}"),
        title=f"Where the time goes{at}{against}",
        about=f"Flame graph of {base.workload}{at}{against}, {len(nodes)} functions; the table of functions "
        "has the figures.",
        drawn=Flame(tuple(frames)),
        notes=(
            f"the outermost function is at the top; widths are times on {width}; paths below {_LEAST:.1%} of "
            f"its time are left out, {hidden:.1%} at the first level",
            f"blue: less time than on base, orange: more; full colour at {full:.0%} of base's time",
        )[: 1 if changed is base else 2],
    )


def _tree(base: Stacks, changed: Stacks) -> _Node:
    root = _Node("all")
    for s in (base, changed) if changed is not base else (base,):
        for frames, ns in s.ns.items():
            node = root
            node.add(s.kernel, ns)
            for frame in frames:
                node = node.children.setdefault(frame, _Node(frame))
                node.add(s.kernel, ns)
    return root


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


def _hover_text(node: _Node, totals: Mapping[str, float], base: str, changed: str) -> str:
    ours, theirs = node.ns.get(base, 0.0), node.ns.get(changed, 0.0)
    text = f"base: {ours:,.0f}, {ours / totals[base]:.1%} of its time"
    if changed == base:
        return text
    return (
        f"{text}; {changed}: {theirs:,.0f}, {theirs / totals[changed]:.1%}; difference: {theirs - ours:+,.0f}"
    )
