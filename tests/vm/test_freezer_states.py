"""The freezer with tasks in every state: the shipped series keep what must hold, wrong ones are caught."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from kteardown.records.schema import BootEnd, BootStart, Check, TrialEnd, parse
from kteardown.spec.load import load_workload

pytestmark = [pytest.mark.vm, pytest.mark.build]

REPETITIONS = 2
SHIPPED = ("freezer-skip-exited", "freezer-skip-exited@1", "freezer-skip-nofreeze")
BROKEN = Path(__file__).parents[1] / "data" / "series"
CAUGHT_BY = {
    "freezer-broken-leader": {"all_frozen"},
    "freezer-broken-sleeping": {"all_frozen"},
    "freezer-broken-stopped": {"states_kept", "released"},
    "freezer-broken-thaw": {"all_resumed"},
}
Checks = dict[str, dict[str, list[bool]]]


def run(folder: Path, source: str, variants: tuple[str, ...]) -> Checks:
    """The verdicts of every invariant, by kernel. The wall clock: there two CPUs really run at once.

    The fragment cgroup is not needed; with it the kernels are those of the freezer experiment.
    """
    experiment = folder / "states.toml"
    experiment.write_text(
        f'name = "states"\nquestion = "Is every task frozen, and none lost?"\nsource = "{source}"\n'
        f'variants = {list(variants)!r}\nconfig = ["cgroup"]\n'
        '[[workloads]]\nworkload = "freezer_states"\n'
        f'[design]\nclock = "wall"\nboots = 1\nwarmup = 0\nrepetitions = {REPETITIONS}\n'
    )
    runs = folder / "runs"
    done = subprocess.run(
        [sys.executable, "-m", "kteardown", "run", str(experiment)],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (kept,) = runs.iterdir()
    return read_checks(kept / "records.ndjson")


def read_checks(records: Path) -> Checks:
    """The checks of each kernel, by invariant, in order. Every boot must have ended well."""
    kernels: dict[int, str] = {}
    checks: Checks = defaultdict(lambda: defaultdict(list))
    for line in records.read_bytes().splitlines():
        record = parse(line)
        if isinstance(record, BootStart):
            kernels[record.boot] = record.kernel
        elif isinstance(record, Check):
            checks[kernels[record.boot]][record.name].append(record.ok)
        elif isinstance(record, BootEnd):
            assert record.outcome == "ok", record.detail
        elif isinstance(record, TrialEnd):
            assert record.status != "failed", record.detail
    return checks


@pytest.fixture(scope="module")
def on_6_12(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    variants = (*SHIPPED, *(str(BROKEN / name) for name in CAUGHT_BY))
    return run(tmp_path_factory.mktemp("states"), "debian:6.12", variants)


@pytest.fixture(scope="module")
def on_7_2(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    return run(tmp_path_factory.mktemp("states"), "debian:7.2", SHIPPED)


@pytest.mark.parametrize("kernel", ("base", *SHIPPED))
def test_6_12_freezes_everything_and_loses_nothing(on_6_12: Checks, kernel: str) -> None:
    assert on_6_12[kernel] == all_well()


@pytest.mark.parametrize("kernel", ("base", *SHIPPED))
def test_7_2_freezes_everything_and_loses_nothing(on_7_2: Checks, kernel: str) -> None:
    assert on_7_2[kernel] == all_well()


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_freezer_that_is_wrong_is_caught(on_6_12: Checks, kernel: str) -> None:
    failed = {name for name, oks in on_6_12[kernel].items() if not all(oks)}
    assert failed >= CAUGHT_BY[kernel]


def all_well() -> dict[str, list[bool]]:
    """Every invariant that the workload declares, held in every repetition: none may be left out."""
    return {name: [True] * REPETITIONS for name in load_workload("freezer_states").invariants}
