"""The stages of kteardown, from an experiment to its result, with one function for each stage.

    experiment -> resolve -> build -> plan -> run directory -> boots -> records -> analysis ->
    result

``kteardown run`` calls ``start``, and ``finish`` for each clock. A run directory is the only state
between them: ``finish`` continues any run, and every report is made only from the run directory.
"""

from collections.abc import Sequence
from functools import partial

from kteardown.model.experiment import Experiment
from kteardown.model.result import Result
from kteardown.paths import runs_dir
from kteardown.progress import Reporter
from kteardown.report import forecast_text, saved
from kteardown.report.material import Material
from kteardown.run.create import build_first, create_run, settle
from kteardown.run.measure import add_layout_twin, forecast_rest, measure, measure_profile
from kteardown.run.places import Where
from kteardown.run.resolve import resolve
from kteardown.rundir.directory import RunDir, new_folder, removed_unless_whole
from kteardown.rundir.find import RunFolder, mark_both_clocks
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.rundir.writer import open_writer


def start(
    experiments: Sequence[Experiment], reporter: Reporter, *, ablate: bool, command: str
) -> RunFolder:
    """Resolve an experiment (on both clocks: one for each), build its kernels, create its run
    directory.

    Raises InputError, BuildError, LabError.
    """
    resolved = [settle(resolve(experiment, ablate=ablate), reporter) for experiment in experiments]
    built = [
        build_first(resolution, reporter, measured_later=number > 0)
        for number, resolution in enumerate(resolved)
    ]
    if len(resolved) == 1:
        return RunFolder.of(create_run(resolved[0], built[0], command, reporter))
    folder = new_folder(runs_dir(), experiments[0].name)
    with removed_unless_whole(folder):
        for resolution, kernels in zip(resolved, built, strict=True):
            create_run(
                resolution,
                kernels,
                command,
                reporter,
                RunDir.create_at(folder / resolution.experiment.design.clock),
            )
        return mark_both_clocks(folder)


def finish(snapshot: Snapshot, reporter: Reporter, where: Where) -> Material:
    """Boot the rest of the plan of a run, with ``--until`` look by look, analyse it, and return
    what it says.

    Raises InputError, LabError, BuildError, GuestError; records that were written before are kept.
    """
    run = snapshot.run
    until = snapshot.experiment.design.until
    here = where.place.is_here
    so_far = partial(forecast_text.interim_rows_of, run)
    of_base = partial(forecast_text.lines_of_base, run)
    with open_writer(run, where.place.facts()) as log:
        expected, left = forecast_rest(snapshot, log, where.jobs)
        if left and here:
            for line in forecast_text.measuring(
                expected, snapshot.plan.memory_mb, at_most=bool(until)
            ):
                reporter.note(line)
        result = analyse_and_save(snapshot) if until and log.finished() else None
        while True:
            snapshot = measure(
                snapshot,
                log,
                reporter,
                expected,
                where,
                after=result,
                interim=so_far,
                of_base=of_base,
            )
            result = analyse_and_save(snapshot)
            if result.stopping is not None:
                reporter.note(forecast_text.look_summary(result, snapshot.workloads))
            if result.stopping is None or result.stopping.done:
                from kteardown.coverage.count_change import count_changes  # As below.

                counted = count_changes(snapshot, result, reporter, here=here)
                if counted is not None:
                    snapshot = counted
                    result = analyse_and_save(counted)
                with_twin = add_layout_twin(snapshot, result, reporter)
                if with_twin is None:
                    break
                snapshot = with_twin
    from kteardown.coverage.count_events import count_events

    profiled = measure_profile(snapshot, reporter, where)
    if count_events(snapshot, reporter, here=here) or profiled:
        result = analyse_and_save(load(run))
    return Material(run.name, result, snapshot.workloads, snapshot.published)


def analyse_and_save(snapshot: Snapshot) -> Result:
    """Analyse a run and write ``result.json`` and ``report.md``. Raises InputError, GuestError."""
    # Imported here: importing scipy takes longer than the start of a run whose kernels are cached.
    from kteardown.analysis.conclude import conclude

    run, (result, folded) = snapshot.run, conclude(snapshot)
    saved.write(run, result, snapshot)
    for name, stacks in folded.items():
        run.save(run.profile.folder / name, stacks)
    return saved.with_outcome(run, result)
