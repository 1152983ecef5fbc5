"""Orphaned process groups get their signals: with the shipped series they do, wrong series are
caught."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "pgrp_stress"
SERIES = "exit-stopped-groups"
WRONG = {
    "stopped-broken-cleared": "signaled: ",
    "stopped-broken-moved": "signaled: moved when it was stopped: ",
}


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    return lab.stress_wrong(tmp_path_factory.mktemp("pgrp"), WORKLOAD, f"{SERIES}/pid", WRONG)


def test_orphaned_groups_get_their_signals(boots: list[lab.Boot]) -> None:
    lab.assert_right(boots, "base", WORKLOAD)


def test_they_get_them_without_the_series(tmp_path_factory: pytest.TempPathFactory) -> None:
    boots = lab.stress(tmp_path_factory.mktemp("pgrp"), WORKLOAD, "debian:6.12", [])
    lab.assert_right(boots, "base", WORKLOAD)


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
