"""The charts: valid for plotly, complete, and with the figures of the result."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, pairwise

import plotly.graph_objects as go
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kteardown.report.charts.drawing import drawing
from kteardown.report.charts.figure import Chart, axis, ratio_range, ratio_ticks, resolve, shared_span, slug
from kteardown.report.charts.flame import flame_gallery
from kteardown.report.charts.forest import forests
from kteardown.report.charts.forest_rows import forest_plots
from kteardown.report.charts.growth import growth_galleries
from kteardown.report.charts.palette import DARK, LIGHT
from kteardown.report.charts.posted import posted_charts
from kteardown.report.charts.scales import numeric
from kteardown.report.charts.spread import spread_gallery
from kteardown.report.charts.tail import tail_gallery
from kteardown.report.charts.verdict_cards import cards
from kteardown.report.charts.waterfall import waterfalls
from kteardown.report.formats.html import all_charts
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_name
from unit.report.contexts import ENTRY, instructions, rich, wall
from unit.simulation import WORKLOADS


@pytest.mark.parametrize("make", [rich, wall], ids=["rich", "wall"])
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plotly_accepts_every_figure(make: Callable[[], Material], theme: dict[str, str]) -> None:
    for chart in all_charts(make()):
        go.Figure(resolve(chart.figure, theme))


def test_charts_have_unique_names_that_are_file_names() -> None:
    names = [chart.name for chart in all_charts(rich())]
    assert len(set(names)) == len(names)
    assert all(name == slug(name) and name for name in names)
    kinds = {name.split("-")[0] for name in names}
    assert kinds == {"forest", "growth", "posted", "samples", "patches", "flame", "tail"}


def test_a_forest_has_every_ratio_with_its_interval() -> None:
    material = wall()
    for chart in forests(material):
        variant = chart.name.removeprefix("forest-")
        drawn: dict[object, tuple[object, ...]] = {}
        for trace in chart.figure["data"]:
            if "verdict" in trace.get("meta", {}):
                error = trace["error_x"]
                for x, plus, minus in zip(trace["x"], error["array"], error["arrayminus"], strict=True):
                    drawn[x] = (pytest.approx(x - minus), pytest.approx(x + plus), trace["meta"]["verdict"])
        expected = {
            c.ratio: (*c.ci, c.verdict) for c in material.result.asked_for if c.variant == variant and c.ci
        }
        assert expected == drawn


def test_forest_plots_of_a_result_have_the_same_axis() -> None:
    ranges = [tuple(chart.figure["layout"]["xaxis"]["range"]) for chart in forests(wall())]
    assert len(ranges) == 2
    assert len(set(ranges)) == 1
    assert len({plot.ticks for plot in forest_plots(wall().result, WORKLOADS)}) == 1


def test_one_wide_interval_is_cut_and_leaves_room_for_the_others() -> None:
    result = wall().result
    first, *others = result.comparisons
    wide = first.model_copy(update={"ratio": 1.0, "ci": (0.001, 900.0), "verdict": "inconclusive"})
    cut = result.model_copy(update={"comparisons": (wide, *others)})
    low, high = shared_span(cut.asked_for)
    assert 0.25 < low < high < 2
    plots = forest_plots(cut, WORKLOADS)
    assert plots[0].ticks == plots[1].ticks
    row = plots[0].metrics[0].rows[0]
    assert (row.mark.less, row.mark.more) == (True, True)
    assert (row.mark.low, row.mark.high) == (0, 100)
    traces = forests(replace(wall(), result=cut))[0].figure["data"]
    arrows = [t["marker"]["symbol"] for t in traces if "triangle" in str(t.get("marker"))]
    assert {"triangle-left", "triangle-right"} <= set(arrows)


def test_the_side_that_is_better_depends_on_the_metric() -> None:
    result = wall().result
    better = forest_plots(result, WORKLOADS)[0].metrics[0]
    assert (better.left, better.right) == ("better", "worse")
    rates = result.model_copy(
        update={"comparisons": tuple(c.model_copy(update={"better": "higher"}) for c in result.comparisons)}
    )
    more = forest_plots(rates, WORKLOADS)[0].metrics[0]
    assert (more.left, more.right) == ("worse", "better")


@pytest.mark.parametrize("make", [rich, wall], ids=["rich", "wall"])
def test_every_figure_is_drawn_as_svg_with_all_its_points(make: Callable[[], Material]) -> None:
    for chart in all_charts(make()):
        if chart.name.startswith("forest"):
            continue
        picture = drawing(chart.figure)
        ET.fromstring(f"<div>{picture.replace('<br>', '<br/>')}</div>")
        assert "nan" not in picture
        for trace in chart.figure["data"]:
            if trace["type"] == "icicle":
                assert picture.count("<rect") == len(trace["ids"])
            elif trace["type"] == "bar":
                assert picture.count('class="bar"') == len(trace["x"])
            elif "markers" in trace["mode"] and isinstance(trace["marker"]["symbol"], str):
                assert picture.count("<use") + picture.count('class="median"') >= len(trace["x"]) - 1
        dots = sum(
            len(t["x"]) for t in chart.figure["data"] if isinstance(t.get("marker", {}).get("symbol"), list)
        )
        assert picture.count("h0") == dots


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.booleans(), st.booleans())
@example(5e-324, 5e-324, False, False)
def test_an_axis_has_a_few_distinct_ticks_in_order(one: float, other: float, log: bool, zero: bool) -> None:
    axis = numeric([abs(one) or 1.0, abs(other) or 2.0] if log else [one, other], log=log, zero=zero)
    shares = [tick.share for tick in axis.ticks]
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
    assert [tick.text for tick in numeric(values, log=log, zero=min(values) == 0).ticks] == labels


def test_plotly_writes_the_labels_of_an_axis_in_the_same_style() -> None:
    """Plotly's browser tests are in ``tests/page``; here only what its documentation names."""
    style = ("exponentformat", "minexponent", "separatethousands")
    assert [axis()[name] for name in style] == ["SI", 4, True]
    assert [axis(type="log")[name] for name in style] == ["SI", 2, True]


