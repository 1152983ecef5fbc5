"""The lab from end to end, as a user runs it: the command line, real kernels, real boots."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from outputs import result_in, run_in

pytestmark = [pytest.mark.vm, pytest.mark.build]

SMALL = [
    "run",
    "freezer",
    "--variant",
    "freezer-skip-exited",
    "--clock",
    "instructions",
    "--seeds",
    "2",
]
POINTS = ["--repetitions", "1", "--set", "zombies=0,300,600"]
PATIENCE_S = 300
"""For what takes seconds on an idle host."""


def kteardown(
    *arguments: str, runs: Path, expect: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line. Kernels come from the user's own cache."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", *arguments],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done


def result_of(file: Path) -> dict[str, Any]:
    return result_in(file.read_bytes())


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in ("comparisons", "laws", "boots")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, in ``runs``, and its result, ``result.json``. Tests do not
    change it."""
    folder = tmp_path_factory.mktemp("whole")
    file = folder / "result.json"
    done = kteardown(*SMALL, *POINTS, "--json", str(file), runs=folder / "runs")
    assert "freezer-skip-exited" in done.stdout
    return folder


def test_a_run_shows_what_the_series_saves(whole: Path) -> None:
    result = result_of(whole / "result.json")
    assert result["boots"]["ok"] == 4
    assert result["schema"] == 1
    big = {"zombies": 600}
    (row,) = [
        row
        for row in result["comparisons"]
        if row["metric"] == "freeze_user_ns" and row["point"].items() >= big.items()
    ]
    assert row["ratio"] < 1


