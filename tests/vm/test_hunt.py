"""``kteardown hunt`` on real kernels: a known find, and controls whose cost is known."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kteardown.paths import data_dir
from kteardown_hunt.plan import FEWEST_BOOTS, SCREEN_SIZES
from kteardown_hunt.result import HuntResult
from vm.test_run import PATIENCE_S, kteardown

pytestmark = [pytest.mark.vm, pytest.mark.build]

DATA = Path(__file__).parents[1] / "data"
QUICK = ["--source", "debian:6.12", "--kinds", "zombies_group", "--budget", "600"]


def result_of(file: Path) -> HuntResult:
    return HuntResult.model_validate_json(file.read_bytes())


@pytest.fixture(scope="module")
def hunted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hunt that was interrupted while it confirmed, and finished: its folder, with its output."""
    folder = tmp_path_factory.mktemp("hunt")
    runs = folder / "runs"
    runs.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kteardown", "hunt", *QUICK, "--jobs", "1"],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    records = None
    while records is None or b"boot_end" not in records.read_bytes():
        time.sleep(0.1)
        records = next(runs.glob("*/confirm/records.ndjson"), None)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert (process.returncode, "interrupted; what was measured is kept" in said) == (130, True)
    cut = records.read_bytes()
    unfinished = kteardown("hunt", "--show", "last", runs=runs)
    assert "not finished, " in unfinished.stdout and "--resume" in unfinished.stderr
    done = kteardown("hunt", "--resume", "last", "--json", str(folder / "hunt.json"), runs=runs)
    assert records.read_bytes().startswith(cut[: cut.rfind(b"\n") + 1])
    assert not any(find.locks for find in result_of(folder / "hunt.json").finds)
    assert f"--resume {records.parents[1].name} --locks debian:6.12" in done.stderr
    asked = ("--resume", "last", "--locks", "debian:6.12", "--json", str(folder / "hunt.json"))
    done = kteardown("hunt", *asked, runs=runs)
    (folder / "output").write_text(done.stdout)
    return folder


WAIT = """static void prepare(void)
{
	usleep(100000);
}

"""


def test_a_kind_whose_costs_are_linear_is_no_find(tmp_path: Path) -> None:
    file = tmp_path / "hunt.json"
    (tmp_path / "kinds").mkdir()
    pipes = (data_dir("agent") / "hunt" / "kinds" / "pipes.c").read_text()
    patient = pipes.replace("KIND(pipes,", f"{WAIT}KIND(patient_pipes,").replace(
        ".open", ".prepare = prepare, .open"
    )
    (tmp_path / "kinds" / "patient_pipes.c").write_text(patient)
    # With this budget the screen has four sizes in each way, which a verdict needs.
    asked = (
        "--own",
        str(tmp_path),
        "--kinds",
        "patient_pipes",
        "--budget",
        "150",
        "--json",
        str(file),
    )
    kteardown("hunt", "--source", "debian:6.12", *asked, runs=tmp_path / "runs")
    result = result_of(file)
    assert not result.finds
    verdicts = {case.way: case.growth["sync"].verdict for case in result.cases}
    assert verdicts == dict.fromkeys(("exit", "oldest", "youngest", "random"), "linear"), (
        result.cases
    )
    # What was waited for before is not taken off the making: 72 pipes take less than that.
    assert all(cost for case in result.cases for cost in case.growth["make"].costs), result.cases


@pytest.mark.full
def test_zombies_whose_parent_exits_are_found(hunted: Path) -> None:
    """The parent's exit looks at all members of the group for each of them, with interrupts off."""
    find = next(find for find in result_of(hunted / "hunt.json").finds if find.cost == "sync")
    assert find.growth
    assert find.growth.verdict == "superlinear"
    assert find.function
    assert (find.function.place, find.function.no_interrupts > 0.9) == ("do_exit()", True)
    assert "do_exit()" in (hunted / "output").read_text()


