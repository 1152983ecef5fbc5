"""Laws and measured costs, evaluated for a machine."""

from __future__ import annotations

from statistics import quantiles

import pytest

from kteardown.catalogue.costs import MeasuredCost
from kteardown.catalogue.laws import measured_costs
from kteardown.catalogue.problems import find_problem
from kteardown_observe.counts import ObservedMachine
from kteardown_observe.estimate import OTHER_RELEASE, estimate, improvements

FLOCKS = find_problem("flocks")
JOB = find_problem("zombies_job")


def test_between_two_releases_the_range_has_both() -> None:
    older = estimate(FLOCKS, 2000, ObservedMachine(release="6.12.1"))
    newer = estimate(FLOCKS, 2000, ObservedMachine(release="7.2.1"))
    between = estimate(FLOCKS, 2000, ObservedMachine(release="6.18.0"))
    assert older and newer and between
    assert between.releases == ("6.12", "7.2")
    assert between.low == min(older.low, newer.low)
    assert between.high == max(older.high, newer.high)


def test_beyond_all_measured_releases_the_range_is_wider() -> None:
    measured = estimate(FLOCKS, 2000, ObservedMachine(release="7.3.4"))
    newer = estimate(FLOCKS, 2000, ObservedMachine(release="7.9.0"))
    assert measured and newer
    assert newer.value == measured.value
    assert newer.low < measured.low
    assert newer.high > measured.high


def test_how_much_wider_is_what_two_releases_differ() -> None:
    by_kind: dict[tuple[str, str], dict[str, MeasuredCost]] = {}
    for cost in measured_costs():
        if not cost.series:
            by_kind.setdefault((cost.kind, cost.way), {})[cost.release] = cost
    factors = []
    for costs in by_kind.values():
        if {"6.12", "7.3"} <= set(costs):
            older, newer = costs["6.12"], costs["7.3"]
            number = min(older.sizes[-1], newer.sizes[-1])
            ratio = newer.at(number)[1] / older.at(number)[1]
            factors.append(max(ratio, 1 / ratio))
    assert quantiles(factors, n=10)[-1] == pytest.approx(OTHER_RELEASE, rel=0.1)


def test_a_series_that_makes_it_linear_helps_more_the_more_there_are() -> None:
    machine = ObservedMachine(release="6.12.117")
    few, many = (improvements(JOB, number, machine) for number in (500, 50_000))
    by_name = [{better.name: better.saved for better in found} for found in (few, many)]
    assert by_name[0]["exit-reparent-zombies"] < by_name[1]["exit-reparent-zombies"] < 1


def test_what_does_not_surely_help_is_not_named() -> None:
    names = [
        better.name for better in improvements(FLOCKS, 2000, ObservedMachine(release="6.12.117"))
    ]
    assert names == []


def test_more_possible_cpus_keep_more_memory() -> None:
    problem = find_problem("dying_memory_cgroups")
    sizes = [
        estimate(problem, 1000, ObservedMachine(release="6.12.1", possible_cpus=cpus))
        for cpus in (2, 16, 32, 48, 64, 128)
    ]
    values = [found.value for found in sizes if found]
    assert values == sorted(values)
    assert len(values) == 6
