"""The charts: complete, with the figures of the result, and drawn with all of their marks."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kteardown.judge.metrics import metric_name
from kteardown.report.axis_scale import numeric
from kteardown.report.chart_model import Chart, Forest, Plot, PlotSeries, Row, slug
from kteardown.report.charts import DARK, LIGHT, draw_as, markup, svg_file
from kteardown.report.formats.html import all_charts, html_report
from kteardown.report.material import Material
from kteardown.report.ratio_axis import RatioAxis, ratio_range, ratio_ticks
from kteardown.report.sections import forests as forest_charts
from kteardown.report.sections import samples
from kteardown.report.sections.ablation import waterfalls
from kteardown.report.sections.cards import cards
from kteardown.report.sections.forests import forest_plots, forests
from kteardown.report.sections.growth import growth_galleries
from kteardown.report.sections.profile import flame_gallery
from kteardown.report.sections.published import posted_charts
from kteardown.report.sections.samples import spread_gallery, tail_gallery
from unit.report.contexts import ENTRY, instructions, rich, wall
from unit.simulation import WORKLOADS


def series_of(chart: Chart) -> tuple[PlotSeries, ...]:
    """Return the series of a chart with axes."""
    assert isinstance(chart.drawn, Plot)
    return chart.drawn.series


def rows_of(plot: Forest) -> list[Row]:
    """Return the rows of all metrics of a forest plot."""
    return [row for _, rows in plot.metrics for row in rows]


def test_charts_have_unique_names_that_are_file_names() -> None:
    names = [chart.name for chart in all_charts(rich())]
    assert len(set(names)) == len(names)
    assert all(name == slug(name) and name for name in names)
    kinds = {name.split("-")[0] for name in names}
    assert kinds == {"forest", "growth", "posted", "samples", "patches", "flame", "tail"}


def test_a_forest_has_every_ratio_with_its_interval() -> None:
    material = wall()
    axis = RatioAxis.of(material.result.asked_for)
    for chart in forests(material):
        assert isinstance(chart.drawn, Forest)
        variant = chart.name.removeprefix("forest-")
        expected = [c for c in material.result.asked_for if c.variant == variant and c.ci]
        rows = rows_of(chart.drawn)
        assert len(rows) == len(expected)
        for c in expected:
            interval = draw_as("comparison", axis, c, 11)
            assert c.ci
            assert f'x1="{axis.at(c.ci[0])}%" x2="{axis.at(c.ci[1])}%"' in interval
            assert any(row.picture.endswith(interval) and row.verdict == c.verdict for row in rows)


def test_forest_plots_of_a_result_have_the_same_axis() -> None:
    axis = RatioAxis.of(wall().result.asked_for)
    plots = forest_plots(wall())
    assert len(plots) == 2
    assert {(plot.lines, plot.labels) for plot in plots} == {
        (draw_as("tick_lines", axis), draw_as("tick_labels", axis))
    }
    assert all(draw_as("tick_labels", axis) in svg_file(chart) for chart in forests(wall()))


def test_a_metric_with_many_rows_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [chart.name for chart in forests(wall())]
    monkeypatch.setattr(forest_charts, "_MOST_ROWS", 2)
    apart = [chart.name for chart in forests(wall())]
    assert len(apart) == 6
    assert "forest-freezer-skip-exited-zombies-freeze_user_ns" in apart
    assert not {*apart} & {*names}


def test_one_wide_interval_is_cut_and_leaves_room_for_the_others() -> None:
    material, result = wall(), wall().result
    first, *others = result.comparisons
    wide = first.model_copy(update={"ratio": 1.0, "ci": (0.001, 900.0), "verdict": "inconclusive"})
    cut = result.model_copy(update={"comparisons": (wide, *others)})
    axis = RatioAxis.of(cut.asked_for)
    assert 0.25 < axis.low < axis.high < 2
    plots = forest_plots(replace(material, result=cut))
    assert plots[0].labels == plots[1].labels == draw_as("tick_labels", axis)
    interval = draw_as("comparison", axis, wide, 11)
    assert 'x1="0.0%" x2="100.0%"' in interval
    assert interval.count('class="fill inconclusive"') == 2
    assert interval in rows_of(plots[0])[0].picture
    assert "fill" not in draw_as("comparison", axis, others[0], 11)


def test_the_side_that_is_better_depends_on_the_metric() -> None:
    result = wall().result
    sides = '<span class="{0}">← {0}</span><span class="{1}">{1} →</span>'.format
    page = html_report(wall())
    assert sides("better", "worse") in page and sides("worse", "better") not in page
    rates = result.model_copy(
        update={
            "comparisons": tuple(
                c.model_copy(update={"better": "higher"}) for c in result.comparisons
            )
        }
    )
    page = html_report(replace(wall(), result=rates))
    assert sides("worse", "better") in page and sides("better", "worse") not in page


@pytest.mark.parametrize("make", [rich, wall], ids=["rich", "wall"])
def test_every_chart_is_drawn_with_all_its_marks(make: Callable[[], Material]) -> None:
    for chart in all_charts(make()):
        file = svg_file(chart)
        ET.fromstring(file)
        assert "nan" not in file
        assert "var(--" not in file.replace("var(--width)", "")
        drawn = file if isinstance(chart.drawn, Forest) else markup(chart.drawn)
        if isinstance(chart.drawn, tuple):
            assert drawn.count("<title>") == len(chart.drawn)
        elif isinstance(chart.drawn, Plot):
            ET.fromstring(f"<div>{drawn.replace('<br>', '<br/>')}</div>")
            marks = [(one.symbol, mark) for one in chart.drawn.series for mark in one.marks]
            assert drawn.count("<title>") == sum(bool(mark.text) for _, mark in marks)
            if not chart.name.startswith("samples") and not chart.drawn.y.log:
                assert all(mark.text for symbol, mark in marks if symbol not in ("dot", ""))
            assert drawn.count("h0") == sum(symbol == "dot" for symbol, _ in marks)


def test_logarithmic_axes_have_only_positive_numbers() -> None:
    gallery = growth_galleries(instructions())[0]
    linear, logarithmic = (
        series_of(gallery.charts["all", axes])[0] for axes in ("linear", "logarithmic")
    )
    assert linear.marks[0].x == 0
    assert logarithmic.marks == tuple(replace(mark, text="") for mark in linear.marks[1:])
    drawn = gallery.charts["all", "logarithmic"].drawn
    assert isinstance(drawn, Plot)
    assert (drawn.x.log, drawn.y.log) == (True, True)
    assert "logarithmic" in drawn.y.title
    nothing = replace(
        drawn, series=tuple(replace(one, marks=one.marks[:0]) for one in drawn.series)
    )
    assert nothing.logarithmic() is None


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.booleans(), st.booleans())
@example(5e-324, 5e-324, False, False)
def test_an_axis_has_a_few_distinct_ticks_in_order(
    one: float, other: float, log: bool, zero: bool
) -> None:
    axis = numeric(
        [abs(one) or 1.0, abs(other) or 2.0] if log else [one, other], log=log, zero=zero
    )
    shares = [share for share, _ in axis.ticks]
    assert shares == sorted(shares)
    assert all(-1e-6 <= share <= 1 + 1e-6 for share in shares)
    assert len(shares) <= 12


@pytest.mark.parametrize(
    ("values", "log", "labels"),
    [
        ([0, 15_000], False, ["0", "5,000", "10,000", "15,000"]),
        ([0, 600_000], False, ["0", "100k", "200k", "300k", "400k", "500k", "600k"]),
        ([0, 1_000_000], False, ["0", "0.2M", "0.4M", "0.6M", "0.8M", "1M"]),
        ([-300_000, 100_000], False, ["-300k", "-200k", "-100k", "0", "100k"]),
        ([1_028_754, 1_028_758], False, [f"1,028,75{n}" for n in range(4, 9)]),
        ([10.02, 10.08], False, ["10.02", "10.03", "10.04", "10.05", "10.06", "10.07", "10.08"]),
        ([0, 0.03], False, ["0", "0.005", "0.01", "0.015", "0.02", "0.025", "0.03"]),
        ([0.5, 1_000_000], True, ["1", "10", "100", "1k", "10k", "100k", "1M"]),
        ([1_000, 20_000], True, ["1k", "2k", "5k", "10k", "20k"]),
        ([0.02, 0.2], True, ["0.02", "0.05", "0.1", "0.2"]),
        ([12.3, 12.7], True, ["12.3", "12.4", "12.5", "12.6", "12.7"]),
    ],
)
def test_the_labels_of_an_axis_are_round_numbers_in_one_style(
    values: list[float], log: bool, labels: list[str]
) -> None:
    assert [text for _, text in numeric(values, log=log, zero=min(values) == 0).ticks] == labels


def test_the_forest_plot_of_the_wall_clock_shows_the_a_a_intervals() -> None:
    for material, shown in ((wall(), True), (rich(), False)):
        drawn = [chart.drawn for chart in forests(material)]
        names = [text for one in drawn if isinstance(one, Forest) for _, text in one.twins]
        assert ("A/A: base against itself" in names) == shown
        lines = [row.picture for one in drawn if isinstance(one, Forest) for row in rows_of(one)]
        assert all(('class="twin"' in picture) == shown for picture in lines)


def test_growth_shows_the_medians_their_intervals_and_the_law() -> None:
    material = wall()
    gallery = next(g for g in growth_galleries(material) if g.metric == "freeze_user_ns")
    base = next(one for one in series_of(gallery.charts["all", "linear"]) if one.name == "base")
    expected = [c for c in material.result.asked_for if c.metric == "freeze_user_ns"][:6:2]
    assert [mark.x for mark in base.marks] == [3000, 15000, 30000]
    assert [mark.y for mark in base.marks] == pytest.approx(
        [c.base.median / 1000 for c in expected]
    )
    assert all(
        m.low is not None and m.high is not None and m.low < m.y < m.high for m in base.marks
    )
    every = series_of(growth_galleries(instructions())[0].charts["all", "linear"])
    assert [one.marks[-1].x for one in every if "extrapolated" in one.name] == [60000] * 3


def test_published_figures_are_shown_in_their_own_unit() -> None:
    levels, changes = posted_charts(instructions())[0]
    assert [mark.y for mark in series_of(levels)[0].marks[:3]] == [0.010, 0.013, 0.020]
    assert [one.name for one in series_of(changes)] == ["posted", "here: freezer-skip-exited"]
    assert series_of(changes)[0].marks[-1].y == pytest.approx(100 * (0.016 / 0.043 - 1))


def test_every_sample_is_drawn_in_a_column_for_each_boot() -> None:
    material = wall()
    gallery = spread_gallery(material)
    assert gallery is not None
    for (metric, at), chart in gallery.charts.items():
        mine = [
            s
            for s in material.evidence.samples
            if metric_name(WORKLOADS, s.workload, s.metric) == metric
            and at.endswith(f"{s.point['zombies']:,}")
        ]
        values = sorted(v for s in mine for boot in s.boots.values() for v in boot)
        points = [one for one in series_of(chart) if one.symbol == "dot"]
        drawn = sorted(mark.y for one in points for mark in one.marks)
        assert len(drawn) == len(values) == 4 * 10 * 3
        assert drawn[-1] / drawn[0] == pytest.approx(values[-1] / values[0])
        for one in points:
            x = [mark.x for mark in one.marks]
            assert x == sorted(set(x))
            columns = [x[n : n + 3] for n in range(0, 30, 3)]
            assert all(max(before) < min(after) for before, after in pairwise(columns))


def test_the_tooltip_of_a_boot_has_its_samples_or_their_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    material = instructions()
    first = material.evidence.samples[0]
    values = next(iter(first.boots.values()))
    for most, expected in ((3, [f"{value:,}" for value in values]), (2, ["3 from", "median"])):
        monkeypatch.setattr(samples, "_MOST_LISTED", most)
        gallery = spread_gallery(material)
        assert gallery is not None
        medians = next(
            one for one in series_of(next(iter(gallery.charts.values()))) if one.symbol == "median"
        )
        assert all(text in medians.marks[0].text for text in expected)
        other = next(
            chart for (name, _), chart in gallery.charts.items() if name.startswith("thawing")
        )
        assert not any(mark.text for one in series_of(other) for mark in one.marks), (
            "no headline metric"
        )


def test_the_percentiles_of_all_boots_are_drawn_for_each_kernel() -> None:
    gallery = tail_gallery(rich())
    assert gallery is not None
    (chart,) = gallery.charts.values()
    assert isinstance(chart.drawn, Plot)
    assert chart.drawn.x.names == ("p50", "p99.9")
    assert [(one.name, [(m.x, m.y) for m in one.marks]) for one in series_of(chart)] == [
        ("base", [(0, 2000), (1, 90000)]),
        ("freezer-skip-exited", [(0, 1000), (1, 80000)]),
    ]
    assert "90,000" in chart.about
    assert tail_gallery(wall()) is None


def test_metrics_of_one_name_have_charts_of_their_own() -> None:
    material = rich()
    metrics = {
        key: spec.model_copy(update={"name": "time"})
        for key, spec in WORKLOADS["zombies"].metrics.items()
    }
    workload = WORKLOADS["zombies"].model_copy(update={"metrics": metrics})
    alike = replace(material, workloads={**material.workloads, "zombies": workload})
    apart, together = spread_gallery(material), spread_gallery(alike)
    assert apart is not None
    assert together is not None
    assert len(together.charts) == len(apart.charts)
    assert {chart.name for chart in together.charts.values()} == {
        c.name for c in apart.charts.values()
    }
    assert together.choices[0][1:] == (
        "metric",
        ["time (zombies freeze_user_ns)", *together.choices[0][2][1:]],
    )


def test_the_steps_of_a_waterfall_end_at_the_whole_series() -> None:
    ((_, chart),) = waterfalls(rich())
    bars = [one for one in series_of(chart) if one.symbol == "bar"]
    ends = [one.marks[0].y for one in bars]
    assert ends[:3] == [pytest.approx(100 * (x - 1)) for x in (0.5, 0.49, 0.539)]
    assert ends[3] == pytest.approx(ends[2])
    assert [one.marks[0].base for one in bars] == [0, *ends[:2], 0]
    # Patch 2 may be no change: it is pale.
    assert [one.colour for one in bars] == ["better", "null", "worse", "base"]


def test_a_flame_graph_adds_up_and_shows_the_difference() -> None:
    gallery = flame_gallery(rich())
    assert gallery is not None
    assert set(gallery.charts) == {
        ("freezer-skip-exited", "zombies zombies=30,000", width)
        for width in ("base", "freezer-skip-exited")
    }
    drawn = gallery.charts["freezer-skip-exited", "zombies zombies=30,000", "base"].drawn
    assert isinstance(drawn, tuple)
    of = {frame.label: frame for frame in drawn}
    assert of["all"].width == 100
    assert of[ENTRY].width == pytest.approx(99.9)
    assert (of["freeze_task"].width, of["freeze_task"].more) == (50, -1.0)
    assert of["freeze_task"].left == of["do_wait"].left + of["do_wait"].width
    assert [of[name].depth for name in ("all", ENTRY, "do_wait")] == [0, 1, 2]
    assert of["do_wait"].more > 0
    assert "tiny" not in of


def test_a_card_leads_with_the_change_and_counts_the_verdicts() -> None:
    first, second = cards(instructions())
    assert (first.variant, second.variant) == ("freezer-skip-exited", "freezer-skip-nofreeze")
    assert first.figure.startswith("-57.")
    assert first.where.startswith("freezing user space over all 11 points [-58.")
    assert dict(first.counts) == {"better": 2, "same": 1}
    titles = [
        title for s in first.strips for title in re.findall("<title>(.*?)</title>", s.picture)
    ]
    assert len(titles) == 11 + 11 + 3, "the points of the three headline metrics"
    assert titles[1].startswith("zombies=3,000: -5")


def test_without_samples_the_other_charts_are_drawn() -> None:
    plain = instructions()
    bare = Material(plain.name, plain.result, plain.workloads)
    assert spread_gallery(bare) is None
    assert flame_gallery(bare) is None
    assert posted_charts(bare) == []
    kinds = {chart.name.split("-")[0] for chart in all_charts(bare)}
    assert kinds == {"forest", "growth"}


@given(st.floats(1e-4, 1.0), st.floats(1.0, 1e4))
def test_ticks_of_ratios_are_inside_the_range_distinct_and_include_no_change(
    low: float, high: float
) -> None:
    span = ratio_range([low, high])
    ticks, texts = zip(*ratio_ticks(*span), strict=True)
    assert 1.0 in ticks
    assert len(set(texts)) == len(texts) == len(ticks)
    assert all(span[0] <= tick <= span[1] for tick in ticks)
    assert list(ticks) == sorted(ticks)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground", "least"),
    [
        *((name, ground, 4.5) for name in ("ink", "muted", "link") for ground in ("page", "panel")),
        *((name, "panel", 4.5) for name in ("better", "worse", "same", "inconclusive")),
        *((name, f"{name}-soft", 4.5) for name in ("better", "worse", "same", "inconclusive")),
        *(
            (name, "panel", 3.0)
            for name in ("base", "kernel0", "kernel1", "kernel2", "kernel3", "kernel4")
        ),
        *(("flame-ink", f"flame-{name}", 4.5) for name in ("less", "none", "more")),
    ],
)
def test_colours_can_be_read(theme: dict[str, str], ink: str, ground: str, least: float) -> None:
    """The contrasts of WCAG 2.2, success criteria 1.4.3 and 1.4.11."""
    one, other = sorted((_luminance(theme[ink]), _luminance(theme[ground])), reverse=True)
    assert (one + 0.05) / (other + 0.05) >= least


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return math.fsum((0.2126 * red, 0.7152 * green, 0.0722 * blue))


def test_the_notes_of_a_flame_graph_report_paths_that_are_left_out() -> None:
    gallery = flame_gallery(rich())
    assert gallery is not None
    chart: Chart = gallery.charts[gallery.first]
    assert any("left out" in note for note in chart.notes)