def test_the_forest_plot_of_the_wall_clock_shows_the_a_a_intervals() -> None:
    names = [t.get("name") for chart in forests(wall()) for t in chart.figure["data"]]
    assert "A/A: base against itself" in names
    assert not any("A/A" in str(t.get("name")) for c in forests(rich()) for t in c.figure["data"])


def test_growth_shows_the_medians_their_intervals_and_the_law() -> None:
    material = wall()
    gallery = next(g for g in growth_galleries(material) if g.metric == "freeze_user_ns")
    (chart,) = gallery.charts.values()
    base = next(t for t in chart.figure["data"] if t["name"] == "base")
    expected = [c for c in material.result.asked_for if c.metric == "freeze_user_ns"][:6:2]
    assert base["x"] == [3000, 15000, 30000]
    assert base["y"] == pytest.approx([c.base.median / 1000 for c in expected])
    assert all(width > 0 for width in base["error_y"]["array"])
    ahead = [t for c in growth_galleries(instructions())[0].charts.values() for t in c.figure["data"]]
    assert [t["x"][-1] for t in ahead if "law" in t["name"]] == [60000] * 3


def test_published_figures_are_shown_in_their_own_unit() -> None:
    levels, changes = posted_charts(instructions())[0]
    posted = levels.figure["data"][0]
    assert posted["y"][:3] == [0.010, 0.013, 0.020]
    names = [t["name"] for t in changes.figure["data"]]
    assert names == ["posted", "here: freezer-skip-exited"]
    assert changes.figure["data"][0]["y"][-1] == pytest.approx(100 * (0.016 / 0.043 - 1))


def test_every_sample_is_drawn_in_a_column_for_each_boot() -> None:
    material = wall()
    gallery = spread_gallery(material)
    assert gallery is not None
    for (metric, at), chart in gallery.charts.items():
        points = [
            t for t in chart.figure["data"] if "gl" in t["type"] or isinstance(t["marker"]["symbol"], list)
        ]
        mine = [
            s
            for s in material.evidence.samples
            if metric_name(WORKLOADS, s.workload, s.metric) == metric
            and at.endswith(f"{s.point['zombies']:,}")
        ]
        values = sorted(v for s in mine for boot in s.boots.values() for v in boot)
        drawn = sorted(chain.from_iterable(t["y"] for t in points))
        assert len(drawn) == len(values) == 4 * 10 * 3
        assert drawn[-1] / drawn[0] == pytest.approx(values[-1] / values[0])
        for trace in points:
            assert len(set(trace["x"])) == len(trace["x"])
            columns = [trace["x"][n : n + 3] for n in range(0, 30, 3)]
            assert all(max(one) < min(other) for one, other in pairwise(columns))


