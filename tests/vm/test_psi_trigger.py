"""A trigger is written while its cgroup is removed: 6.12 uses freed memory, and the line that a
commit of mainline adds fixes that (findings/upstream)."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "psi_trigger"
SERIES = "cgroup-release-priv"


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, lab.Boot]:
    """On the wall clock: the writer and the remover really run at once, on two CPUs."""
    boots = lab.stress(
        tmp_path_factory.mktemp("trigger"),
        WORKLOAD,
        "debian:6.12",
        [str(lab.BROKEN / SERIES)],
        lab.WALL,
        lab.KASAN,
    )
    return {boot.kernel: boot for boot in boots}


def test_base_is_caught(boots: dict[str, lab.Boot]) -> None:
    problems = boots["base"].problems
    assert any("KASAN: slab-use-after-free in pressure_write" in line for line in problems), (
        problems
    )


def test_the_series_passes_though_cgroups_are_removed_during_the_write(
    boots: dict[str, lab.Boot],
) -> None:
    lab.assert_right(list(boots.values()), SERIES, WORKLOAD)
    assert boots[SERIES].trials[0].samples["during_count"][0] > 0
