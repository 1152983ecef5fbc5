"""The effect of each patch of a series as a waterfall chart, from base to the whole series."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kteardown.model.result import Ablation
from kteardown.report.charts.figure import Chart, Trace, axis, layout, slug
from kteardown.report.formatting import change_of, point_text, portion
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_name
from kteardown.report.sections.ablation_table import largest_ablations

_WORDS = 34


def waterfalls(material: Material) -> list[tuple[Ablation, Chart]]:
    """Return a chart for each ablation whose steps are all known."""
    return [
        (ablation, _chart(ablation, metric_name(material.workloads, ablation.workload, ablation.metric)))
        for ablation in largest_ablations(material.result, material.workloads)
        if ablation.ratio and all(p.step.ratio for p in ablation.patches)
    ]


def _chart(ablation: Ablation, metric: str) -> Chart:
    levels = [1.0]
    for p in ablation.patches:
        levels.append(levels[-1] * (p.step.ratio or 1.0))
    at = f" at {point_text(ablation.point)}" if ablation.point else ""
    return Chart(
        name=slug(
            "patches", ablation.variant, ablation.workload, ablation.metric, point_text(ablation.point)
        ),
        title=f"{ablation.variant}: effect of each patch on {metric}{at}",
        about=f"Waterfall of the change of {metric}{at} against base: "
        + ", ".join(f"patch {p.patch} {_step(p.step.ratio)}" for p in ablation.patches)
        + f"; whole series {_step(ablation.ratio)}.",
        figure={
            "data": [_bars(ablation, levels), _connectors(levels)],
            "layout": layout(
                xaxis=axis(
                    tickvals=list(range(len(levels))),
                    ticktext=_ticks(ablation),
                    showgrid=False,
                    ticks="",
                    tickfont={"size": 11, "color": "$ink"},
                ),
                yaxis=axis("change against base, %", zeroline=True)
                | {"zerolinecolor": "$muted", "zerolinewidth": 1.2},
                showlegend=False,
                height=360,
                bargap=0.35,
                margin={"l": 64, "r": 18, "t": 14, "b": 74},
            ),
        },
        height=360,
        notes=(
            *(f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject),
            "a pale bar is not a significant change: its interval includes zero",
        ),
    )


def _bars(ablation: Ablation, levels: Sequence[float]) -> Trace:
    """Return a bar for each step, starting where the previous one ends, and one for the whole series."""
    steps = [p.step for p in ablation.patches]
    cis = [step.ci for step in steps]
    shades = [_shade(ablation, step.ratio, step.ci) for step in steps]
    ends = [*pairwise(levels), (1.0, ablation.ratio or levels[-1])]
    reach = [
        (before * ci[1] - after, after - before * ci[0]) if ci else (0.0, 0.0)
        for (before, after), ci in zip(ends, [*cis, ablation.ci], strict=True)
    ]
    subjects = [_hover_text(p.patch, p.subject, portion(p.step)) for p in ablation.patches]
    return {
        "type": "bar",
        "x": list(range(len(ends))),
        "base": [_change(before) for before, _ in ends],
        "y": [100 * (after - before) for before, after in ends],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [100 * max(0.0, up) for up, _ in reach],
            "arrayminus": [100 * max(0.0, down) for _, down in reach],
            "color": "$ink",
            "thickness": 1.2,
            "width": 5,
        },
        "marker": {"color": [*shades, "$base"], "line": {"width": 1, "color": "$line"}},
        "text": [*subjects, "all patches"],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"variant": ablation.variant, "metric": ablation.metric},
    }


def _connectors(levels: Sequence[float]) -> Trace:
    x: list[float | None] = []
    y: list[float | None] = []
    for number, level in enumerate(levels[1:]):
        x += [number, number + 1, None]
        y += [_change(level), _change(level), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": "$muted", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _ticks(ablation: Ablation) -> list[str]:
    """Return the labels below the bars: the patch, its change and the interval."""
    parts = [(f"patch {p.patch}", p.step.ratio, p.step.ci, p.step.exact) for p in ablation.patches]
    parts.append(("whole series", ablation.ratio, ablation.ci, ablation.exact))
    texts = [(name, change_of(ratio, ci, exact=exact)) for name, ratio, ci, exact in parts]
    return [f"{name}<br>{text.replace(' ', '<br>', 1)}" for name, text in texts]


def _shade(ablation: Ablation, ratio: float | None, ci: tuple[float, float] | None) -> str:
    if ratio is None or ratio == 1 or (ci and ci[0] <= 1 <= ci[1]):
        return "$null"
    return "$better" if (ratio < 1) == (ablation.better == "lower") else "$worse"


def _change(level: float) -> float:
    return 100 * (level - 1)


def _step(ratio: float | None) -> str:
    return change_of(ratio, None)


def _hover_text(patch: int, subject: str, share: str) -> str:
    words = subject if len(subject) <= _WORDS * 2 else subject[: _WORDS * 2 - 1] + "…"
    return f"patch {patch}: {words}<br>{share} of the whole series"
