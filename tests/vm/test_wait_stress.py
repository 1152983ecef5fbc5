"""Children are waited for in every way: the shipped series misses none, wrong series are caught."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "wait_stress"
SERIES = "exit-linear"
CAUGHT_BY = {
    "wait-broken-echild": "nothing",
    "wait-broken-reparent": "found",
    "wait-broken-stopped": "found",
    "wait-broken-thread": "found",
    "wait-broken-tracee": "found",
    "wait-broken-turn": "in_turn",
}


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    return lab.stress_wrong(tmp_path_factory.mktemp("wait"), WORKLOAD, f"{SERIES}/pid", CAUGHT_BY)


def test_no_child_is_missed(boots: list[lab.Boot]) -> None:
    lab.assert_right(boots, "base", WORKLOAD)


def test_no_child_is_missed_without_the_series(tmp_path_factory: pytest.TempPathFactory) -> None:
    boots = lab.stress(tmp_path_factory.mktemp("wait"), WORKLOAD, "debian:6.12", [])
    lab.assert_right(boots, "base", WORKLOAD)


def test_children_are_reported_in_the_order_of_their_exits(boots: list[lab.Boot]) -> None:
    (boot,) = (boot for boot in boots if boot.kernel == "base")
    assert boot.trials[0].samples["in_order_count"] == [22]


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_series_that_is_wrong_is_caught(boots: list[lab.Boot], kernel: str) -> None:
    wrong = lab.wrong(boots, kernel)
    assert any(line.startswith(f"{CAUGHT_BY[kernel]}: ") for line in wrong), wrong


@pytest.mark.parametrize("source", ("debian:6.1", "debian:7.2", "debian:7.3"))
def test_the_series_is_right_on_other_kernels(
    tmp_path_factory: pytest.TempPathFactory, source: str
) -> None:
    boots = lab.stress_elsewhere(tmp_path_factory.mktemp("wait"), WORKLOAD, SERIES, source)
    lab.assert_right(boots, SERIES, WORKLOAD)


def test_two_cpus_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    boots = lab.stress(tmp_path_factory.mktemp("wait"), WORKLOAD, "debian:6.12", [SERIES], lab.WALL)
    lab.assert_right(boots, SERIES, WORKLOAD)
