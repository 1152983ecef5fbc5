"""The lock that is held while a cost grows: from the records of a guest to the table and the
report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.model.record import BootEnd, BootStart, Check, Record, Sample, TrialEnd, TrialStart
from kteardown.rundir.counting import BootRecords
from kteardown_hunt import locks
from kteardown_hunt.folder import Request
from kteardown_hunt.plan import Case, Options, plan_of_sizes
from kteardown_hunt.result import Find, GrowthResult, HuntResult, LockResult
from kteardown_hunt.tables import finds_table, report_text, shown_tables

ROOT = Path(__file__).parents[3]
FLOCKS = Case("flocks", "exit")
FLC_LOCK = LockResult(name="&ctx->flc_lock", reading=False, share=0.9, longest_ns=4_000)


def boot(*records: Record) -> BootRecords:
    start = BootStart(
        kernel="kernel",
        block=0,
        seed=1,
        acceleration="icount",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(0, 0, start, end, records)


def begun(trial: int = 0) -> TrialStart:
    params: dict[str, int | str] = {
        "kind": "flocks",
        "way": "exit",
        "user": "root",
        "objects": 1152,
    }
    return TrialStart(trial=trial, workload="hunt", params=params)


def counted(what: str, text: str, repetition: int = 0) -> Check:
    return Check(trial=0, repetition=repetition, name=f"locks_{what}", ok=True, detail=text)


def took(metric: str, value: int) -> Sample:
    return Sample(trial=0, repetition=0, metric=metric, value=value)


def ended(status: str = "ok") -> TrialEnd:
    return TrialEnd.model_validate({"trial": 0, "status": status})


def names(found: tuple[LockResult, ...]) -> list[str]:
    return [lock.name for lock in found]


def test_the_first_lock_is_named_and_others_if_they_are_held_for_most_of_the_time() -> None:
    text = (
        "900 30 writing outer\n800 20 reading inner lock\n510 9 writing third\n505 9 writing fourth"
    )
    few = "300 30 writing &(&x->y)->z\n200 20 writing inner"
    found = locks.held_locks(
        [
            boot(
                begun(),
                counted("release", text),
                counted("making", few),
                took("elapsed_ns", 1000),
                took("make_ns", 1000),
                ended(),
            )
        ]
    )
    assert found[FLOCKS, "sync"] == (
        LockResult(name="outer", reading=False, share=0.9, longest_ns=30),
        LockResult(name="inner lock", reading=True, share=0.8, longest_ns=20),
        LockResult(name="third", reading=False, share=0.51, longest_ns=9),
    )
    assert names(found[FLOCKS, "make"]) == ["&(&x->y)->z"]
    assert (FLOCKS, "deferred") not in found


def test_of_a_warm_up_nothing_counts_and_of_a_trial_that_failed_neither() -> None:
    warm, real = counted("release", "9 9 writing warm"), counted("release", "500 9 writing real", 1)
    times = took("elapsed_ns", 400)
    (found,) = locks.held_locks([boot(begun(), warm, real, times, ended())]).values()
    # Several locks of one class can be held at once.
    assert found == (LockResult(name="real", reading=False, share=1.0, longest_ns=9),)
    assert not locks.held_locks([boot(begun(), real, times, ended("failed"))])
    assert not locks.held_locks([boot(begun(), counted("release", ""), times, ended())])


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("debian:6.12", "kteardown hunt --resume H --locks debian:6.12; building its kernel"),
        (
            "debian-image:6.12",
            "kteardown hunt --resume H --locks debian:6.12; building its kernel",
        ),
        ("image:/boot/vmlinuz", "kteardown hunt --resume H --locks SOURCE"),
    ],
)
def test_a_hunt_says_how_locks_are_named(
    source: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path))
    request = Request(source=source)
    assert named in locks.advice("H", result_of().finds, request)
    memory = [find.model_copy(update={"cost": "held"}) for find in result_of().finds]
    assert locks.advice("H", memory, request) == ""


def test_a_prebuilt_kernel_counts_no_locks() -> None:
    locks.check_locks("")
    with pytest.raises(InputError, match="a prebuilt kernel does not count"):
        locks.check_locks("debian-image:6.12")


def test_the_kernel_has_lock_statistics_and_what_was_asked_for() -> None:
    request = locks.request_of("debian:6.12", ("CONFIG_FILE_LOCKING=y",))
    assert request.fragments == ("CONFIG_FILE_LOCKING=y", "lockstat")
    assert request.name == "debian:6.12 with lock statistics"
    plan = plan_of_sizes({FLOCKS: [1152]}, [request.name], [0], Options(budget_minstr=0))
    (only,) = plan.boots
    assert only.kernel == request.name
    assert [trial.params["objects"] for trial in only.trials] == [1152]


def result_of(*held: LockResult) -> HuntResult:
    growth = GrowthResult(
        verdict="superlinear",
        reason="",
        exponent=2.0,
        sizes=(10, 20),
        costs=(100, 400),
        confirmed=True,
    )
    case = {
        "kind": "flocks",
        "part": "files",
        "object": "open file",
        "shape": "on one",
        "way": "exit",
        "user": "root",
        "growth": {"sync": growth},
        "idle_ns": 0,
        "bystanders": {},
    }
    find = Find(
        kind="flocks",
        way="exit",
        user="root",
        object="open file",
        cost="sync",
        growth=growth,
        locks=held,
    )
    return HuntResult.model_validate(
        {
            "kteardown": "0",
            "command": "kteardown hunt",
            "source": "debian:6.12",
            "release": "6.12.117",
            "against": ("debian:7.3",),
            "measured_s": 1.0,
            "kinds": 1,
            "cases": (case,),
            "finds": (find,),
            "locks": "debian:6.12" if held else "",
        }
    )


def test_the_table_has_a_column_for_the_lock_if_locks_were_counted() -> None:
    inner = FLC_LOCK.model_copy(update={"name": "rcu_read_lock", "reading": True, "share": 0.6})
    table = finds_table(result_of(FLC_LOCK, inner))
    place = table.keys.columns.index("lock held")
    assert (
        table.keys.rows[0][place].text
        == "&ctx->flc_lock 90.0%, 4,000; rcu_read_lock (shared) 60.0%, 4,000"
    )
    assert len(table.keys.rows[0]) == len(table.keys.columns)
    assert table.keys.columns[-1] == "debian:7.3"
    assert any("debian:6.12 with lock statistics" in note for note in table.notes)
    assert "lock held" not in finds_table(result_of()).keys.columns


def test_the_report_names_the_lock() -> None:
    result = result_of(FLC_LOCK)
    assert (
        "\nWhile the objects are released, &ctx->flc_lock is held for 90% of the time, and at once "
        "for up to 4,000 instructions (debian:6.12 with CONFIG_LOCK_STAT).\n"
        in report_text(result.finds[0], result)
    )
    shared = result_of(FLC_LOCK.model_copy(update={"reading": True}))
    assert "&ctx->flc_lock is held shared for 90%" in report_text(shared.finds[0], shared)
    without = result_of()
    assert "is held" not in report_text(without.finds[0], without)


def test_a_result_from_before_locks_were_counted_is_shown_without_them() -> None:
    written = json.loads((ROOT / "findings/results/hunt-6.12-all" / "hunt.json").read_bytes())
    for part in (written, *written["finds"]):
        part.pop("locks", None)
    tables = shown_tables(HuntResult.model_validate(written), everything=True)
    assert not any("lock held" in table.keys.columns for table in tables)


def test_a_request_from_before_locks_were_counted_is_read() -> None:
    assert Request.model_validate_json('{"source": "debian-image:6.12"}').locks == ""