def test_the_percentiles_of_all_boots_are_drawn_for_each_kernel() -> None:
    gallery = tail_gallery(rich())
    assert gallery is not None
    (chart,) = gallery.charts.values()
    assert [(t["name"], t["x"], t["y"]) for t in chart.figure["data"]] == [
        ("base", ["p50", "p99.9"], [2000, 90000]),
        ("freezer-skip-exited", ["p50", "p99.9"], [1000, 80000]),
    ]
    assert "90,000" in chart.about
    assert tail_gallery(wall()) is None


def test_metrics_of_one_name_have_charts_of_their_own() -> None:
    material = rich()
    metrics = {
        key: spec.model_copy(update={"name": "time"}) for key, spec in WORKLOADS["zombies"].metrics.items()
    }
    workload = WORKLOADS["zombies"].model_copy(update={"metrics": metrics})
    alike = replace(material, workloads={**material.workloads, "zombies": workload})
    apart, together = spread_gallery(material), spread_gallery(alike)
    assert apart is not None
    assert together is not None
    assert len(together.charts) == len(apart.charts)
    assert {chart.name for chart in together.charts.values()} == {c.name for c in apart.charts.values()}
    assert dict(together.choices)["metric"][0] == "time (zombies freeze_user_ns)"


def test_the_steps_of_a_waterfall_end_at_the_whole_series() -> None:
    ((_, chart),) = waterfalls(rich())
    bars = chart.figure["data"][0]
    ends = [base + height for base, height in zip(bars["base"], bars["y"], strict=True)]
    assert ends[:3] == [pytest.approx(100 * (x - 1)) for x in (0.5, 0.49, 0.539)]
    assert ends[3] == pytest.approx(ends[2])
    assert bars["base"] == [0, *ends[:2], 0]
    # Patch 2 may be no change: it is pale.
    assert bars["marker"]["color"] == ["$better", "$null", "$worse", "$base"]


def test_a_flame_graph_adds_up_and_shows_the_difference() -> None:
    gallery = flame_gallery(rich())
    assert gallery is not None
    assert set(gallery.charts) == {
        ("freezer-skip-exited", "zombies zombies=30,000", width) for width in ("base", "freezer-skip-exited")
    }
    trace = gallery.charts["freezer-skip-exited", "zombies zombies=30,000", "base"].figure["data"][0]
    of = dict(zip(trace["labels"], zip(trace["values"], trace["marker"]["colors"], strict=True), strict=True))
    assert of["all"][0] == 1000
    assert of[ENTRY][0] == 999
    assert of["freeze_task"] == (500, -1.0)
    assert of["do_wait"][1] > 0
    assert "tiny" not in of


def test_a_card_leads_with_the_change_and_counts_the_verdicts() -> None:
    first, second = cards(instructions())
    assert (first.variant, second.variant) == ("freezer-skip-exited", "freezer-skip-nofreeze")
    assert first.figure.startswith("-57.")
    assert first.where.startswith("freezing user space over all 11 points [-58.")
    assert dict(first.counts) == {"better": 2, "same": 1}
    marks = [dot.mark for s in first.strips for dot in s.dots]
    assert all(0 <= mark.low <= mark.x <= mark.high <= 100 for mark in marks)


def test_without_samples_the_other_charts_are_drawn() -> None:
    plain = instructions()
    bare = Material(plain.name, plain.result, plain.workloads)
    assert spread_gallery(bare) is None
    assert flame_gallery(bare) is None
    assert posted_charts(bare) == []
    kinds = {chart.name.split("-")[0] for chart in all_charts(bare)}
    assert kinds == {"forest", "growth"}


@given(st.floats(1e-4, 1.0), st.floats(1.0, 1e4))
def test_ticks_of_ratios_are_inside_the_range_distinct_and_include_no_change(low: float, high: float) -> None:
    span = ratio_range([low, high])
    ticks, texts = ratio_ticks(*span)
    assert 1.0 in ticks
    assert len(set(texts)) == len(texts) == len(ticks)
    assert all(span[0] <= tick <= span[1] for tick in ticks)
    assert ticks == sorted(ticks)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground", "least"),
    [
        *((name, ground, 4.5) for name in ("ink", "muted", "link") for ground in ("page", "panel")),
        *((name, "panel", 4.5) for name in ("better", "worse", "same", "inconclusive")),
        *((name, f"{name}-soft", 4.5) for name in ("better", "worse", "same", "inconclusive")),
        *((name, "panel", 3.0) for name in ("base", "kernel0", "kernel1", "kernel2", "kernel3", "kernel4")),
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
