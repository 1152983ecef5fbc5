"""The effect of each patch of a series and its share of the whole: tables, sentences, waterfall
charts."""

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from operator import mul

from kteardown.judge.metrics import PointKey, metric_name
from kteardown.model.result import Ablation, Part, Result
from kteardown.model.workload import Workload
from kteardown.report.chart_model import DOTTED, Axis, Chart, Mark, Plot, PlotSeries, slug
from kteardown.report.formatting import WORDS, change_of, decimals, point_text, portion
from kteardown.report.material import Material
from kteardown.report.table import Block, Table

_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def largest_ablations(result: Result, workloads: Mapping[str, Workload]) -> list[Ablation]:
    """Return the ablation at the largest point, of each series, metric and setting of other
    parameters."""
    largest: dict[tuple[str, str, str, PointKey], Ablation] = {}
    for ablation in result.ablations:
        law = workloads[ablation.workload].law
        rest = tuple((name, value) for name, value in ablation.point.items() if name != law)
        key = (ablation.variant, ablation.workload, ablation.metric, rest)
        if key not in largest or _size(ablation, law) >= _size(largest[key], law):
            largest[key] = ablation
    return list(largest.values())


def ablation_sentences(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Return which patch has the largest share, for each ablation.

    The form is ``S: patch 2 of 3 accounts for 65% [60, 70] of the change of M at P``.
    """
    lines = []
    for ablation in largest_ablations(result, workloads):
        with_share = [p for p in ablation.patches if p.step.share is not None]
        if with_share:
            most = max(with_share, key=lambda p: p.step.share or 0.0)
            name = metric_name(workloads, ablation.workload, ablation.metric)
            where = f" at {point_text(ablation.point)}" if ablation.point else ""
            lines.append(
                f"{ablation.series}: patch {most.patch} of {len(ablation.patches)} accounts for "
                f"{portion(most.step)} of the change of {name}{where}"
            )
    return lines


def ablation_tables(material: Material, room: tuple[int, int] | None) -> list[Table]:
    """Return a table for each ablation, with a row per patch.

    ``room`` is the number of characters of a line and between columns if bars can be drawn, else
    None. Bars are drawn only if the table needs no more parts than without them.
    """
    tables = []
    for ablation in largest_ablations(material.result, material.workloads):
        name = metric_name(material.workloads, ablation.workload, ablation.metric)
        table = _table(ablation, name, bars=False)
        if room is not None:
            width, gap = room
            drawn = _table(ablation, name, bars=True)
            parts = drawn.cut(width, gap)
            fits = all(part.width(gap) <= width for part in parts)
            table = drawn if fits and len(parts) == len(table.cut(width, gap)) else table
        tables.append(table)
    return tables


def _table(ablation: Ablation, metric: str, *, bars: bool) -> Table:
    digits = decimals(part for p in ablation.patches for part in (p.step, p.leave_out))
    patches = ablation.patches
    steps = []
    for p in patches:
        # The share as a bar, in eighths of a block; it is limited to the range 0 to 1.
        eighths = round(max(0.0, min(1.0, p.step.share or 0.0)) * _BAR * 8)
        bar = ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
        steps.append((*_texts(p.step, digits), *([bar] if bars else [])))
    blocks = (
        Block.of(("added", "share", *(("",) if bars else ())), steps, left=("",)),
        Block.of(("left out", "share"), [_texts(p.leave_out, digits) for p in patches]),
    )
    at = f" at {point_text(ablation.point)}" if ablation.point else ""
    whole = change_of(ablation.ratio, ablation.ci, exact=ablation.exact, decimals=digits)
    title = f"{ablation.variant}: effect of each patch on {metric}{at}; whole series: {whole}"
    keys = Block.of(("patch",), [(str(p.patch),) for p in patches])
    notes = [f"{p.patch}: {p.subject}" for p in patches if p.subject]
    notes.append(WORDS["patches"])
    reasons: dict[str, list[str]] = {}
    for p in patches:
        for how, part in (("added", p.step), ("left out", p.leave_out)):
            if part.reason:
                reasons.setdefault(part.reason, []).append(f"{p.patch} {how}")
    for reason, where in reasons.items():
        everywhere = len(where) == 2 * len(patches)
        notes.append(f"{'no shares' if everywhere else ', '.join(where)}: {reason}")
    return Table(title, keys, blocks, tuple(notes))


def _texts(part: Part, digits: int) -> tuple[str, str]:
    alone = (
        "-"
        if part.ratio is None
        else change_of(part.ratio, part.ci, exact=part.exact, decimals=digits)
    )
    return alone, portion(part)


def _size(ablation: Ablation, law: str) -> float:
    size = ablation.point.get(law, 0)
    return size if isinstance(size, int) else 0


_LONGEST = 68
"""A longer subject of a patch is cut in a tooltip."""
_WIDTH = 0.62
"""The part of its column that a bar takes."""


def waterfalls(material: Material) -> list[tuple[Ablation, Chart]]:
    """Return a chart for each ablation whose steps are all known."""
    return [
        (
            ablation,
            _chart(ablation, metric_name(material.workloads, ablation.workload, ablation.metric)),
        )
        for ablation in largest_ablations(material.result, material.workloads)
        if ablation.ratio and all(p.step.ratio for p in ablation.patches)
    ]


def _chart(ablation: Ablation, metric: str) -> Chart:
    place = point_text(ablation.point)
    at = f" at {place}" if place else ""
    parts = [(f"patch {p.patch}", p.step.ratio, p.step.ci, p.step.exact) for p in ablation.patches]
    parts.append(("whole series", ablation.ratio, ablation.ci, ablation.exact))
    # Below each bar is the patch, its change and the interval.
    texts = [
        (name, change_of(ratio, ci, exact=exact).replace(" ", "\n", 1))
        for name, ratio, ci, exact in parts
    ]
    changes = [f"{name} {change_of(ratio, None)}" for name, ratio, _, _ in parts]
    return Chart(
        name=slug("patches", ablation.variant, ablation.workload, ablation.metric, place),
        title=f"{ablation.variant}: effect of each patch on {metric}{at}",
        about=f"Waterfall of the change of {metric}{at} against base: "
        f"{', '.join(changes[:-1])}; {changes[-1]}.",
        drawn=Plot(
            Axis(names=tuple(f"{name}\n{text}" for name, text in texts)),
            Axis("change against base, %"),
            tuple(_series(ablation)),
        ),
        notes=(
            *(f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject),
            "a pale bar is not a significant change: its interval includes zero",
        ),
    )


def _series(ablation: Ablation) -> Iterator[PlotSeries]:
    """Yield lines between the bars, a bar for each step from the end of the previous one, and one
    for all."""
    levels = list(accumulate((p.step.ratio or 1.0 for p in ablation.patches), mul, initial=1.0))
    for n, level in enumerate(levels[1:]):
        line = (Mark(n, 100 * (level - 1)), Mark(n + 1, 100 * (level - 1)))
        yield PlotSeries("", "muted", line, dash=DOTTED, width=1, in_legend=False)
    for n, (p, ends) in enumerate(zip(ablation.patches, pairwise(levels), strict=True)):
        words = p.subject if len(p.subject) <= _LONGEST else p.subject[: _LONGEST - 1] + "…"
        text = f"patch {p.patch}: {words}; {portion(p.step)} of the whole series"
        ratio = p.step.ratio
        ci = p.step.ci
        shade = "better" if ((ratio or 1) < 1) == (ablation.better == "lower") else "worse"
        if ratio is None or ratio == 1 or (ci and ci[0] <= 1 <= ci[1]):
            shade = "null"
        yield _step_bar(ablation.variant, n, ends, ci, text, shade)
    whole = (1.0, ablation.ratio or levels[-1])
    yield _step_bar(
        ablation.variant, len(ablation.patches), whole, ablation.ci, "all patches", "base"
    )


def _step_bar(
    variant: str,
    n: int,
    ends: tuple[float, float],
    ci: tuple[float, float] | None,
    text: str,
    shade: str,
) -> PlotSeries:
    """Return the bar in column ``n`` between two levels; ``ci`` is the interval of their ratio."""
    before, after = ends
    low, high = (before * ci[0], before * ci[1]) if ci else (after, after)
    start, end, least, most = (100 * (level - 1) for level in (before, after, low, high))
    bar = Mark(n, end, text, least, most, base=start)
    return PlotSeries("", shade, (bar,), "bar", size=_WIDTH, variant=variant, in_legend=False)
