"""Freeing of swapped memory: every backend, every way to free it, parameters that are refused, and
6.12."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

MB = 2
PAGES = MB * 256
LOCKS = {name for name in load_workload("swapfree").metrics if "_lock_" in name}


def run(folder: Path, params: str, *, source: str = "debian:7.2", cpus: int = 2) -> list[lab.Trial]:
    """The trials of one boot of base on the instruction clock."""
    (boot,) = lab.run(
        folder,
        f'name = "swapfree"\nquestion = "Does it work?"\nsource = "{source}"\n'
        f'[[workloads]]\nworkload = "swapfree"\n{params}\n'
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n'
        f"[machine]\nmemory_mb = 256\ncpus = {cpus}\n",
    )
    return boot.trials


def all_well(trials: list[lab.Trial], processes: int) -> None:
    """Every invariant held, and every process and every page was counted."""
    workload = load_workload("swapfree")
    for trial in trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in workload.invariants}, trial.params
        other_ends = set() if trial.params["end"] == "mrelease" else {"mrelease_ns"}
        assert set(trial.samples) == set(workload.metrics) - LOCKS - other_ends
        assert len(trial.samples["munmap_ns"]) == processes
        assert trial.samples["swapped_pages_count"] == [processes * PAGES]
        assert trial.samples["last_ns"] <= trial.samples["settled_ns"]


@pytest.mark.full
def test_swap_to_zram_is_freed_by_munmap_and_by_exit_with_and_without_a_compactor(
    tmp_path: Path,
) -> None:
    trials = run(
        tmp_path,
        f"params.processes = [2]\nparams.mb = [{MB}]\n"
        'params.end = ["munmap", "exit"]\nparams.compactor = ["off", "on"]',
    )
    assert len(trials) == 4
    all_well(trials, 2)
    for trial in trials:
        assert trial.params["compactor"] == "on" or trial.samples["compactions_count"] == [0]
    beside = [
        trial.samples["compactions_count"][0]
        for trial in trials
        if trial.params["compactor"] == "on"
    ]
    assert max(beside) > 0


@pytest.mark.full
def test_zswap_holds_all_pages_and_its_device_none(tmp_path: Path) -> None:
    trials = run(
        tmp_path,
        'params.backend = ["zswap"]\n'
        f"params.mb = [{MB}]\n"
        'params.compressor = ["lzo-rle", "lz4"]\n'
        'params.end = ["munmap", "exit"]\n'
        'params.compactor = ["on"]',
    )
    assert len(trials) == 4
    all_well(trials, 1)


@pytest.mark.full
def test_the_device_itself_is_discarded_and_rewritten(tmp_path: Path) -> None:
    trials = run(
        tmp_path,
        f'params.processes = [2]\nparams.backend = ["direct"]\nparams.mb = [{MB}]\n'
        'params.end = ["munmap", "rewrite"]',
    )
    assert len(trials) == 2
    all_well(trials, 2)


@pytest.mark.full
def test_every_compressor_of_zram_stores_one_size_in_less_memory_than_many(tmp_path: Path) -> None:
    compressors = ["lzo-rle", "lzo", "lz4", "zstd"]
    trials = run(
        tmp_path,
        f'params.mb = [{MB}]\nparams.compressor = {compressors}\nparams.sizes = ["many", "one"]',
    )
    assert len(trials) == 2 * len(compressors)
    all_well(trials, 1)
    pool_kb = {(t.params["compressor"], t.params["sizes"]): t.samples["pool_kb"][0] for t in trials}
    assert all(pool_kb[name, "one"] < pool_kb[name, "many"] < MB * 1024 for name in compressors)


@pytest.mark.full
def test_the_instruction_clock_gives_the_same_figures_every_time(tmp_path: Path) -> None:
    params = f'params.processes = [1, 3]\nparams.mb = [{MB}]\nparams.compactor = ["off", "on"]'
    # With several CPUs the order in which they run is nearly always the same, which is not enough
    # for a test.
    one, two = (run(tmp_path / name, params, cpus=1) for name in ("one", "two"))
    assert [trial.samples for trial in one] == [trial.samples for trial in two]


def test_6_12_caches_freed_slots_and_frees_them_at_swapoff(tmp_path: Path) -> None:
    trials = run(
        tmp_path,
        f'params.processes = [2]\nparams.mb = [{MB}]\nparams.backend = ["zram", "zswap"]\n'
        'params.end = ["munmap", "mrelease"]',
        source="debian:6.12",
    )
    assert len(trials) == 4
    all_well(trials, 2)
    calls = [len(trial.samples.get("mrelease_ns", ())) for trial in trials]
    assert sorted(calls) == [0, 0, 2, 2]


@pytest.mark.full
@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ('params.backend = ["direct"]\nparams.end = ["exit"]', "outlives its writer"),
        ('params.end = ["rewrite"]', "end=rewrite needs backend=direct"),
        ('params.backend = ["zswap"]\nparams.compressor = ["zstd"]', "the compressor of zswap"),
        ("params.processes = [4]\nparams.mb = [256]", "4 processes with 256 MB each need about"),
    ],
)
def test_impossible_parameters_are_refused(tmp_path: Path, params: str, reason: str) -> None:
    (trial,) = run(tmp_path, params)
    assert trial.status == "failed"
    assert reason in trial.detail
    assert not trial.samples
