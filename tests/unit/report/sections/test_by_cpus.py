"""The charts of counts by the number of CPUs."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from kteardown.model.samples import Evidence
from kteardown.report.chart_model import Gallery, Plot
from kteardown.report.charts import markup
from kteardown.report.material import Material
from kteardown.report.sections import by_cpus
from kteardown.report.sections.by_cpus import by_other_parameters, galleries_by_cpus
from unit.report.contexts import contention, instructions


def plot_of(gallery: Gallery, at: str = "mb=16") -> Plot:
    drawn = gallery.charts[at,].drawn
    assert isinstance(drawn, Plot)
    return drawn


def of_metric(material: Material, metric: str) -> Gallery:
    (gallery,) = (g for g in galleries_by_cpus(material) if g.metric == metric)
    return gallery


def only(material: Material, **point: int) -> Material:
    """Return the material with the samples of these points alone."""
    kept = [s for s in material.evidence.samples if point.items() <= s.point.items()]
    return replace(material, evidence=Evidence(tuple(kept)))


def test_each_kernel_has_a_line_over_the_numbers_of_cpus() -> None:
    drawn = plot_of(of_metric(contention(), "line_moves_count"))
    assert [line.name for line in drawn.series] == ["base", "zsmalloc-lockless-free", "other"]
    assert [name.split("\n")[0] for name in drawn.x.names] == ["1", "2", "4", "8"]
    base, more, fewer = (line.marks[-1].y for line in drawn.series)
    assert fewer < base < more
    assert all(line.marks[0].y == 0 for line in drawn.series)


def test_a_mark_is_over_all_seeds_at_all_costs() -> None:
    mark = plot_of(of_metric(contention(), "line_moves_count")).series[0].marks[-1]
    mine = [
        s
        for s in contention().evidence.samples
        if (s.kernel, s.metric) == ("base", "line_moves_count")
        and (s.point["cpus"], s.point["mb"]) == (8, 16)
    ]
    values = [median(samples) for s in mine for samples in s.boots.values()]
    assert len(mine) == 2, "costs"
    assert len(values) == 2 * 4
    assert (mark.y, mark.low, mark.high) == (median(values), min(values), max(values))


def test_marks_of_kernels_stand_beside_each_other() -> None:
    drawn = plot_of(of_metric(contention(), "locked_count"))
    for column, marks in enumerate(zip(*(line.marks for line in drawn.series), strict=True)):
        places = [mark.x for mark in marks]
        assert places == sorted(set(places))
        assert all(abs(place - column) < 0.5 for place in places)


def test_what_changes_with_the_cpus_is_no_choice() -> None:
    gallery = of_metric(contention(), "line_moves_count")
    assert list(gallery.charts) == [("mb=4",), ("mb=16",)]
    assert gallery.first == ("mb=16",)
    assert plot_of(gallery).x.names[2] == "4\nprocesses=4"


def test_points_with_the_same_other_parameters_are_together() -> None:
    every = [{"cpus": cpus, "transfer_ticks": 100, "n": n} for cpus in (1, 2) for n in (5, 6)]
    found = by_other_parameters([(point, point["cpus"]) for point in every])
    assert found == {(("n", 5),): [1, 2], (("n", 6),): [1, 2]}


@pytest.mark.parametrize(
    "material",
    [instructions(), only(contention(), cpus=4), replace(contention(), evidence=Evidence())],
    ids=["another clock", "one number of CPUs", "no samples"],
)
def test_without_several_numbers_of_cpus_there_is_no_chart(material: Material) -> None:
    assert galleries_by_cpus(material) == []


def test_a_count_that_is_always_nothing_has_no_chart() -> None:
    plain = contention()
    none = tuple(
        replace(s, boots={block: (0.0,) for block in s.boots}) if s.metric == "spins_count" else s
        for s in plain.evidence.samples
    )
    drawn = galleries_by_cpus(replace(plain, evidence=Evidence(none)))
    assert [gallery.metric for gallery in drawn] == ["line_moves_count", "locked_count"]


def test_of_many_points_the_last_ones_have_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_cpus, "MOST_PLACES", 1)
    gallery = of_metric(contention(), "locked_count")
    assert list(gallery.charts) == [("mb=16",)]
    assert gallery.charts[gallery.first].notes


def test_base_alone_has_a_line() -> None:
    base = tuple(s for s in contention().evidence.samples if s.kernel == "base")
    alone = replace(contention(), evidence=Evidence(base))
    (line,) = plot_of(of_metric(alone, "locked_count")).series
    assert [mark.x for mark in line.marks] == [0, 1, 2, 3]


def test_the_figures_are_in_the_picture_and_in_its_description() -> None:
    gallery = of_metric(contention(), "spins_count")
    chart = gallery.charts[gallery.first]
    texts = [mark.text for line in plot_of(gallery).series for mark in line.marks]
    drawn = markup(chart.drawn)
    assert len(texts) == 3 * 4
    assert all(text in drawn and text in chart.about for text in texts)
    assert "base with 1 CPU: 0 (0 to 0 in 8 boots)" in texts
