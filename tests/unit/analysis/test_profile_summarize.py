"""The summary of the profiled boots of a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kteardown.analysis.conclude import profiles_of
from kteardown.inputs.load import load_experiment
from kteardown.model.record import (
    BootEnd,
    BootStart,
    Check,
    ProfileStretch,
    Record,
    Stack,
    TrialEnd,
    TrialStart,
)
from kteardown.model.stack_profile import Profile
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from unit.run_dirs import fill

Summary = tuple[tuple[Profile, ...], Mapping[str, str], tuple[str, ...]]
PARAMS: dict[str, int | str] = {"zombies": 3000, "make": "shared"}


def summary_of(path: Path, records: list[Record], outcome: str = "ok") -> Summary:
    run = RunDir.create(path, "x")
    (run.profile.path / "console").mkdir(parents=True)
    start = BootStart(
        kernel="git:/src@v1",
        block=0,
        seed=1,
        acceleration="icount",
        host_load=0.0,
        started_at="2026-01-01",
    )
    end = BootEnd.model_validate(
        {
            "outcome": outcome,
            "duration_s": 1.0,
            "first_record_s": 0.5,
            "command": [],
            "host_load": 0.0,
        }
    )
    with open_writer(run.profile) as log:
        for record in (start, *records, end):
            log.append(record, boot=0, attempt=0)
    fill(run, load_experiment("freezer"), [], {}, {"command": "", "machine": {}})
    return profiles_of(load(run), run.profile.boots())


def trial(lost: int = 0, status: str = "ok") -> list[Record]:
    stretch = {"period_ns": 1000, "stretch_ns": 10_000, "cpus": 1, "samples": 10, "lost": lost}
    return [
        TrialStart(trial=0, workload="zombies", params=PARAMS),
        ProfileStretch.model_validate({"trial": 0, "repetition": 1, **stretch}),
        Stack(trial=0, repetition=1, stack="do_exit;free", count=10, ns=10_000),
        TrialEnd.model_validate({"trial": 0, "status": status, "detail": "why"}),
    ]


def test_the_summary_of_a_run_without_a_profile_is_empty(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "x")
    fill(run, load_experiment("freezer"), [], {}, {"command": "", "machine": {}})
    assert profiles_of(load(run), run.profile.boots()) == ((), {}, ())


def test_stacks_go_to_a_file_for_each_kernel_and_point(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, trial())
    assert summary[1] == {"git:_src@v1-zombies-zombies=3000.folded": "do_exit;free 10\n"}
    assert [f.function for f in summary[0][0].functions] == ["free"]
    assert summary[2] == ()


def test_problems_of_profiled_boots_are_noted(tmp_path: Path) -> None:
    (note,) = summary_of(tmp_path / "lost", trial(lost=7))[2]
    assert "7 samples were lost after 10 filled the buffer" in note
    summary = summary_of(tmp_path / "failed", trial(status="failed"), "agent-error")
    assert summary[0] == ()
    assert [note.partition(": ")[2] for note in summary[2]] == [
        "agent-error: ",
        "trial 0 failed: why",
    ]


def test_a_trial_whose_samples_do_not_count_is_not_profiled(tmp_path: Path) -> None:
    *begun, ended = trial()
    check = Check(trial=0, repetition=1, name="tasks_left", ok=False, detail="3 tasks are left")
    void = summary_of(tmp_path / "void", [*begun, check, ended])
    disturbed = summary_of(
        tmp_path / "disturbed", [*begun, ended.model_copy(update={"disturbed": "load"})]
    )
    assert (*void[:2], disturbed[0]) == ((), {}, ())
    assert [note.partition(": ")[2] for note in (*void[2], *disturbed[2])] == [
        "trial 0 void: why",
        "trial 0 disturbed: load",
    ]
