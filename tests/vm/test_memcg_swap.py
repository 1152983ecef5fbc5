"""Memory cgroups are removed while their memory is swapped out: the series frees them and counts
all."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "memcg_swap"
SERIES = "memcg-swap-reparent"
WRONG = "memcg-swap-broken-charged"
CONFIG = ("kasan",)
"""In addition to the fragment ``debug`` of the workload: a memcg that is used after it was freed is
found."""


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """On the wall clock: one CPU really removes a cgroup while another swaps its memory."""
    wrong = lab.on_top(tmp_path_factory.mktemp("series"), SERIES, WRONG)
    folder = tmp_path_factory.mktemp("swap")
    return lab.stress(folder, WORKLOAD, "debian:7.3", [SERIES, wrong], lab.WALL, CONFIG)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_all_swap_is_counted_and_all_cgroups_are_freed(boots: list[lab.Boot], kernel: str) -> None:
    lab.assert_right(boots, kernel, WORKLOAD)


def test_the_series_holds_on_7_2(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("swap")
    boots = lab.stress(folder, WORKLOAD, "debian:7.2", [SERIES], lab.WALL, CONFIG)
    for kernel in ("base", SERIES):
        lab.assert_right(boots, kernel, WORKLOAD)
    samples = {boot.kernel: boot.trials[0].samples for boot in boots}
    assert samples["base"]["dying_nested_count"] == [2]
    assert samples[SERIES]["dying_nested_count"] == [0]


def test_a_removed_cgroup_is_freed_although_its_memory_is_swapped_out(
    boots: list[lab.Boot],
) -> None:
    """If it were not, the test above would not test the series."""
    samples = {boot.kernel: boot.trials[0].samples for boot in boots}
    assert samples["base"]["dying_count"] == [1]
    assert samples["base"]["dying_nested_count"] == [2]
    assert samples[SERIES]["dying_count"] == samples[SERIES]["dying_nested_count"] == [0]


def test_the_ancestor_is_charged_for_what_is_read_again(boots: list[lab.Boot]) -> None:
    samples = {boot.kernel: boot.trials[0].samples for boot in boots}
    assert min(samples["base"]["elsewhere_count"]) > 0
    assert samples[SERIES]["elsewhere_count"] == [0]


def test_a_series_that_does_not_uncharge_the_ancestor_is_caught(boots: list[lab.Boot]) -> None:
    assert "swap_exact" in lab.failed(lab.checks(boots), WRONG)
