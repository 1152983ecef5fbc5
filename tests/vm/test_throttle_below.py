"""7.2 itself does not keep the quota of a group in the groups inside it; ``sched-throttle-below``
does."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "sched-throttle-below"


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """Base and the series: tasks in a group without a quota, inside one with 10% of a CPU."""
    return lab.run(
        tmp_path_factory.mktemp("below"),
        'name = "below"\nquestion = "Is the quota of an outer group kept?"\nsource = "debian:7.2"\n'
        f'variants = ["{SERIES}"]\n[[workloads]]\nworkload = "quota"\nparams.tasks = [24]\n'
        "params.quota = [0]\nparams.outer = [10]\nparams.periods = [20]\n"
        f"[machine]\ncpus = 1\n[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


def test_the_tasks_below_a_group_keep_its_quota(boots: list[lab.Boot]) -> None:
    assert not lab.wrong(boots, SERIES)
    (trial,) = (trial for boot in boots if boot.kernel == SERIES for trial in boot.trials)
    assert trial.samples["usage_share"][0] < 1.05
    assert trial.samples["least_share"][0] > 0.6


def test_base_does_not(boots: list[lab.Boot]) -> None:
    assert "quota_kept" in lab.failed(lab.checks(boots), "base")
