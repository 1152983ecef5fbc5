"""Processes killed in every state: the shipped series loses none of them, wrong ones are caught."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from kteardown.records.schema import BootEnd, BootStart, Check, parse
from kteardown.spec.load import load_workload

pytestmark = [pytest.mark.vm, pytest.mark.build]

ROUNDS = 2
BROKEN = Path(__file__).parents[1] / "data" / "series"
CAUGHT_BY = {
    "exit-gate-broken-lock": {"log_clean"},
    "exit-gate-broken-lost": {"all_gone"},
    "exit-gate-broken-stuck": {"all_gone"},
}
Checks = dict[str, dict[str, list[bool]]]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    """The checks of every kernel. The wall clock: there two CPUs really run at once."""
    folder = tmp_path_factory.mktemp("exit")
    experiment = folder / "exit.toml"
    variants = ["exit-gate", *(str(BROKEN / name) for name in CAUGHT_BY)]
    experiment.write_text(
        'name = "exit"\nquestion = "Is every process gone?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\n"
        f'[[workloads]]\nworkload = "exit_stress"\nparams = {{processes = "100", rounds = "{ROUNDS}"}}\n'
        '[design]\nclock = "wall"\nboots = 1\nwarmup = 0\nrepetitions = 1\n'
    )
    runs = folder / "runs"
    done = subprocess.run(
        [sys.executable, "-m", "kteardown", "run", str(experiment)],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    (kept,) = runs.iterdir()
    assert (kept / "records.ndjson").is_file(), done.stderr
    return read_checks(kept / "records.ndjson")


def read_checks(records: Path) -> Checks:
    """The checks of each kernel, by invariant, in order. A kernel that is not broken must have ended well."""
    kernels: dict[int, str] = {}
    checks: Checks = defaultdict(lambda: defaultdict(list))
    for line in records.read_bytes().splitlines():
        record = parse(line)
        if isinstance(record, BootStart):
            kernels[record.boot] = record.kernel
        elif isinstance(record, Check):
            checks[kernels[record.boot]][record.name].append(record.ok)
        elif isinstance(record, BootEnd) and kernels[record.boot] not in CAUGHT_BY:
            assert record.outcome == "ok", record.detail
    return checks


@pytest.mark.parametrize("kernel", ("base", "exit-gate"))
def test_every_process_goes_and_nothing_waits_for_ever(checks: Checks, kernel: str) -> None:
    once = {"log_clean"}
    expected = {
        name: [True] * (1 if name in once else ROUNDS) for name in load_workload("exit_stress").invariants
    }
    assert checks[kernel] == expected


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_gate_that_is_wrong_is_caught(checks: Checks, kernel: str) -> None:
    failed = {name for name, oks in checks[kernel].items() if not all(oks)}
    assert failed >= CAUGHT_BY[kernel]
