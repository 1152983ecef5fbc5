"""How the time of a run was made, from its records, and what reports say of it."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kteardown.analysis.timing import disturbance_notes, timing_of
from kteardown.model.record import (
    BootEnd,
    BootStart,
    LostTime,
    Placed,
    Settled,
    TrialEnd,
    TrialStart,
)
from kteardown.model.result import Result
from kteardown.model.timing import LostShares, Timing
from kteardown.report import result_file
from kteardown.report.contents import facts, limits, timing_lines
from kteardown.report.formats import cover, markdown
from kteardown.report.formats.html import html_report
from kteardown.report.material import Material
from kteardown.rundir.writer import open_writer
from unit.report import contexts
from unit.rundir.test_environment import HELLO, HOST, boot, changed, make

SETTLED = Settled(clocksource="kvm-clock", resolution_ns=1)


def lost_trial(index: int, run_delay_s: float) -> tuple[TrialStart, TrialEnd]:
    lost = LostTime(elapsed_s=10, run_delay_s=run_delay_s)
    start = TrialStart(trial=index, workload="zombies", params={})
    return start, TrialEnd(trial=index, status="ok", lost=lost)


def test_a_run_without_boots_has_no_timing(tmp_path: Path) -> None:
    empty = make(tmp_path)
    assert timing_of(empty, empty.records()) is None


def test_on_the_instruction_clock_nothing_of_the_host_is_in_it(tmp_path: Path) -> None:
    run = make(tmp_path)
    boot(run, 0, load=3)
    assert timing_of(run, run.records()) == Timing(made=("instruction clock",))


def test_under_kvm_the_host_the_clock_source_the_load_and_the_lost_time_are_in_it(
    tmp_path: Path,
) -> None:
    run = make(tmp_path)
    host = changed(cpu={"turbo": True, "smt": "on", "isolated": "2-3"})
    boot(
        run,
        0,
        HELLO,
        SETTLED,
        *lost_trial(0, 0.1),
        *lost_trial(1, 0.3),
        acceleration="kvm",
        host=host,
    )
    boot(
        run,
        1,
        HELLO,
        SETTLED,
        *lost_trial(0, 2.0),
        acceleration="kvm",
        host=host,
        kernel="mine",
        load=2,
    )
    assert timing_of(run, run.records()) == Timing(
        made=("kvm",),
        processor="A",
        governor="performance",
        turbo=True,
        smt="on",
        isolated="2-3",
        mitigated=1,
        vulnerable=0,
        clocksource=("kvm-clock",),
        load=(0.5, 1.75, 3.0),
        lost=(
            LostShares(kernel="base", trials=2, median=0.02, most=0.03, kept=2),
            LostShares(kernel="mine", trials=1, median=0.2, most=0.2, kept=1),
        ),
    )


@pytest.mark.parametrize(
    ("acceleration", "host", "made"),
    [
        ("kvm", changed(hypervisor="yes"), "nested kvm"),
        ("kvm", changed(), "kvm"),
        ("mttcg", changed(hypervisor="yes"), "mttcg"),
    ],
)
def test_kvm_on_a_guest_is_nested(
    tmp_path: Path, acceleration: str, host: dict[str, Any], made: str
) -> None:
    run = make(tmp_path)
    boot(run, 0, HELLO, acceleration=acceleration, host=host)
    found = timing_of(run, run.records())
    assert found is not None
    assert found.made == (made,)


def test_a_run_that_was_resumed_on_another_host_has_both(tmp_path: Path) -> None:
    run = make(tmp_path)
    boot(run, 0, HELLO, acceleration="kvm")
    boot(run, 1, HELLO, acceleration="kvm", host=changed(hypervisor="yes"))
    boot(run, 2, HELLO, acceleration="mttcg")
    found = timing_of(run, run.records())
    assert found is not None
    assert found.made == ("kvm", "nested kvm", "mttcg")


NESTED = Timing(
    made=("nested kvm",),
    processor="EPYC",
    hypervisor="yes",
    governor="performance",
    turbo=False,
    smt="off",
    mitigated=3,
    vulnerable=1,
    clocksource=("kvm-clock",),
    load=(0.1, 0.5, 2.0),
    lost=(LostShares(kernel="base", trials=6, median=0.001, most=0.04),),
)


def timed(result: Result, timing: Timing) -> Result:
    return result.model_copy(update={"timing": timing})


def test_the_line_says_everything_and_warns(wall_result: Result) -> None:
    line, warning = timing_lines(timed(wall_result, NESTED).timing)
    assert line == (
        "nested KVM on EPYC: the host is itself a guest (unnamed); governor performance; turbo "
        "off; SMT off; isolated CPUs none; 3 mitigations, 1 vulnerability without one; clock "
        "source of the guests kvm-clock; load of the host 0.1 to 2.0, median 0.5, of which a guest "
        "is about 1; 6 trials lost at most 4.0% of their time to other work of the host, median by "
        "kernel 0.1%"
    )
    assert warning.startswith("warning: nested KVM distorts")


def test_every_format_has_the_line() -> None:
    material = contexts.wall()
    made = replace(material, result=timed(material.result, NESTED))
    assert "nested KVM on EPYC" in markdown.report(Material("", made.result, made.workloads, None))
    assert "nested KVM on EPYC" in " ".join(cover.of_run(made).split())
    assert "nested KVM on EPYC" in html_report(made)
    assert result_file.loads(result_file.dumps(made.result)).timing == NESTED
    assert [text for name, text in facts(made.result) if name == "time"] == timing_lines(
        made.result.timing
    )


def test_on_the_instruction_clock_the_limits_stay_as_they_are(freezer_result: Result) -> None:
    exact = timed(freezer_result, Timing(made=("instruction clock",)))
    assert limits(exact) == limits(freezer_result)
    (line,) = timing_lines(exact.timing)
    assert "nothing of the host reaches a figure" in line
    assert timing_lines(freezer_result.timing) == []


def placed_line(result: Result, *placed: Placed) -> str:
    timing = NESTED.model_copy(update={"placed": placed})
    return timing_lines(timed(result, timing).timing)[0]


def test_where_guests_ran_is_said(wall_result: Result) -> None:
    place = Placed(vcpus=(2, 3), siblings=(6, 7), others=(0, 1), node=0, memory="small pages")
    pinned = "; virtual CPUs pinned to CPUs 2, 3 of node 0, "
    free = "and nothing of the guest on CPUs 6, 7 of the same cores; memory of small pages;"
    assert pinned + free in placed_line(wall_result, place)
    one = Placed(vcpus=(1,), others=(0,), node=0, memory="small pages")
    assert "; virtual CPUs pinned to CPU 1 of node 0; memory" in placed_line(wall_result, one)
    assert "; guests are not pinned, " in placed_line(wall_result, Placed(memory="small pages"))


def test_where_guests_ran_is_read_from_the_records(tmp_path: Path) -> None:
    run = make(tmp_path)
    place = Placed(vcpus=(1,), others=(0,), node=0, memory="small pages")
    start = BootStart(
        kernel="base", block=0, seed=1, acceleration="kvm", host_load=0, started_at="2026-03-01"
    )
    end = BootEnd(
        outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0, placed=place
    )
    with open_writer(run, HOST) as log:
        for number in range(2):
            log.append(start, boot=number, attempt=0)
            log.append(end, boot=number, attempt=0)
    found = timing_of(run, run.records())
    assert found is not None
    assert found.placed == (place,)


def shares(kernel: str, disturbed: int, trials: int, void: int = 0) -> LostShares:
    return LostShares(
        kernel=kernel,
        trials=trials,
        median=0.01,
        most=0.5,
        disturbed=disturbed,
        void=void,
        kept=trials - disturbed,
    )


def timing(*lost: LostShares, limit: float | None = 0.05) -> Timing:
    return Timing(made=("kvm",), lost=lost, lost_limit=limit)


def test_few_disturbed_trials_have_no_note() -> None:
    assert disturbance_notes(None) == []
    assert disturbance_notes(timing(shares("base", 1, 40), shares("mine", 2, 40, 1))) == []
    assert disturbance_notes(timing(shares("base", 40, 40, 40), limit=None)) == []


def test_too_many_void_trials_have_a_note_that_says_what_to_do() -> None:
    (note,) = disturbance_notes(timing(shares("base", 30, 60, 10), shares("mine", 30, 60, 10)))
    assert note.startswith("20 of 80 trials are void")
    assert "kteardown doctor" in note


def test_a_kernel_that_is_disturbed_more_often_has_a_note() -> None:
    (note,) = disturbance_notes(
        timing(shares("base", 2, 40), shares("base-twin", 1, 40), shares("mine", 14, 50))
    )
    assert note.startswith("mine: 14 of 50 trials were disturbed, of base 3 of 80 (p = ")


def geometric_mean_of_ratios(limit: float, worlds: int, rng: random.Random) -> float:
    """Return the ratio of a variant that is 20% faster, over blocks in which the host takes time.

    A trial that loses more than ``limit`` is repeated twice; a block counts if both sides are left.
    """
    logs = []
    for _ in range(worlds):
        sides = []
        for true in (1.0, 0.8):
            for _ in range(3):
                lost = rng.betavariate(0.2, 2)
                if lost <= limit:
                    sides.append(true / (1 - lost) * rng.lognormvariate(0, 0.05))
                    break
        if len(sides) == 2:
            logs.append(math.log(sides[1] / sides[0]))
    return math.exp(statistics.fmean(logs))


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.2])
def test_voiding_by_the_same_share_does_not_move_the_ratio(limit: float) -> None:
    assert geometric_mean_of_ratios(limit, 20_000, random.Random(1)) == pytest.approx(
        0.8, rel=0.005
    )
