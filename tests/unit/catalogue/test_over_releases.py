"""Costs over releases: what is a change, and which law stands for a release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kteardown.catalogue.laws import MeasuredLaw
from kteardown.catalogue.over_releases import cost_history, histories_of
from kteardown.catalogue.problems import find_problem, load_problems

LAW = MeasuredLaw("zombies", "m_ns", "n", "6.12", "", {}, 100, (99, 101), "instructions", "a")


def test_every_problem_was_measured_somewhere() -> None:
    for problem in load_problems():
        history = cost_history(problem)
        assert history.lines[0].series == "", problem.name
        assert all(cost.low <= cost.value <= cost.high for cost in history.lines[0].costs)


@pytest.mark.parametrize(
    ("newer", "interval", "verdict"),
    [
        (50, (49, 51), "better"),
        (200, (198, 202), "worse"),
        # Surely more, but not by more than the margin.
        (105, (104, 106), None),
        # The ranges overlap.
        (150, (50, 250), None),
    ],
)
def test_a_release_changes_a_cost_that_is_apart_and_differs_by_more_than_the_margin(
    newer: float, interval: tuple[float, float], verdict: str | None
) -> None:
    later = replace(LAW, release="7.0", per_unit=newer, interval=interval)
    (history,) = histories_of([later, LAW]).values()
    assert [cost.release for cost in history.lines[0].costs] == ["6.12", "7.0"]
    assert [change.verdict for change in history.changes] == ([verdict] if verdict else [])


def test_a_cost_that_is_gone_is_a_change() -> None:
    gone = replace(LAW, release="7.0", per_unit=0, interval=(0, 0))
    (history,) = histories_of([LAW, gone]).values()
    (change,) = history.changes
    assert (change.verdict, change.ratio) == ("better", 0)


def test_laws_of_other_points_are_other_histories_and_series_are_other_lines() -> None:
    laws = [LAW, replace(LAW, point={"m": 2}), replace(LAW, series="s"), replace(LAW, param="k")]
    histories = histories_of(laws)
    assert [key[2:] for key in histories] == [("k", ""), ("n", ""), ("n", "m=2")]
    assert [line.series for line in histories["zombies", "m_ns", "n", ""].lines] == ["", "s"]


def test_a_law_of_another_result_is_of_a_release_that_the_catalogue_has_not() -> None:
    problem = find_problem("zombies_suspend")
    known = cost_history(problem).lines[0].costs
    law = replace(LAW, metric="freeze_user_ns", param="zombies", result="run")
    further = [replace(law, release=known[0].release), replace(law, release="9.9")]
    costs = cost_history(problem, further).lines[0].costs
    assert costs[:-1] == known
    assert (costs[-1].release, costs[-1].result) == ("9.9", "run")


def test_a_law_by_another_parameter_or_unit_is_no_law_of_the_problem() -> None:
    problem = find_problem("zombies_suspend")
    law = replace(LAW, metric="freeze_user_ns", param="zombies", release="9.9")
    for other in (replace(law, unit="kb"), replace(law, param="cpus")):
        assert cost_history(problem, [other]) == cost_history(problem)


def test_the_whole_change_is_from_the_oldest_to_the_newest() -> None:
    middle = replace(LAW, release="6.18", per_unit=200, interval=(198, 202))
    last = replace(LAW, release="7.0")
    (history,) = histories_of([LAW, middle, last]).values()
    assert [change.verdict for change in history.changes] == ["worse", "better"]
    assert history.whole_change is None


def test_the_memory_of_a_removed_cgroup_has_a_line_for_each_number_of_cpus() -> None:
    lines = cost_history(find_problem("dying_memory_cgroups")).lines
    assert "32 possible CPUs" in {line.machine for line in lines}
