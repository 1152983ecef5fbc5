"""Memory cgroups are removed while their memory is swapped out: the series frees them and counts
all."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "memcg_swap"
SERIES = "memcg-swap-reparent"
WRONG = "memcg-swap-broken-charged"
CONFIG = ("kasan", "disk")
"""In addition to the fragment ``debug`` of the workload: a memcg that is used after it was freed is
found. The kernels are those of test_memcg_selftest.py."""
FREED = 3
"""The first patches of the series, which free the removed cgroup."""
NO_CHARGE = f"memcg-swap-reparent@{FREED}"
"""Only these: memory that is swapped in is charged to the reader."""


def swap_in(
    folders: pytest.TempPathFactory,
    source: str,
    version: int = 2,
    config: Collection[str] = CONFIG,
) -> list[lab.Boot]:
    """One boot of each kernel, on the wall clock: one CPU really removes a cgroup while another
    swaps its memory. The source is a kernel with what frees the cgroup."""
    made, folder = folders.mktemp("series"), folders.mktemp("swap")
    first, rest = lab.in_two_steps(made, SERIES, FREED, source)
    wrong = lab.on_top(made, rest, WRONG)
    params = f"version = [{version}]"
    variants = [rest, wrong]
    boots = lab.stress(
        folder, WORKLOAD, first, variants, lab.WALL, config, params, lab.NO_IRQ_ROUTING
    )
    names = {"base": NO_CHARGE, Path(rest).name: SERIES}
    for boot in boots:
        boot.kernel = names.get(boot.kernel, boot.kernel)
    return boots


def samples(boots: list[lab.Boot], kernel: str) -> dict[str, list[float]]:
    (boot,) = (boot for boot in boots if boot.kernel == kernel)
    return boot.trials[0].samples


def dying(boots: list[lab.Boot], kernel: str) -> list[float]:
    """Dying cgroups after the removal of one cgroup, and of one in another."""
    found = samples(boots, kernel)
    return [*found["dying_count"], *found["dying_nested_count"]]


def elsewhere(boots: list[lab.Boot], kernel: str) -> float:
    """Pages of a removed cgroup that are charged to the cgroup of their reader."""
    (pages,) = samples(boots, kernel)["elsewhere_count"]
    return pages


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    return swap_in(tmp_path_factory, "debian:7.3")


@pytest.fixture(scope="module")
def boots_of_version_1(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    return swap_in(tmp_path_factory, "debian:7.3", version=1)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    folder = tmp_path_factory.mktemp("base")
    return lab.stress(
        folder, WORKLOAD, "debian:7.3", [], lab.WALL, CONFIG, machine=lab.NO_IRQ_ROUTING
    )


@pytest.mark.parametrize("kernel", (SERIES, NO_CHARGE))
def test_all_swap_is_counted_and_all_cgroups_are_freed(boots: list[lab.Boot], kernel: str) -> None:
    lab.assert_right(boots, kernel, WORKLOAD)


@pytest.mark.parametrize("kernel", (SERIES, NO_CHARGE))
def test_memory_and_swap_of_version_1_are_counted(
    boots_of_version_1: list[lab.Boot], kernel: str
) -> None:
    lab.assert_right(boots_of_version_1, kernel, WORKLOAD)


@pytest.mark.parametrize("version", (1, 2))
def test_the_series_holds_on_7_2(tmp_path_factory: pytest.TempPathFactory, version: int) -> None:
    boots = swap_in(tmp_path_factory, "debian:7.2", version, ("kasan",))
    for kernel in (SERIES, NO_CHARGE):
        lab.assert_right(boots, kernel, WORKLOAD)
    assert dying(boots, SERIES) == dying(boots, NO_CHARGE) == [0, 0]
    assert elsewhere(boots, SERIES) == 0
    assert "swap_exact" in lab.failed(lab.checks(boots), WRONG)


def test_a_removed_cgroup_is_freed_although_its_memory_is_swapped_out(
    boots: list[lab.Boot], boots_of_version_1: list[lab.Boot]
) -> None:
    for kernel in (SERIES, NO_CHARGE):
        assert dying(boots, kernel) == dying(boots_of_version_1, kernel) == [0, 0]


def test_base_keeps_the_cgroup_and_charges_the_reader(base: list[lab.Boot]) -> None:
    lab.assert_right(base, "base", WORKLOAD)
    assert dying(base, "base") == [1, 2]
    assert elsewhere(base, "base") > 0


def test_the_ancestor_is_charged_for_what_is_read_again(
    boots: list[lab.Boot], boots_of_version_1: list[lab.Boot]
) -> None:
    for version in (boots, boots_of_version_1):
        assert elsewhere(version, NO_CHARGE) > 0
        assert elsewhere(version, SERIES) == 0


def test_a_series_that_does_not_uncharge_the_ancestor_is_caught(
    boots: list[lab.Boot], boots_of_version_1: list[lab.Boot]
) -> None:
    assert "swap_exact" in lab.failed(lab.checks(boots), WRONG)
    assert "swap_exact" in lab.failed(lab.checks(boots_of_version_1), WRONG)
