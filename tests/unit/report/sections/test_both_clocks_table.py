"""Both clocks side by side, in words and tables."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kteardown.analysis.both_clocks import both_clocks
from kteardown.model.both_clocks import BothClocks, ClockRate
from kteardown.report.formats import text
from kteardown.report.formats.html import html_report
from kteardown.report.material import BothMaterial, side_by_side
from kteardown.report.sections.both_clocks_table import (
    clock_faults,
    clock_summary,
    clock_tables,
    rate_sentences,
)
from unit.report.contexts import instructions, wall
from unit.simulation import WORKLOADS


def opposed() -> BothClocks:
    """Return simulated clocks of which one calls one point of one variant worse."""
    exact, timed = instructions().result, wall().result
    rows = [
        c.model_copy(update={"verdict": "worse", "ratio": 1.2, "ci": (1.1, 1.3)})
        if (c.variant, c.metric, c.point["zombies"])
        == ("freezer-skip-nofreeze", "freeze_remaining_ns", 15000)
        else c
        for c in timed.comparisons
    ]
    return both_clocks(exact, timed.model_copy(update={"comparisons": tuple(rows)}))


def both() -> BothMaterial:
    return side_by_side("20260301-123059-freezer", instructions(), wall())


def test_where_the_clocks_disagree_is_first() -> None:
    summary = clock_summary(opposed(), WORKLOADS)
    assert summary is not None
    first, *rest = [[cell.text for cell in row] for row in summary.keys.rows]
    assert (first[0], first[1], first[4]) == (
        "freeze_remaining_ns",
        "freezer-skip-nofreeze",
        "agree",
    )
    assert first[5].startswith("1 disagree, ")
    assert summary.keys.rows[0][5].tone == "worse"
    assert rest
    assert not any("disagree" in row[5] for row in rest)


def test_points_that_one_clock_lacks_are_counted() -> None:
    summary, *_ = clock_tables(both().both, WORKLOADS)
    row = next(row for row in summary.keys.rows if row[0].text == "freeze_user_ns")
    assert row[1].text == "freezer-skip-exited"
    assert [cell.text for cell in row[4:]] == ["agree", "3 agree, 8 undecided"]
    assert row[4].tone == "better"


def test_a_table_has_a_row_for_each_point_with_the_smallest_change_that_could_be_seen() -> None:
    tables = clock_tables(both().both, WORKLOADS)
    first = tables[1]
    assert first.title.startswith(
        "zombies: freezing user space (freeze_user_ns) with freezer-skip-exited, change on both "
        "clocks"
    )
    assert first.keys.columns == ("zombies", "instructions", "wall clock", "mde", "reading")
    assert len(first.keys.rows) == 11
    # Base is -60%: a change that is detected is a lower one, and smaller than all of it.
    assert -100 < float(first.keys.rows[-1][3].text.rstrip("%")) < -5
    missing = first.keys.rows[0]
    assert [cell.text for cell in missing[2:]] == ["-", "-", "undecided"]
    assert "8 undecided: the wall clock has no such comparison" in first.notes
    assert first.notes[-1].startswith(
        "smallest change that the wall clock could have seen (80% power): "
    )
    (_, narrow, *_) = clock_tables(both().both, WORKLOADS, narrow=True)
    assert "mde" not in narrow.keys.columns


@pytest.mark.parametrize(
    ("residual", "words"),
    [
        (
            0.12,
            "one instruction of freezing user space took 2.500 ns on this machine, with a residual "
            "of 12.0%",
        ),
        (
            0.4,
            "instructions of freezing user space cannot be converted to time: one took 2.000 to "
            "3.000 ns",
        ),
    ],
)
def test_a_rate_is_given_with_its_residual_or_not_at_all(residual: float, words: str) -> None:
    rate = ClockRate(
        workload="zombies",
        metric="freeze_user_ns",
        rate=2.5,
        residual=residual,
        low=2.0,
        high=3.0,
        medians=9,
    )
    minor = rate.model_copy(update={"metric": "thaw_ns"})
    found = BothClocks(readings=(), rates=(rate, minor), notes=(), results={})
    (sentence,) = rate_sentences(found, WORKLOADS)
    assert sentence.startswith(words)


def test_nothing_that_both_clocks_measured_is_said() -> None:
    empty = BothClocks(readings=(), rates=(), notes=(), results={})
    assert [line.text for line in clock_faults(empty)] == [
        "nothing could be compared on both clocks"
    ]
    assert clock_summary(empty, WORKLOADS) is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_has_no_line_that_is_too_long(width: int) -> None:
    out = io.StringIO()
    text.report(both(), Console(file=out, width=width, force_terminal=False))
    lines = out.getvalue().splitlines()
    assert max(len(line) for line in lines if not line.startswith("  kteardown")) <= width
    assert lines[0].startswith("With freezer-skip-exited, freezing user space takes 58% fewer ")
    assert any(line.startswith("freezer on both clocks: ") for line in lines)
    assert lines.count("The instruction clock alone") == lines.count("The wall clock alone") == 1


def test_charts_of_both_clocks_are_on_one_page_under_names_of_their_own() -> None:
    page = html_report(both())
    names = [part.split('"')[0] for part in page.split(' id="chart-')[1:]]
    assert len(names) == len(set(names))
    of_wall = [name for name in names if name.startswith("wall-")]
    assert of_wall
    assert {name.removeprefix("wall-") for name in of_wall} <= set(names)