@pytest.mark.full
def test_the_wall_clock_has_its_control(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    kteardown(
        "run",
        "freezer",
        "--clock",
        "wall",
        "--boots",
        "2",
        "--repetitions",
        "2",
        "--workload",
        "zombies",
        "--variant",
        "freezer-skip-exited",
        "--set",
        "zombies=300",
        "--layout-twin",
        "--json",
        str(file),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    assert result["boots"]["ok"] == 8
    rows = [row for row in result["comparisons"] if row["metric"] == "freeze_user_ns"]
    assert rows
    assert all(row["null_ci"] and row["layout_ci"] for row in rows)
    (run,) = (tmp_path / "runs").iterdir()
    kernels = json.loads((run / "kernels.json").read_text())
    _check_layout(*(Path(kernels[name]["image"]).parent for name in ("base", "base-layout")))


@pytest.mark.full
def test_both_clocks_are_measured_with_the_same_kernels(tmp_path: Path) -> None:
    runs, file = tmp_path / "runs", tmp_path / "both.json"
    done = kteardown(
        "run",
        "freezer",
        "--clock",
        "both",
        "--seeds",
        "2",
        "--boots",
        "2",
        "--repetitions",
        "2",
        "--workload",
        "zombies",
        "--variant",
        "freezer-skip-exited",
        "--set",
        "zombies=0,300",
        "--json",
        str(file),
        runs=runs,
    )
    assert "\nfreezer on both clocks" in done.stdout
    both = run_in(file.read_bytes())
    exact, wall = both["results"]["instructions"], both["results"]["wall"]
    # On the wall clock base has its A/A twin, and perhaps a layout twin.
    assert exact["boots"]["ok"] == 4
    assert wall["boots"]["ok"] >= 6
    assert exact["kernels"].keys() <= wall["kernels"].keys()
    assert both["both_clocks"]["notes"] == []
    (row,) = [
        row
        for row in both["both_clocks"]["readings"]
        if row["metric"] == "freeze_user_ns" and row["point"]["zombies"] == 300
    ]
    assert row["instructions"]["verdict"] == "better"
    assert row["wall"]["mde"] > 0
    (folder,) = runs.iterdir()
    assert {path.name for path in folder.iterdir()} == {"clocks.json", "instructions", "wall"}
    before = (folder / "wall" / "records.ndjson").read_bytes()
    again = tmp_path / "again.json"
    kteardown("run", "--resume", "last", "--json", str(again), runs=runs)
    assert (folder / "wall" / "records.ndjson").read_bytes() == before
    assert run_in(again.read_bytes()) == both
    for form in ("cover", "markdown", "comment", "junit"):
        assert "freeze_user_ns" in kteardown("report", "last", "--format", form, runs=runs).stdout


def _check_layout(base: Path, twin: Path) -> None:
    """The function is in the twin and is never called, and the functions that the series changes
    moved.

    The distance is not a multiple of a cache line.
    """
    before, after = symbols(base), symbols(twin)
    (function,) = after.keys() - before.keys()
    assert function == "kteardown_layout_kernel_power_process"
    for moved in ("try_to_freeze_tasks", "thaw_processes"):
        assert (after[moved] - before[moved]) % 64 != 0
    listing = ["objdump", "-d", "--no-show-raw-insn", str(twin / "vmlinux")]
    text = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    assert [line.split()[1] for line in text.splitlines() if function in line] == [f"<{function}>:"]


def symbols(kernel: Path) -> dict[str, int]:
    """Addresses of functions."""
    lines = [line.split() for line in (kernel / "System.map").read_text().splitlines()]
    return {name: int(address, 16) for address, kind, name in lines if kind in "tT"}


@pytest.mark.full
def test_an_ablation_reports_the_effect_of_each_patch(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    kteardown(
        "run",
        "freezer",
        "--seeds",
        "2",
        "--repetitions",
        "1",
        "--workload",
        "zombies",
        "--variant",
        "freezer-skip-exited",
        "--set",
        "zombies=300",
        "--ablate",
        "--json",
        str(file),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    assert result["boots"]["ok"] == 8
    names = ["base", "freezer-skip-exited", "freezer-skip-exited@1", "freezer-skip-exited@-1"]
    assert list(result["kernels"]) == names
    assert result["kernels"]["base"]["patch_set"] is None
    assert result["kernels"]["freezer-skip-exited@-1"]["patch_set"]["patches"] == [2]
    (of_user,) = [row for row in result["ablations"] if row["metric"] == "freeze_user_ns"]
    first, second = of_user["patches"]
    # The second patch changes thawing: it has no effect on the time of the freeze.
    assert first["step"]["share"] == pytest.approx(1, abs=1e-3)
    assert first["step"]["share"] + second["step"]["share"] == pytest.approx(1)
    # Without it, the second alone. A timer that fires at another time costs an instruction or two.
    assert first["leave_out"]["share"] == pytest.approx(1, abs=1e-3)


def test_a_comment_is_not_in_the_kernel_and_never_called_the_same(tmp_path: Path) -> None:
    series = Path(__file__).parents[1] / "data" / "series" / "freezer-comment"
    file = tmp_path / "r.json"
    done = kteardown(
        "compare",
        "zombies",
        "--source",
        "debian:6.12",
        "--series",
        str(series),
        "--seeds",
        "2",
        "--repetitions",
        "1",
        "--set",
        "zombies=30",
        "--json",
        str(file),
        runs=tmp_path / "runs",
        expect=7,
    )
    assert "the kernel that was built has none of its changes" in done.stdout.splitlines()[0]
    result = result_of(file)
    assert result["kernels"]["freezer-comment"]["unchanged"]
    assert result["comparisons"] == []


@pytest.mark.full
def test_an_arm64_kernel_is_built_and_measured(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    kteardown(
        "run",
        "freezer",
        "--arch",
        "arm64",
        "--seeds",
        "1",
        "--repetitions",
        "1",
        "--set",
        "zombies=0,300",
        "--variant",
        "freezer-skip-exited",
        "--json",
        str(file),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    assert result["boots"]["ok"] == 2
    assert result["kernels"]["base"]["arch"] == "arm64"


def test_an_interrupted_run_leaves_no_process_and_its_resume_measures_the_same_numbers_again(
    whole: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "kteardown", *SMALL, *POINTS, "--jobs", "1"],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for_boots(runs, 2)
    children = psutil.Process(started.pid).children(recursive=True)
    started.send_signal(signal.SIGINT)
    assert started.wait(timeout=PATIENCE_S) == 130
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive
    resumed = tmp_path / "resumed.json"
    kteardown("run", "--resume", "last", "--json", str(resumed), runs=runs)
    assert numbers(result_of(resumed)) == numbers(result_of(whole / "result.json"))


def test_a_run_directory_cut_in_the_middle_of_a_line_is_finished(
    whole: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(whole / "runs", runs)
    (run,) = runs.iterdir()
    records = run / "records.ndjson"
    text = records.read_bytes()
    records.write_bytes(text[: len(text) * 2 // 3])
    again = tmp_path / "again.json"
    kteardown("run", "--resume", run.name, "--json", str(again), runs=runs)
    assert numbers(result_of(again)) == numbers(result_of(whole / "result.json"))


def test_a_kernel_that_panics_is_a_result(tmp_path: Path) -> None:
    broken = tmp_path / "panic.toml"
    broken.write_text(
        'name = "panic"\nquestion = "What if it panics?"\nsource = "debian:6.12"\n'
        '[[workloads]]\nworkload = "zombies"\nparams.zombies = [10]\n'
        '[design]\nseeds = 1\nrepetitions = 1\n[machine]\nkernel_args = ["rdinit=/nowhere"]\n'
    )
    done = kteardown("run", str(broken), runs=tmp_path / "runs", expect=4)
    assert "panic" in done.stderr
    assert "kteardown show" in done.stderr


def test_a_patch_that_slows_the_freezer_is_worse_and_fails_the_gate(tmp_path: Path) -> None:
    series = Path(__file__).parents[1] / "data" / "series" / "freezer-slower"
    file = tmp_path / "r.json"
    done = kteardown(
        "compare",
        "zombies",
        "--source",
        "debian:6.12",
        "--series",
        str(series),
        "--seeds",
        "2",
        "--repetitions",
        "1",
        "--set",
        "zombies=300",
        "--json",
        str(file),
        "--fail-on",
        "worse",
        runs=tmp_path / "runs",
        expect=1,
    )
    assert "worse" in done.stderr
    verdicts = {row["metric"]: row["verdict"] for row in result_of(file)["comparisons"]}
    assert verdicts["freeze_user_ns"] == "worse"


def _wait_for_boots(runs: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for run in runs.iterdir():
            records = run / "records.ndjson"
            started = records.read_text().count('"boot_start"') if records.exists() else 0
            if started >= count:
                return
        time.sleep(0.1)
    raise AssertionError(f"the run did not start {count} boots in {PATIENCE_S} s")
