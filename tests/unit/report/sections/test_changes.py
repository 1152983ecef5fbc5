"""The tables of changes: what supports a verdict is beside it."""

from __future__ import annotations

import pytest

from kteardown.inputs.published import load_posting
from kteardown.model.result import Result
from kteardown.report.formats import markdown
from kteardown.report.formatting import probability, share
from kteardown.report.material import Material
from unit.report.on_terminal import first, printed, rows, with_comparisons
from unit.simulation import WORKLOADS


def test_on_the_wall_clock_the_twins_mde_and_rank_test_are_next_to_the_verdict(
    wall_result: Result,
) -> None:
    report = printed(with_comparisons(wall_result, layout_ci=(0.93, 1.01)))
    header, _, row, *_ = rows(report, "zombies: freezing user space (freeze_user_ns) in ")
    assert header == [
        "zombies",
        "base",
        "A/A",
        "layout",
        "changed",
        "freezer-skip-exited",
        "mde",
        "rank p",
        "verdict",
    ]
    assert row[3] == "[-7.0, +1.0]"
    found = first(wall_result)
    assert row[6:] == [share(found.mde), probability(found.p_rank), found.verdict]
    assert "layout: base against itself with its code moved" in " ".join(report.split())


def test_the_instruction_clock_has_no_empty_columns(freezer_result: Result) -> None:
    report = printed(freezer_result)
    header, *_ = rows(report, "zombies: freezing user space (freeze_user_ns) in ")
    assert header[:5] == ["zombies", "base", "changed", "freezer-skip-exited", "verdict"]
    assert not {"A/A", "layout", "mde", "rank p"} & set(header)


@pytest.mark.parametrize("width", [80, 100])
def test_the_twins_are_shown_at_a_small_width(wall_result: Result, width: int) -> None:
    report = printed(with_comparisons(wall_result, layout_ci=(0.93, 1.01)), width)
    assert "[-7.0, +1.0]" in report
    assert "rank p" in report
    assert max(map(len, report.splitlines())) <= width


def test_equivalence_has_the_p_value_of_its_test(wall_result: Result) -> None:
    same = with_comparisons(
        wall_result, verdict="same", reason="within 2%", p_same=0.0123, exact=False
    )
    assert "6 same: within 2% (TOST p <= 0.012)" in printed(same)


def test_a_rank_test_that_disagrees_is_noted_under_the_table(wall_result: Result) -> None:
    doubted = with_comparisons(
        wall_result, verdict="better", reason="the rank test does not find a change"
    )
    assert "6 better: the rank test does not find a change" in printed(doubted)


def test_a_percentile_has_its_own_table_and_sentence(wall_result: Result) -> None:
    base = first(wall_result).base.model_copy(update={"percentile": 123e6})
    high = [
        c.model_copy(update={"statistic": "p99", "base": base})
        for c in wall_result.comparisons
        if c.metric == "freeze_user_ns"
    ]
    report = printed(
        wall_result.model_copy(update={"comparisons": (*wall_result.comparisons, *high)})
    )
    assert "better: freeze_user_ns p99" in report or "freezing user space (p99)" in report
    title = "zombies: freezing user space (p99) (freeze_user_ns p99) in ms, lower is better"
    assert f"{title}; change with 95% interval" in report
    assert rows(report, title)[2][1] == "123.0"
    posted = markdown.report(Material("", wall_result, WORKLOADS, load_posting("freezer")))
    both = wall_result.model_copy(update={"comparisons": (*wall_result.comparisons, *high)})
    again = markdown.report(Material("", both, WORKLOADS, load_posting("freezer")))
    assert posted.split("Published figures")[1] == again.split("Published figures")[1]
