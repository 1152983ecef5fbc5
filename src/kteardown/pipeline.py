"""The flow of kteardown on one screen: from an experiment to its result, one function a stage.

    experiment -> resolve -> build -> plan -> run directory -> boots -> records -> analysis -> result

``start`` and ``finish`` are ``kteardown run``. A run directory is the only state between them: ``finish``
continues any run, and every report is made from what the directory keeps.
"""

from __future__ import annotations

from functools import partial

from kteardown.errors import GuestError
from kteardown.model.experiment import Experiment
from kteardown.model.result import Result
from kteardown.progress import Reporter
from kteardown.report import forecast_text, interim, saved
from kteardown.run.create import build_first, create_run
from kteardown.run.measure import add_layout_twin, forecast_rest, measure, measure_profile
from kteardown.run.resolve import resolve
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.vm import host


def start(experiment: Experiment, reporter: Reporter, *, ablate: bool, command: str) -> RunDir:
    """Resolve an experiment, build its kernels, and create its run directory.

    Raises InputError, BuildError, LabError.
    """
    resolved = resolve(experiment, ablate=ablate)
    built = build_first(resolved, reporter)
    return create_run(resolved, built, command, reporter)


def finish(run: RunDir, reporter: Reporter, *, jobs: int | None = None) -> Result:
    """Boot all that the plan of ``run`` has left, look by look if it stops when certain, and analyse it.

    Raises InputError, LabError, BuildError, GuestError; what was recorded stays.
    """
    until = load(run).experiment.design.until
    with open_writer(run, host.facts()) as log:
        expected, left = forecast_rest(load(run), log, jobs)
        if left:
            forecast_text.note_measuring(expected, load(run).plan.memory_mb, reporter, at_most=bool(until))
        result = analyse_and_save(run) if until and log.finished() else None
        while True:
            so_far = partial(interim.rows_of, run)
            measure(load(run), log, reporter, expected, jobs=jobs, after=result, interim=so_far)
            result = analyse_and_save(run)
            if result.stopping is not None:
                reporter.note(forecast_text.look_summary(result, load(run).workloads))
            certain = result.stopping is None or result.stopping.done
            if certain and not add_layout_twin(load(run), result, reporter):
                break
    return analyse_and_save(run) if measure_profile(load(run), reporter, jobs=jobs) else result


def analyse_and_save(run: RunDir) -> Result:
    """Analyse a run and write ``result.json`` and ``report.md``. Raises InputError, GuestError."""
    # Imported here: scipy takes longer to import than a cached run takes to its first guest.
    from kteardown.analysis.conclude import conclude

    snapshot = load(run)
    concluded = conclude(snapshot)
    saved.write(run, concluded.result, snapshot)
    for name, stacks in concluded.folded.items():
        run.save(run.profile.path / name, stacks)
    return with_outcome(run, concluded.result)


def result_of(run: RunDir) -> Result:
    """The result of a run as it was saved, or analysed now if boots ended after that; nothing is written.

    Raises InputError, GuestError.
    """
    found = saved.read(run)
    if found is None:
        from kteardown.analysis.conclude import conclude

        found = conclude(load(run)).result
    return with_outcome(run, found)


def with_outcome(run: RunDir, result: Result) -> Result:
    """``result``; GuestError if no guest ran to its end, so that it has nothing to report."""
    if any(result.boots.values()) and not result.comparisons and not result.boots.get("ok"):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in result.boots.items() if count)
        raise GuestError(
            f"no guest of {run.name} ran to its end: {counts}",
            hint=f"`kteardown show {run.name}` lists the boots and their consoles.",
        )
    return result
