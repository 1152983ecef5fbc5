"""Which functions and data move lines, summed over boots and divided by the objects."""

from __future__ import annotations

from kteardown.analysis.sharing import sharing_profiles
from kteardown.inputs.load import load_workload
from kteardown.model.point import Point
from kteardown.model.record import BootEnd, BootStart, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import SharedData, Sharing, SharingFunction
from kteardown.rundir.counting import BootRecords

WORKLOADS = {"pipechain": load_workload("pipechain")}
PARAMS: dict[str, ParamValue] = {"processes": 10}


def point(ticks: int) -> Point:
    full = {"cpus": 2, "transfer_ticks": ticks, **PARAMS}
    return Point(workload="pipechain", params=full, shown=full)


def boot(index: int, kernel: str, ticks: int, moves: float, *, status: str = "ok") -> BootRecords:
    params = point(ticks).params
    function = SharingFunction(
        name="do_exit", line="kernel/exit.c:1", moves=moves, shared_reads=0, locked=20
    )
    lock = SharedData(name="tasklist_lock", lines=1, cpus=2, moves=moves, movers=("do_exit",))
    own = SharedData(name="", lines=5, cpus=2, moves=moves / 2, movers=("do_exit",))
    records = (
        TrialStart(boot=index, trial=0, workload="pipechain", params=params),
        Sharing(boot=index, trial=0, repetition=0, functions=(function,), data=(lock, own)),
        TrialEnd(boot=index, trial=0, status=status),  # type: ignore[arg-type]
    )
    start = BootStart(
        kernel=kernel,
        block=0,
        seed=1,
        acceleration="icount",
        host_load=0,
        started_at="",
        machine={"cpus": 2, "transfer_ticks": ticks},
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(index, 0, start, end, records)


def test_the_costs_of_a_moved_line_are_summed_and_the_kernels_are_side_by_side() -> None:
    boots = [
        boot(0, "base", 100, 100),
        boot(1, "base", 200, 300),
        boot(2, "my-change", 100, 50),
        boot(3, "my-change", 200, 50),
    ]
    (profile,) = sharing_profiles(WORKLOADS, boots, [point(100), point(200)])
    assert profile.point == {"cpus": 2, "processes": 10}
    assert profile.object == "process"
    (function,) = profile.functions
    assert (function.name, function.line) == ("do_exit", "kernel/exit.c:1")
    assert function.moves == {"base": 20.0, "my-change": 5.0}
    assert function.locked == {"base": 2.0, "my-change": 2.0}
    lock, own = profile.data
    assert (lock.name, lock.moves["base"], lock.lines["base"]) == ("tasklist_lock", 20.0, 0.1)
    assert (own.name, own.movers, own.moves["my-change"]) == ("", ("do_exit",), 2.5)


def test_trials_that_do_not_count_are_left_out() -> None:
    boots = [boot(0, "base", 100, 100), boot(1, "base", 200, 900, status="void")]
    (profile,) = sharing_profiles(WORKLOADS, boots, [point(100)])
    assert profile.functions[0].moves == {"base": 10.0}


def test_on_another_clock_there_is_none() -> None:
    assert sharing_profiles(WORKLOADS, [], [point(100)]) == ()
