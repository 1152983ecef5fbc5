"""The parts of a report that support a verdict."""

from __future__ import annotations

from kteardown.model.result import Outlier, Result, Stopping
from unit.report.on_terminal import printed, rows, with_comparisons

STOPPING = Stopping(
    rule="verdict",
    looks=(4, 6, 8, 12, 40),
    stopped_at=12,
    confidence=0.989,
    alpha=0.021,
    done=True,
    reason="18 of 18 headline comparisons have a verdict",
)


def test_the_report_says_when_a_run_stopped_and_why(wall_result: Result) -> None:
    report = printed(wall_result.model_copy(update={"stopping": STOPPING}), 200)
    assert (
        "stopped after 12 of at most 40 boots: 18 of 18 headline comparisons have a verdict "
        "(until verdict; alpha spent: 0.021)" in report
    )
    going = STOPPING.model_copy(update={"done": False, "reason": "2 of 18 have"})
    assert "not finished, 12 of at most 40 boots: 2 of 18 have" in printed(
        wall_result.model_copy(update={"stopping": going})
    )
    level = with_comparisons(wall_result, confidence=0.9893)
    assert "change with 98.93% interval" in printed(level)


def outlier(kernel: str, block: int, value: float) -> Outlier:
    return Outlier(
        kernel=kernel,
        workload="zombies",
        metric="thaw_ns",
        statistic="median",
        point={"zombies": 3000},
        block=block,
        value=value,
        median=100.0,
        ranges=4.2,
    )


def test_outlier_boots_are_listed_the_farthest_first(wall_result: Result) -> None:
    found = (outlier("base", 3, 149.0), outlier("base", 3, 120.0), outlier("base-twin", 7, 50.0))
    report = printed(wall_result.model_copy(update={"outliers": found}))
    _, _, one, other, note = rows(report, "Outlier boots")
    assert one == ["base-twin", "7", "1", "0.50x", "thawing all tasks zombies=3,000"]
    assert other == ["base", "3", "2", "1.49x", "thawing all tasks zombies=3,000"]
    assert "they are included in all figures above" in note[0]
    many = tuple(outlier("base", block, 200.0 + block) for block in range(13))
    crowded = printed(wall_result.model_copy(update={"outliers": many}))
    assert "result.json has 3 more boots" in crowded
    assert "Outlier boots" not in printed(wall_result.model_copy(update={"outliers": ()}))