@pytest.mark.full
def test_the_lock_that_is_held_is_named(hunted: Path) -> None:
    """The parent's exit has tasklist_lock for writing from the first zombie to the last."""
    find = next(find for find in result_of(hunted / "hunt.json").finds if find.cost == "sync")
    assert find.locks
    assert (find.locks[0].name, find.locks[0].reading) == ("tasklist_lock", False)
    assert find.locks[0].share > 0.8
    assert "tasklist_lock" in (hunted / "output").read_text()


@pytest.mark.full
def test_a_program_of_one_file_shows_the_find(hunted: Path, tmp_path: Path) -> None:
    shown = kteardown(
        "hunt", "--show", "last", "--reproducers", str(tmp_path), runs=hunted / "runs"
    )
    assert shown.stdout == (hunted / "output").read_text()
    program = tmp_path / "program"
    source = tmp_path / "zombies_group.c"
    built = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    subprocess.run(built, check=True)
    done = subprocess.run([str(program), "20"], check=True, capture_output=True, text=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["20", "40", "80"]


@pytest.mark.full
def test_a_series_that_fixes_the_find_is_measured_too(hunted: Path, tmp_path: Path) -> None:
    runs, file = tmp_path / "runs", tmp_path / "hunt.json"
    shutil.copytree(hunted / "runs", runs, symlinks=True)
    series = "exit-reparent-zombies"
    done = kteardown(
        "hunt", "--resume", "last", "--against", series, "--json", str(file), runs=runs
    )
    find = next(find for find in result_of(file).finds if find.cost == "sync")
    assert find.elsewhere[series].verdict == "linear"
    assert f"--against {series}" in result_of(file).command
    assert "linear" in done.stdout


@pytest.mark.full
def test_the_exit_of_a_parent_is_linear_for_two_groups_that_alternate(tmp_path: Path) -> None:
    file, series = tmp_path / "hunt.json", "exit-reparent-zombies"
    kteardown(
        *("hunt", "--source", "debian:6.12", "--kinds", "zombies_two_groups", "--budget", "200"),
        *("--against", series, "--json", str(file)),
        runs=tmp_path / "runs",
    )
    find = next(find for find in result_of(file).finds if find.cost == "sync")
    assert find.elsewhere[series].verdict == "linear"


@pytest.mark.full
def test_an_ordinary_user_can_have_as_many_descriptors_as_a_session_allows(tmp_path: Path) -> None:
    """The kernel's own limit is 4,096."""
    file = tmp_path / "hunt.json"
    kteardown(
        *("hunt", "--source", "debian:6.12", "--unprivileged", "--kinds", "eventfds,perf_uprobes"),
        *("--json", str(file)),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    assert {case.kind for case in result.cases} == {"eventfds"} and result.kinds == 1
    assert not [failure for case in result.cases for failure in case.failures]
    assert (
        max(size for case in result.cases for size in case.growth["sync"].sizes) == SCREEN_SIZES[-1]
    )


@pytest.mark.full
def test_two_processes_release_at_once_and_a_second_hunt_says_the_same(tmp_path: Path) -> None:
    asked = ("hunt", "--source", "debian:6.12", "--kinds", "pidfds_one", "--owners", "2")
    results = []
    for name in ("first", "second"):
        file = tmp_path / f"{name}.json"
        done = kteardown(*asked, "--json", str(file), runs=tmp_path / name)
        assert "Several processes at once" in done.stdout
        results.append(result_of(file).owners)
    assert results[0] == results[1]
    assert "call" in {result.way for result in results[0]}
    # An exit takes tasklist_lock, and the wake-up of those that poll it the lock of their queue.
    assert all(result.locked_each and result.locked_each >= 1 for result in results[0])


CRASHER = """
#include "hunt/kind.h"

static void release(void)
{
	MUST(put_file("/proc/sysrq-trigger", "c") ? -1 : 0);
}

static void add(int64_t i)
{
	(void)i;
}

KIND(crasher, "own", "write that crashes the kernel", .shape = OF_ONE,
     .privileged = true, .call = "a write",
     .add = add, .release = release);
"""


@pytest.mark.full
def test_a_guest_that_panics_in_a_shared_boot_is_a_find_about_one_kind(tmp_path: Path) -> None:
    """The kinds that shared its boot are measured again, each alone, and have all figures."""
    file = tmp_path / "hunt.json"
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "crasher.c").write_text(CRASHER)
    done = kteardown(
        *("hunt", "--source", "debian-image:6.12", "--own", str(tmp_path), "--budget", "1"),
        *("--kinds", "crasher,epoll,files,inodes", "--json", str(file)),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    assert result.kinds > FEWEST_BOOTS
    (panic,) = [find for find in result.finds if find.failed]
    assert (panic.kind, panic.failed and panic.failed.outcome) == ("crasher", "panic")
    assert "crasher, call" in done.stdout
    others = [case for case in result.cases if case.kind != "crasher"]
    assert len({case.kind for case in others}) == result.kinds - 1
    assert not [case for case in others for failed in case.failed if failed.outcome != "failed"]


@pytest.mark.full
def test_residents_that_cannot_be_made_name_their_limit(tmp_path: Path) -> None:
    file = tmp_path / "hunt.json"
    done = kteardown(
        *("hunt", "--source", "debian-image:6.12", "--kinds", "pipes", "--budget", "5"),
        *("--stay", "shm_segments=40000,files_one_inode", "--json", str(file)),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    failed = [stay for stay in result.stays if stay.verdict == "failed"]
    assert {stay.stay for stay in failed} == {"shm_segments"}
    assert all("shmget" in stay.reason and "shmmni" in stay.reason for stay in failed)
    # The other residents can be made: pipes do not look at them.
    assert not [stay for stay in result.stays if stay.is_find]
    assert "Not measured beside" in done.stdout


HANGER = """
#include "hunt/kind.h"

static void release(void)
{
	for (;;)
		;
}

static void add(int64_t i)
{
	(void)i;
}

KIND(hanger, "own", "endless loop of a real-time task", .shape = OF_ONE,
     .call = "a loop", .add = add,
     .release = release);
"""


@pytest.mark.full
def test_a_guest_that_hangs_is_a_find_about_one_kind(tmp_path: Path) -> None:
    file = tmp_path / "hunt.json"
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "hanger.c").write_text(HANGER)
    kteardown(
        *("hunt", "--source", "debian:6.12", "--own", str(tmp_path), "--budget", "5"),
        *("--kinds", "hanger,pipes", "--json", str(file)),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    (hang,) = [find for find in result.finds if find.failed]
    assert (hang.kind, hang.failed and hang.failed.outcome) == ("hanger", "hang")
    assert not [case for case in result.cases if case.kind == "pipes" and case.failures]


@pytest.mark.full
def test_the_controls_that_grow_are_found_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "hunt.json"
    kteardown(
        *(
            "hunt",
            "--source",
            f"{DATA}/series/hunt-controls on debian:6.12",
            "--own",
            str(DATA / "hunt"),
        ),
        *("--kinds", "controls", "--budget", "300", "--json", str(file)),
        runs=tmp_path / "runs",
    )
    result = result_of(file)
    found = {
        (case.kind, cost)
        for case in result.cases
        for cost, growth in case.growth.items()
        if growth.verdict == "superlinear" and growth.confirmed
    }
    assert found == {
        ("control_sesqui", "sync"),
        ("control_square", "sync"),
        ("control_threshold", "sync"),
        ("control_deferred", "deferred"),
        ("control_making", "make"),
        # Its pages are cleared and freed, too.
        ("control_memory", "held"),
        ("control_memory", "make"),
        ("control_memory", "sync"),
    }, json.dumps([case.growth["sync"].model_dump() for case in result.cases], indent=1)
    places = {
        find.kind: find.function.place
        for find in result.finds
        if find.function and find.kind != "control_memory"
    }
    assert set(places.values()) == {"control_work()"}
    paying = [stay for stay in result.stays if stay.is_find]
    assert {(stay.kind, stay.cost) for stay in paying} == {("control_walks", "sync")}
    assert {stay.function.place for stay in paying if stay.function} == {"control_work()"}
    assert {(wait.kind, wait.part) for wait in result.waits} == {("control_sleeps", "release")}
    assert {broadcast.kind for broadcast in result.broadcasts} == {"control_calls"}
