"""Differential flame graphs: where the time goes, and where it is more or less than on base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.model.point import Key, key
from kteardown.model.samples import Stacks
from kteardown.report.charts.figure import Chart, Gallery, layout, slug
from kteardown.report.formatting import point_text
from kteardown.report.material import Material

_LEAST = 0.003
"""A smaller part of the whole is too thin to see and is left out."""
_FULL = 0.02
"""A difference of this part of base's time, or half of the largest if that is more, has the full colour."""
_ROW_PX = 18


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
    bases = {_place(s): s for s in found if s.kernel == "base"}
    others = [s for s in found if s.kernel != "base" and _place(s) in bases] or list(bases.values())
    for s in others:
        base = bases[_place(s)]
        widths = ("base", s.kernel) if s is not base else ("base",)
        for width in widths:
            charts[s.kernel, _point_label(s), width] = _chart(base, s, width)
    if not charts:
        return None
    names = (("kernel", 0), ("at", 1), ("widths by time on", 2))
    choices = tuple((label, tuple(dict.fromkeys(option[n] for option in charts))) for label, n in names)
    largest = _point_label(max(others, key=lambda s: sum(s.ns.values())))
    first = next(option for option in charts if option[1] == largest)
    return Gallery("flame", choices, charts, first)


def _place(s: Stacks) -> tuple[str, Key]:
    return s.workload, key(s.point)


def _point_label(s: Stacks) -> str:
    return f"{s.workload} {point_text(s.point)}".rstrip()


def _chart(base: Stacks, changed: Stacks, width: str) -> Chart:
    root = _tree(base, changed)
    totals = {s.kernel: sum(s.ns.values()) for s in (base, changed)}
    nodes = _walk(root, width, _LEAST * totals[width])
    differences = _differences(nodes, totals, base.kernel, changed.kernel)
    full = max(_FULL, max(map(abs, differences)) / 2)
    depth = max(level for level, *_ in nodes)
    hidden = 1 - sum(node.ns.get(width, 0.0) for level, _, _, node in nodes if level == 1) / totals[width]
    at = f" at {point_text(base.point)}" if base.point else ""
    against = f": {changed.kernel} against base" if changed is not base else ""
    height = max(300, _ROW_PX * (depth + 2) + 40)
    return Chart(
        name=slug("flame", changed.kernel, base.workload, point_text(base.point), f"by-{width}"),
        title=f"Where the time goes{at}{against}",
        about=f"Flame graph of {base.workload}{at}{against}, {len(nodes)} functions; the table of functions "
        "has the figures.",
        figure={
            "data": [_icicle(nodes, totals, base.kernel, changed.kernel, width, full)],
            "layout": layout(
                height=height,
                margin={"l": 4, "r": 4, "t": 8, "b": 4},
                showlegend=False,
                uniformtext={"minsize": 10, "mode": "hide"},
            ),
        },
        height=height,
        notes=(
            f"the outermost function is at the top; widths are times on {width}; paths below {_LEAST:.1%} of "
            f"its time are left out, {hidden:.1%} at the first level",
            *(
                (f"blue: less time than on base, orange: more; full colour at {full:.0%} of base's time",)
                if changed is not base
                else ()
            ),
        ),
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


_PlacedNode = tuple[int, str, str, _Node]
"""A node with its depth, its id and the id of its parent."""


def _walk(root: _Node, width: str, least: float) -> list[_PlacedNode]:
    placed: list[_PlacedNode] = [(0, "0", "", root)]
    for level, name, _, node in placed:
        children = sorted(node.children.values(), key=lambda child: child.name)
        wide = [child for child in children if child.ns.get(width, 0.0) >= least]
        placed += [(level + 1, f"{name}.{number}", name, child) for number, child in enumerate(wide)]
    return placed


def _differences(
    nodes: Sequence[_PlacedNode], totals: Mapping[str, float], base: str, changed: str
) -> list[float]:
    """Return the difference of each node, relative to the whole time of base."""
    return [(n.ns.get(changed, 0.0) - n.ns.get(base, 0.0)) / totals[base] for *_, n in nodes]


def _icicle(
    nodes: Sequence[_PlacedNode],
    totals: Mapping[str, float],
    base: str,
    changed: str,
    width: str,
    full: float,
) -> dict[str, object]:
    differences = _differences(nodes, totals, base, changed)
    return {
        "type": "icicle",
        "ids": [name for _, name, _, _ in nodes],
        "parents": [parent for _, _, parent, _ in nodes],
        "labels": [node.name for *_, node in nodes],
        "values": [round(node.ns.get(width, 0.0)) for *_, node in nodes],
        "branchvalues": "total",
        "tiling": {"orientation": "v", "pad": 0},
        "sort": False,
        "root": {"color": "$flame-none"},
        "pathbar": {"visible": True, "thickness": 20, "side": "top"},
        "textposition": "middle left",
        "textfont": {"color": "$flame-ink", "size": 11},
        "marker": {
            "colors": [round(max(-1.0, min(1.0, share / full)), 3) for share in differences],
            "colorscale": [[0, "$flame-less"], [0.5, "$flame-none"], [1, "$flame-more"]],
            "cmin": -1,
            "cmid": 0,
            "cmax": 1,
            "line": {"width": 0.6, "color": "$panel"},
        },
        "text": [_hover_text(node, totals, base, changed) for *_, node in nodes],
        "texttemplate": "%{label}",
        "hovertemplate": "<b>%{label}</b><br>%{text}<extra></extra>",
    }


def _hover_text(node: _Node, totals: Mapping[str, float], base: str, changed: str) -> str:
    ours, theirs = node.ns.get(base, 0.0), node.ns.get(changed, 0.0)
    text = f"base: {ours:,.0f}, {ours / totals[base]:.1%} of its time"
    if changed == base:
        return text
    return (
        f"{text}<br>{changed}: {theirs:,.0f}, {theirs / totals[changed]:.1%}"
        f"<br>difference: {theirs - ours:+,.0f}"
    )
