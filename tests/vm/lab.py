"""Shared by tests that run the lab: run an experiment that is given as text, and read its
records."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from kteardown.inputs.load import load_workload
from kteardown.model.record import (
    BootEnd,
    BootStart,
    Buckets,
    Check,
    Sample,
    TrialEnd,
    TrialStart,
    parse,
)
from kteardown.model.record_fields import ParamValue
from kteardown.paths import data_dir

BROKEN = Path(__file__).parents[1] / "data" / "series"
"""Deliberately wrong series. A test that does not catch them is too weak."""

WALL = 'clock = "wall"\nboots = 1'
"""A design: one boot of each kernel, on the wall clock. Two CPUs really run at once."""
INSTRUCTIONS = 'clock = "instructions"\nseeds = 1'
"""A design: one boot of each kernel, on the instruction clock. The load of the host changes
nothing."""

TWO_BOOTS = f"""\
name = "machine"
question = "Does a machine answer?"
source = "debian:6.12"
[[workloads]]
workload = "zombies"
params.zombies = [0, 300]
[design]
{WALL}
warmup = 0
repetitions = 1
"""
"""An experiment for a machine: a boot of base and a boot of its twin."""

NO_IRQ_ROUTING = 'kernel_args = ["acpi=noirq"]'
"""A machine for kernels with KASAN: on a busy host the lookup of interrupts in ACPI takes more than
30 s, and the kernel gives up."""

KASAN = ("kasan", "debug", "CONFIG_USERFAULTFD=y", "CONFIG_FILE_LOCKING=y")
"""The configuration of one kernel with KASAN and lockdep that runs every stress test."""

TIMED = {"crowd", "polled", "reads", "long_call", "exits", "hashed", "idle", "execs"}
"""Invariants of ``throttle_stress`` that are limits of time. On the wall clock a task misses them
if the host takes its CPU away.
"""

Checks = dict[str, dict[str, list[bool]]]
"""By kernel and invariant: for each check in order, whether the invariant held."""


@dataclass
class Trial:
    """The records of one trial. ``status`` is empty if it did not end."""

    workload: str
    params: dict[str, ParamValue]
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    checks: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    histograms: dict[str, list[Buckets]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)
    """The agent's message for each check that failed."""
    status: str = ""
    detail: str = ""


@dataclass
class Boot:
    """One boot. ``outcome`` is empty if it did not end."""

    kernel: str
    outcome: str = ""
    detail: str = ""
    problems: list[str] = field(default_factory=list)
    """The first line of each problem that the kernel reported."""
    trials: list[Trial] = field(default_factory=list)


def on_top(folder: Path, series: str | Path, broken: str) -> str:
    """The path of a new series: ``series``, shipped or a folder, and then the wrong patch of
    ``broken``."""
    made = folder / broken
    made.mkdir()
    for origin in (data_dir("series") / series, BROKEN / broken):
        for patch in origin.glob("*.patch"):
            shutil.copy(patch, made)
    return str(made)


def with_series(series: str, source: str) -> str:
    """``source`` with a shipped series, as a source. What adds patches to it is built from its
    objects."""
    return f"patched:{data_dir('series') / series}@{source}"


def in_two_steps(folder: Path, series: str, first: int, source: str) -> tuple[str, str]:
    """``source`` with the ``first`` patches of a shipped series, as a source, and the path of a new
    series with the others.

    If only the first patches change a header, what adds the others is built in a minute.
    """
    patches = sorted((data_dir("series") / series).glob("*.patch"))
    for name, chosen in (("first", patches[:first]), ("rest", patches[first:])):
        (folder / name).mkdir()
        for patch in chosen:
            shutil.copy(patch, folder / name)
    return f"patched:{folder / 'first'}@{source}", str(folder / "rest")


def stress_wrong(folder: Path, workload: str, series: str, wrong: Collection[str]) -> list[Boot]:
    """Stress a series, which is base here, and wrong versions of it, each of which changes one
    file."""
    source = with_series(series, "debian:6.12")
    return stress(folder, workload, source, [str(BROKEN / name) for name in wrong])


def stress_elsewhere(folder: Path, workload: str, series: str, source: str) -> list[Boot]:
    """Stress a series on another kernel than 6.12, beside its base."""
    # On the instruction clock a guest of 6.1 can hang while it starts its second CPU, with QEMU
    # 7.2.
    design = WALL if source == "debian:6.1" else INSTRUCTIONS
    return stress(folder, workload, source, [series], design)


