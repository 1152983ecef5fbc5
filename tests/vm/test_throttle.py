"""CPU quotas: which tasks wait for a lock whose holder is throttled, and whether quotas hold."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

SERIES = "sched-task-throttle"


def run(
    folder: Path, workloads: str, *, cpus: int = 1, variants: tuple[str, ...] = (SERIES,)
) -> list[lab.Boot]:
    """One boot of base and of each variant on the instruction clock."""
    return lab.run(
        folder,
        f'name = "throttle"\nquestion = "Does it work?"\nsource = "debian:6.12"\n'
        f"variants = {list(variants)!r}\n{workloads}\n"
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n'
        f"[machine]\ncpus = {cpus}\n",
    )


def all_well(trial: lab.Trial) -> None:
    """The trial ended well and every invariant of its workload held."""
    invariants = load_workload(trial.workload).invariants
    assert trial.status == "ok", (trial.params, trial.detail)
    assert set(trial.checks) <= set(invariants)
    assert all(all(oks) for oks in trial.checks.values())


@pytest.fixture(scope="module")
def holders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[object, lab.Trial]]:
    """The trials by kernel and by the lock that is held."""
    booted = run(
        tmp_path_factory.mktemp("holders"),
        '[[workloads]]\nworkload = "holder"\nparams.what = ["listing", "smaps", "write", "fork"]\n'
        "params.duration_ms = [600]\n",
        cpus=2,
    )
    return {boot.kernel: {trial.params["what"]: trial for trial in boot.trials} for boot in booted}


@pytest.fixture(scope="module")
def quotas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[lab.Trial]]:
    """The trials by kernel."""
    booted = run(
        tmp_path_factory.mktemp("quotas"),
        '[[workloads]]\nworkload = "quota"\nparams.tasks = [1, 10]\nparams.periods = [20]\n'
        'params.work = ["syscall", "burst"]\nparams.outer = [0, 10]\nparams.burst = [0, 20]\n',
    )
    return {boot.kernel: boot.trials for boot in booted}


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["base", SERIES])
def test_every_lock_is_held_and_every_operation_gets_its_latency(
    holders: dict[str, dict[object, lab.Trial]], kernel: str
) -> None:
    assert len(holders[kernel]) == 4
    for what, trial in holders[kernel].items():
        all_well(trial)
        assert set(trial.checks) == set(load_workload("holder").invariants)
        assert set(trial.samples) == set(load_workload("holder").metrics)
        assert len(trial.samples["latency_ns"]) == (12 if what == "fork" else 200)
        assert trial.samples["longest_stall_ns"] == [max(trial.samples["latency_ns"])]
        assert trial.samples["given_up_count"] == [0]
        assert 0 <= trial.samples["blocked_share"][0] <= 1


@pytest.mark.full
def test_no_task_waits_for_a_throttled_task_that_holds_a_directory(
    holders: dict[str, dict[object, lab.Trial]],
) -> None:
    base, changed = (
        holders[kernel]["listing"].samples["blocked_share"][0] for kernel in ("base", SERIES)
    )
    assert base > 0.4
    assert changed < base / 5


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["base", SERIES])
def test_quotas_hold_in_every_setting(quotas: dict[str, list[lab.Trial]], kernel: str) -> None:
    assert len(quotas[kernel]) == 16
    for trial in quotas[kernel]:
        all_well(trial)
        (usage,) = trial.samples["usage_share"]
        assert usage == pytest.approx(1, abs=0.05)
        if trial.params["work"] != "burst":
            assert trial.samples["throttled_count"][0] >= 10


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["base", SERIES])
def test_saved_quota_is_used_only_where_bursts_are_allowed(
    quotas: dict[str, list[lab.Trial]], kernel: str
) -> None:
    for trial in quotas[kernel]:
        if trial.params["outer"] == 0:
            saved = trial.params["work"] == "burst" and trial.params["burst"] == 20
            assert (trial.samples["bursts_count"][0] > 0) == saved, trial.params


def test_a_stall_beyond_the_patience_is_recorded_and_cleaned_up(tmp_path: Path) -> None:
    (boot,) = run(
        tmp_path,
        # The first holder is throttled, with a quota of 1%, while it holds the lock: it waits for
        # seconds.
        '[[workloads]]\nworkload = "holder"\nparams.quota = [1]\nparams.duration_ms = [300]\n'
        "params.patience_ms = [0]\nparams.holders = [4]\n"
        '[[workloads]]\nworkload = "quota"\nparams.quota = [0]\nparams.tasks = [3]\n'
        "params.periods = [2]\n"
        'params.on = ["one"]\nparams.irq_timer_us = [50]\n',
        variants=(),
    )
    stalled, watched = boot.trials
    all_well(stalled)
    assert stalled.samples["given_up_count"][0] > 0
    assert len(stalled.samples["latency_ns"]) == 100
    all_well(watched)
    assert set(watched.samples) == {"irqs_off_ns"}


def test_impossible_parameters_are_refused(tmp_path: Path) -> None:
    (boot,) = run(
        tmp_path,
        '[[workloads]]\nworkload = "holder"\nparams.every_us = [10]\nparams.duration_ms = [20000]\n'
        '[[workloads]]\nworkload = "quota"\nparams.work = ["burst"]\nparams.periods = [7]\n'
        "params.burst = [0, 30]\n",
        variants=(),
    )
    reasons = ("2000000 operations are due", "a multiple of 5", "larger than the quota")
    assert len(boot.trials) == len(reasons)
    for trial, reason in zip(boot.trials, reasons, strict=True):
        assert trial.status == "failed"
        assert reason in trial.detail
        assert not trial.samples


@pytest.mark.full
def test_one_more_task_costs_something_where_tasks_are_throttled(tmp_path: Path) -> None:
    """Base throttles the run queue of the group, the series each task by itself."""
    booted = run(
        tmp_path,
        '[[workloads]]\nworkload = "throttled_tasks"\nparams.tasks = [5, 105]\n'
        "params.periods = [3]\n",
    )
    per_task = {}
    for boot in booted:
        few, many = boot.trials
        for trial in (few, many):
            all_well(trial)
            assert set(trial.samples) == set(load_workload("throttled_tasks").metrics)
            assert all(len(values) == 3 for values in trial.samples.values())
        per_task[boot.kernel] = {
            metric: (median(many.samples[metric]) - median(few.samples[metric])) / 100
            for metric in many.samples
        }
    for metric in ("throttle_ns", "unthrottle_ns"):
        assert abs(per_task["base"][metric]) < 100
        assert per_task[SERIES][metric] > 500
