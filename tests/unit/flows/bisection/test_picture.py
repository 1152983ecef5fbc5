"""The tested commits on one line, and as a chart."""

from __future__ import annotations

from kteardown.flows.bisection.search import CommitValue, chart, line
from kteardown.report.chart_model import Plot
from kteardown.report.charts import svg_file

TESTED = [
    CommitValue(0, False, 68.0, None, "68", "good"),
    CommitValue(30, False, 70.0, (65.0, 75.0), "70 [65, 75]", "a <b> of another"),
    CommitValue(50, None, None, None, "no value", "does not build"),
    CommitValue(71, True, 115.0, (110.0, 120.0), "115 [110, 120]", "bad"),
]


def test_the_history_is_on_one_line() -> None:
    found = line(TESTED, 71, range(31, 72))
    assert found == "o" + "-" * 29 + "o" + "=" * 19 + "?" + "=" * 20 + "#"
    assert line(TESTED[:1], 0, ())[0] == "o"
    assert len(line(TESTED, 100_000, [99_999])) == len(found)


def test_each_commit_has_its_value_and_interval_in_the_chart() -> None:
    drawn = chart(TESTED, "cost", "instructions")
    assert isinstance(drawn.drawn, Plot)
    marks = {one.name: one.marks for one in drawn.drawn.series}
    assert [(mark.x, mark.y, mark.low, mark.high) for mark in marks["good"]] == [
        (0, 68, None, None),
        (30, 70, 65, 75),
    ]
    assert [mark.y for mark in marks["bad"]] == [115]
    assert [mark.y for mark in marks["no value, or uncertain"]] == [68]
    svg = svg_file(drawn)
    assert "70 [65, 75] a &lt;b&gt; of another" in svg
    assert svg.count('class="ends') == 2