def run(folder: Path, experiment: str, *, guests_fail: bool = False) -> list[Boot]:
    """Run an experiment, given as the text of its file, and return its boots in order.

    The run directory is in ``folder``. Every boot must end with the outcome ``ok``, unless
    ``guests_fail`` is set.
    """
    folder.mkdir(exist_ok=True)
    file = folder / "experiment.toml"
    file.write_text(experiment)
    runs = folder / "runs"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", "run", str(file)],
        cwd=folder,  # Its workloads are found, too.
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    # 6: a wrong series is broken, and the tests say by which invariant.
    assert guests_fail or done.returncode in (0, 6), done.stderr
    assert runs.is_dir(), done.stderr
    (kept,) = runs.iterdir()
    assert (kept / "records.ndjson").is_file(), done.stderr
    boots = read(kept / "records.ndjson")
    assert guests_fail or all(boot.outcome == "ok" for boot in boots), done.stderr
    return boots


def stress(
    folder: Path,
    workload: str,
    source: str,
    variants: list[str],
    design: str = INSTRUCTIONS,
    config: Collection[str] = (),
    params: str = "",
    machine: str = "",
) -> list[Boot]:
    """One boot of each kernel with a workload that only checks. A kernel that is wrong may end in
    any way.

    ``params`` and ``machine`` are TOML, such as ``version = [1]``.
    """
    return run(
        folder,
        f'name = "stress"\nquestion = "Do its invariants hold?"\nsource = "{source}"\n'
        f"variants = {variants!r}\nconfig = {list(config)!r}\n"
        f'[[workloads]]\nworkload = "{workload}"\nparams = {{{params}}}\n'
        f"[machine]\n{machine}\n[design]\n{design}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


def assert_right(boots: list[Boot], kernel: str, workload: str) -> None:
    """The boot of ``kernel`` ended, it reported nothing, and every invariant was checked and
    held."""
    (boot,) = (boot for boot in boots if boot.kernel == kernel)
    assert boot.outcome == "ok", boot.detail
    assert not boot.problems
    (trial,) = boot.trials
    assert not trial.wrong
    assert set(trial.checks) == set(load_workload(workload).invariants)


def read(records: Path) -> list[Boot]:
    """The boots in a file of records."""
    boots: dict[int, Boot] = {}
    trials: dict[tuple[int, int], Trial] = {}
    for line in records.read_bytes().splitlines():
        record = parse(line)
        if isinstance(record, BootStart):
            boots[record.boot] = Boot(record.kernel)
        elif isinstance(record, BootEnd):
            boot = boots[record.boot]
            boot.outcome, boot.detail = record.outcome, record.detail
            boot.problems = [problem.line for problem in record.problems]
        elif isinstance(record, TrialStart):
            trial = Trial(record.workload, dict(record.params))
            trials[record.boot, record.trial] = trial
            boots[record.boot].trials.append(trial)
        elif isinstance(record, Sample):
            trials[record.boot, record.trial].samples[record.metric].append(record.value)
        elif isinstance(record, Buckets):
            trials[record.boot, record.trial].histograms[record.metric].append(record)
        elif isinstance(record, Check):
            trial = trials[record.boot, record.trial]
            trial.checks[record.name].append(record.ok)
            trial.wrong += [] if record.ok else [f"{record.name}: {record.detail}"]
        elif isinstance(record, TrialEnd):
            trial = trials[record.boot, record.trial]
            trial.status, trial.detail = record.status, record.detail
    return [boots[index] for index in sorted(boots)]


def checks(boots: list[Boot]) -> Checks:
    """The checks of all trials of each kernel."""
    found: Checks = defaultdict(lambda: defaultdict(list))
    for boot in boots:
        for trial in boot.trials:
            for name, oks in trial.checks.items():
                found[boot.kernel][name] += oks
    return found


def failed(found: Checks, kernel: str) -> set[str]:
    """The invariants that failed at least once on ``kernel``."""
    return {name for name, oks in found[kernel].items() if not all(oks)}


def wrong(boots: list[Boot], kernel: str) -> list[str]:
    """The agent's messages for all checks that failed on ``kernel``."""
    return [
        line
        for boot in boots
        if boot.kernel == kernel
        for trial in boot.trials
        for line in trial.wrong
    ]
