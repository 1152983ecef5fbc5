"""Wakeups in guests: every metric has samples, and they follow the depth and the quota."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.analysis.dataset import Histogram, merged
from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

WORKLOAD = load_workload("wakeups")
OWN = set(WORKLOAD.metrics) - {"throttled_count"}
SMALL = (
    "params.cache_kb = [16]\nparams.operations = [1]\nparams.runtime_ms = "
    "[200]\nparams.interval_ms = [20]\n"
)


def run(folder: Path, params: str) -> list[lab.Trial]:
    (boot,) = lab.run(
        folder,
        'name = "wakeups"\n'
        'question = "Does it work?"\n'
        'source = "debian:6.12"\n'
        "[[workloads]]\n"
        'workload = "wakeups"\n'
        f"{SMALL}{params}[design]\n"
        'clock = "instructions"\n'
        "seeds = 1\n"
        "warmup = 0\n"
        "repetitions = 1\n"
        "[machine]\n"
        "cpus = 2\n",
    )
    return boot.trials


def good(trial: lab.Trial) -> lab.Trial:
    assert trial.status == "ok", (trial.params, trial.detail)
    assert trial.checks == {name: [True] for name in WORKLOAD.invariants}
    return trial


@pytest.fixture(scope="module")
def without_quota(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Trial]:
    trials = run(
        tmp_path_factory.mktemp("depths"), "params.depth = [0, 10]\nparams.threads = [1, 3]\n"
    )
    return [good(trial) for trial in trials]


def test_every_metric_has_a_sample_and_percentiles_rise(without_quota: list[lab.Trial]) -> None:
    assert len(without_quota) == 4
    for trial in without_quota:
        assert set(trial.samples) == OWN
        for what in ("wakeup", "request"):
            rising = [trial.samples[f"{what}_{p}_ns"][0] for p in ("p50", "p90", "p99", "p999")]
            assert rising == sorted(rising)
        rates = [trial.samples[f"rps_{p}_per_s"][0] for p in ("p20", "p50", "p90")]
        assert rates == sorted(rates)


def test_percentiles_are_those_of_the_histograms(without_quota: list[lab.Trial]) -> None:
    for trial in without_quota:
        assert set(trial.histograms) == set(WORKLOAD.histograms)
        for name, lines in trial.histograms.items():
            histogram = merged(Histogram(line.bits, dict(line.buckets)) for line in lines)
            what = name.removesuffix("_ns")
            for percent, called in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p999")):
                assert [histogram.percentile(percent)] == trial.samples[f"{what}_{called}_ns"]


def test_a_wakeup_costs_more_the_deeper_it_is(without_quota: list[lab.Trial]) -> None:
    cost = {
        trial.params["depth"]: trial.samples["wakeup_p50_ns"][0]
        for trial in without_quota
        if trial.params["threads"] == 1
    }
    # Measured: 5,000 and 17,400 instructions.
    assert cost[10] > 1.5 * cost[0]


def test_a_quota_throttles_in_a_cgroup_and_is_refused_for_the_root(tmp_path: Path) -> None:
    root, nested = run(
        tmp_path,
        "params.depth = [0, 10]\nparams.threads = [4]\nparams.message_threads = [2]\n"
        "params.quota_us = [20000]\nparams.memory_max_mb = [64]\n",
    )
    assert root.status == "failed"
    assert "set quota_us and memory_max_mb to 0" in root.detail
    assert set(good(nested).samples) == {*OWN, "throttled_count"}
    # 20 ms of every 100 ms, on two CPUs that are both busy.
    assert nested.samples["throttled_count"][0] >= 1
