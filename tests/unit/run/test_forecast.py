"""The forecast of a plan from earlier boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.model.experiment import Experiment, Sweep
from kteardown.model.plan import Plan, PlannedTrial
from kteardown.model.record import BootEnd, BootStart, Record, TrialEnd
from kteardown.model.record_fields import ParamValue
from kteardown.report.forecast_text import measuring
from kteardown.run.forecast import (
    REHEARSAL,
    Forecast,
    SeenBoot,
    forecast,
    forecast_of,
    keep_rehearsal,
    place,
    seen,
    seen_boot,
)
from kteardown.run.make_plan import make_plan
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer

EXECUTIONS = 6


def experiment(
    *zombies: int, seeds: int = 2, repetitions: int = 5, **params: ParamValue
) -> Experiment:
    sweep = Sweep(
        workload="zombies",
        params={"zombies": zombies, **{name: (v,) for name, v in params.items()}},
    )
    freezer = load_experiment("freezer")
    design = freezer.design.model_copy(
        update={"seeds": seeds, "repetitions": repetitions, "warmup": 1}
    )
    return freezer.model_copy(update={"workloads": (sweep,), "variants": (), "design": design})


def planned(wanted: Experiment) -> Plan:
    return make_plan(wanted, load_workloads(wanted), [])


def earlier(points: dict[int, float], **more: object) -> SeenBoot:
    trials = tuple(
        (
            PlannedTrial(
                index=0,
                workload="zombies",
                params={"zombies": zombies, "make": "shared", "until": "freezer"},
                warmup=1,
                repetitions=EXECUTIONS - 1,
            ),
            seconds,
        )
        for zombies, seconds in points.items()
    )
    fields = {
        "run": "r1",
        "acceleration": "icount",
        "memory_mb": 512,
        "overhead_s": 4.0,
        "peak_rss_kb": 100_000,
        "trials": trials,
    }
    return SeenBoot(**{**fields, **more})  # type: ignore[arg-type]


def forecast_from(wanted: Experiment, *boots: SeenBoot, jobs: int = 1) -> Forecast:
    return forecast(planned(wanted), load_workloads(wanted), boots, jobs=jobs)


def test_a_measured_point_is_expected_to_take_the_same_time() -> None:
    found = forecast_from(
        experiment(0, 3000), earlier({0: 1, 3000: 7}), earlier({0: 3, 3000: 9}, run="r2")
    )
    assert found.seconds == pytest.approx(2 * (4 + 2 + 8))
    assert (found.boots, found.runs, found.points, found.carried) == (2, ("r1", "r2"), 2, 0)
    assert found.guest_kb == 100_000


def test_more_jobs_take_less_time() -> None:
    assert forecast_from(experiment(0), earlier({0: 1}), jobs=2).seconds == pytest.approx(4 + 1)
    assert forecast_from(experiment(0), earlier({0: 1}), jobs=8).jobs == 2


def test_other_points_are_interpolated_and_extrapolated() -> None:
    found = forecast_from(experiment(500, 4000, seeds=1), earlier({0: 1, 1000: 2, 2000: 4}))
    assert found.seconds == pytest.approx(4 + 1.5 + 8)
    assert (found.points, found.carried) == (2, 2)


def test_one_point_is_extrapolated_in_proportion_and_never_downward() -> None:
    assert forecast_from(experiment(3000, seeds=1), earlier({1000: 2})).seconds == pytest.approx(
        4 + 6
    )
    assert forecast_from(experiment(500, seeds=1), earlier({1000: 2})).seconds == pytest.approx(
        4 + 2
    )


def test_more_executions_take_longer_and_fewer_take_the_same_time() -> None:
    twice = experiment(0, seeds=1, repetitions=2 * EXECUTIONS - 1)
    assert forecast_from(twice, earlier({0: 3})).seconds == pytest.approx(4 + 6)
    half = experiment(0, seeds=1, repetitions=EXECUTIONS // 2 - 1)
    assert forecast_from(half, earlier({0: 3})).seconds == pytest.approx(4 + 3)


def test_a_point_with_other_parameters_is_used_and_counted_as_carried() -> None:
    found = forecast_from(experiment(0, make="fork", seeds=1), earlier({0: 1}))
    assert (found.seconds, found.carried) == (5, 1)


def test_without_earlier_boots_nothing_is_known() -> None:
    found = forecast_from(experiment(0))
    assert (found.seconds, found.guest_kb, found.unknown) == (None, None, ("zombies",))
    assert found.weight(planned(experiment(0)).boots[0].trials[0]) == 1


def test_only_boots_of_the_last_acceleration_are_used() -> None:
    boots = [earlier({0: 100}, acceleration="kvm"), earlier({0: 1}, acceleration="mttcg")]
    assert forecast_from(experiment(0, seeds=1), *boots).seconds == pytest.approx(5)


def test_the_time_of_a_trial_begins_at_the_end_of_the_one_before() -> None:
    plan = planned(experiment(0, 3000))
    ends: tuple[Record, ...] = tuple(
        TrialEnd(trial=n, status="ok", at_s=at) for n, at in enumerate((5.0, 12.0))
    )
    start = BootStart(
        kernel="base", block=0, seed=1, acceleration="icount", host_load=0, started_at=""
    )
    end = BootEnd(
        outcome="ok", duration_s=13, first_record_s=3, command=[], host_load=0, peak_rss_kb=7
    )
    found = seen_boot("r", BootRecords(0, 0, start, end, ends), plan)
    assert found is not None
    assert [seconds for _, seconds in found.trials] == [2, 7]
    assert found.overhead_s == pytest.approx(4)
    old = (TrialEnd(trial=0, status="ok"),)
    assert seen_boot("r", BootRecords(0, 0, start, end, old), plan) is None


def test_the_places_of_trials_do_not_depend_on_their_order() -> None:
    trials = planned(experiment(0, 3000)).boots[0].trials
    assert place(trials[0]) == place(trials[0].model_copy(update={"index": 5}))
    assert place(trials[0]) != place(trials[1])


def test_runs_of_another_kind_and_damaged_ones_are_ignored(tmp_path: Path) -> None:
    wanted = experiment(0)
    wall = wanted.model_copy(update={"design": wanted.design.model_copy(update={"clock": "wall"})})
    arm = wanted.model_copy(update={"machine": wanted.machine.model_copy(update={"arch": "arm64"})})
    runs = []
    for name, spec in (("wall", wall), ("broken", wanted), ("good", wanted), ("arm", arm)):
        run = RunDir.create(tmp_path, name)
        run.save(run.experiment_file, spec.model_dump_json())
        run.save(run.plan_file, planned(spec).model_dump_json())
        _record(run)
        runs.append(run)
    (runs[1].plan_file).path.write_text("{")
    assert [boot.run for boot in seen(wanted, runs)] == [runs[2].name]


def _record(run: RunDir) -> None:
    start = BootStart(
        kernel="base", block=0, seed=1, acceleration="icount", host_load=0, started_at=""
    )
    end = BootEnd(outcome="ok", duration_s=9, first_record_s=1, command=[], host_load=0)
    run.save(run.environment_file, '{"command": "", "machine": {}}')
    with open_writer(run) as log:
        for record in (start, TrialEnd(trial=0, status="ok", at_s=3), end):
            log.append(record, boot=0, attempt=0)


def test_a_rehearsal_forecasts_a_script_that_no_run_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    wanted = experiment(100, 200, 400, seeds=2, repetitions=1).model_copy(
        update={"folder": str(tmp_path)}
    )
    workloads, plan = load_workloads(wanted), planned(wanted)
    assert forecast_of(wanted, workloads, plan, 1).seconds is None
    keep_rehearsal(earlier({100: 1.0, 200: 2.0}, run=REHEARSAL), tmp_path)
    found = forecast_of(wanted, workloads, plan, 1)
    assert found.seconds == pytest.approx(len(plan.boots) * (4 + 1 + 2 + 4))
    assert (
        "of measuring, from the rehearsal; 3 of 3 points extrapolated" in measuring(found, 512)[0]
    )
    wall = wanted.model_copy(update={"design": wanted.design.model_copy(update={"clock": "wall"})})
    assert forecast_of(wall, workloads, plan, 1).seconds is None
    (tmp_path / "rehearsal.json").write_text("{")
    assert forecast_of(wanted, workloads, plan, 1).seconds is None
