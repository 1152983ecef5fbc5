"""Orphaned process groups get their signals: with the shipped series they do, wrong series are
caught."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "pgrp_stress"
SERIES = "exit-reparent-zombies"
WRONG = {
    "reparent-broken-leader": "signaled: a leader has exited, ",
    "reparent-broken-live": "signaled: ",
}


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    return lab.stress_wrong(tmp_path_factory.mktemp("pgrp"), WORKLOAD, SERIES, WRONG)


def test_orphaned_groups_get_their_signals_and_only_those(boots: list[lab.Boot]) -> None:
    lab.assert_right(boots, "base", WORKLOAD)
    assert _signaled_before(boots, "base") == 0


def test_without_the_series_a_group_that_was_orphaned_before_gets_them_too(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    boots = lab.stress(tmp_path_factory.mktemp("pgrp"), WORKLOAD, "debian:6.12", [])
    lab.assert_right(boots, "base", WORKLOAD)
    assert _signaled_before(boots, "base") == 1


@pytest.mark.parametrize("kernel", WRONG)
def test_a_series_that_is_wrong_is_caught(boots: list[lab.Boot], kernel: str) -> None:
    wrong = lab.wrong(boots, kernel)
    assert any(line.startswith(WRONG[kernel]) for line in wrong), wrong


@pytest.mark.parametrize("source", ("debian:6.1", "debian:7.2", "debian:7.3"))
def test_the_series_is_right_on_other_kernels(
    tmp_path_factory: pytest.TempPathFactory, source: str
) -> None:
    boots = lab.stress_elsewhere(tmp_path_factory.mktemp("pgrp"), WORKLOAD, SERIES, source)
    lab.assert_right(boots, SERIES, WORKLOAD)


def _signaled_before(boots: list[lab.Boot], kernel: str) -> int:
    (boot,) = (boot for boot in boots if boot.kernel == kernel)
    (trial,) = boot.trials
    return int(trial.samples["signaled_before_count"][0])
