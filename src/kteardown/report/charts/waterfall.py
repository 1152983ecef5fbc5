"""The effect of each patch of a series as a waterfall chart, from base to the whole series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kteardown.model.result import Ablation
from kteardown.report.charts.figure import DOTTED, Axis, Chart, Mark, Plot, Series, slug
from kteardown.report.formatting import change_of, point_text, portion
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_name
from kteardown.report.sections.ablation_table import largest_ablations

_WORDS = 34
_WIDTH = 0.62
"""The part of its column that a bar takes."""


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
        drawn=Plot(
            Axis(names=tuple(_names(ablation))),
            Axis("change against base, %"),
            tuple(_series(ablation, levels)),
        ),
        notes=(
            *(f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject),
            "a pale bar is not a significant change: its interval includes zero",
        ),
    )


def _series(ablation: Ablation, levels: Sequence[float]) -> Iterator[Series]:
    """Yield lines between the bars, a bar for each step from the end of the previous one, and one for all."""
    for n, level in enumerate(levels[1:]):
        line = (Mark(n, _change(level)), Mark(n + 1, _change(level)))
        yield Series("", "muted", line, dash=DOTTED, width=1, in_legend=False)
    whole = ablation.ratio or levels[-1]
    subjects = [_hover_text(p.patch, p.subject, portion(p.step)) for p in ablation.patches]
    shades = [_shade(ablation, p.step.ratio, p.step.ci) for p in ablation.patches]
    for n, ((before, after), ci, text, shade) in enumerate(
        zip(
            [*pairwise(levels), (1.0, whole)],
            [*(p.step.ci for p in ablation.patches), ablation.ci],
            [*subjects, "all patches"],
            [*shades, "base"],
            strict=True,
        )
    ):
        low, high = (before * ci[0], before * ci[1]) if ci else (after, after)
        bar = Mark(n, _change(after), text, _change(low), _change(high), base=_change(before))
        yield Series("", shade, (bar,), "bar", size=_WIDTH, variant=ablation.variant, in_legend=False)


def _names(ablation: Ablation) -> list[str]:
    """Return the labels below the bars: the patch, its change and the interval."""
    parts = [(f"patch {p.patch}", p.step.ratio, p.step.ci, p.step.exact) for p in ablation.patches]
    parts.append(("whole series", ablation.ratio, ablation.ci, ablation.exact))
    texts = [(name, change_of(ratio, ci, exact=exact)) for name, ratio, ci, exact in parts]
    return [f"{name}\n{text.replace(' ', chr(10), 1)}" for name, text in texts]


def _shade(ablation: Ablation, ratio: float | None, ci: tuple[float, float] | None) -> str:
    if ratio is None or ratio == 1 or (ci and ci[0] <= 1 <= ci[1]):
        return "null"
    return "better" if (ratio < 1) == (ablation.better == "lower") else "worse"


def _change(level: float) -> float:
    return 100 * (level - 1)


def _step(ratio: float | None) -> str:
    return change_of(ratio, None)


def _hover_text(patch: int, subject: str, share: str) -> str:
    words = subject if len(subject) <= _WORDS * 2 else subject[: _WORDS * 2 - 1] + "…"
    return f"patch {patch}: {words}; {share} of the whole series"
