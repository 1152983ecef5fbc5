"""Measure a series: build it, count what of it is executed, and run every chosen workload."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kteardown.coverage.changed import (
    ChangedFunction,
    changed_for_certain,
)
from kteardown.errors import (
    NotBuiltError,
    NotExercisedError,
)
from kteardown.flows.ending import check_broken, gate
from kteardown.flows.runner import Runner
from kteardown.flows.scripts import described_in, experiments_on, is_own
from kteardown.flows.try_series.choose import MOST, NOT_MEASURED, OTHER, choose_by_code, no_workload
from kteardown.flows.try_series.count import count_executions
from kteardown.flows.try_series.experiments import experiments_of
from kteardown.flows.try_series.forecast import base_request
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted
from kteardown.judge.answer import FailOn
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.patches.config_of_series import reasons
from kteardown.paths import cache_dir
from kteardown.report.formatting import share
from kteardown.report.try_page import Exercise, MeasuredWorkload, Tried
from kteardown.run.beside import boot_and_count
from kteardown.run.create import build_kernels, settle
from kteardown.run.forecast import jobs_of
from kteardown.run.resolve import resolve
from kteardown.rundir.snapshot import load_plan
from kteardown.vm.machine import Machine

_NOTHING_EXECUTED = "no workload that ran executed a line that the series changes"


class SeriesMeasurement:
    """Measures a series with the kernels, the design and the options of scripts that the user asks
    for."""

    def __init__(
        self, kernels: Kernels, designed: Designed, scripted: Scripted, runner: Runner
    ) -> None:
        self._kernels = kernels
        self._designed = designed
        self._scripted = scripted
        self._runner = runner
        self._reporter = runner.reporter

    def measure(self, tried: Tried) -> Tried:
        """Build, check what the series changes in the kernel, and run every chosen workload.

        If nothing of the series is in the kernel, nothing is run. Raises all that a run raises.
        """
        if tried.chosen.after_build:
            tried = self._chosen_by_code(tried)
            if tried.error:
                return tried
        # A script, and a workload that is only counted, are counted before they are run.
        workloads = tried.chosen.workloads
        later = [
            workload
            for workload in workloads
            if not (is_own(workload.workload) or workload.only_counted)
        ]
        counted: list[MeasuredWorkload] = []
        for choice in (workload for workload in workloads if workload not in later):
            tried, exercise = self._counted(choice, tried)
            if tried.error:
                return tried
            counted.append(replace(choice, exercise=exercise))
        if not later:
            tried, more = self._counted_more(tried, counted)
            if tried.error:
                return tried
            counted += more
        # Nothing else says which scripts execute what is changed.
        counted.sort(key=lambda workload: -workload.exercise.share)
        able = [
            workload
            for workload in counted
            if (cost := workload.exercise.cost) is None or workload.shows(cost.share)
        ]
        best = [workload for workload in able if workload.exercise.exercised is not False][:MOST]
        measured = [workload for workload in counted if workload not in best]
        for choice in [*best, *later]:
            tried, ran = self._run(choice, tried, counts=choice in later)
            if tried.error:
                return tried
            measured.append(ran)
        return replace(tried, measured=tuple(measured), error=_why_nothing_shows(measured, counted))

    def _run(
        self, choice: MeasuredWorkload, tried: Tried, *, counts: bool
    ) -> tuple[Tried, MeasuredWorkload]:
        """Run a workload on base and on the series; with ``counts``, count beside it what is
        executed."""
        experiments = self._experiments(choice, tried)
        tried, image = self._built(experiments[0], tried)
        if tried.error:
            return tried, choice
        run = self._runner.start(experiments, ablate=self._kernels.ablate)
        boot = partial(self._runner.boot_rest, run, repeat=True)
        if counts:
            # Before the boots: what cannot be read is known at once.
            changed = changed_for_certain(tried.chosen.changed, image)
            count = partial(self._count, choice, tried, experiments[0], changed)
            exact = len(run.runs) == 1 and _is_exact(experiments[0], load_plan(run.runs[0]))
            most = jobs_of(experiments[0], self._runner.jobs)
            material, exercise = boot_and_count(boot, count, self._reporter, exact=exact, jobs=most)
        else:
            material = boot()
            exercise = choice.exercise
        ran = replace(
            choice, run=run.name, material=material, exercise=exercise, only_counted=False
        )
        return tried, ran

    def _counted_more(
        self, tried: Tried, counted: Sequence[MeasuredWorkload]
    ) -> tuple[Tried, list[MeasuredWorkload]]:
        """Count the spare workloads until one executes a changed line, if none of ``counted``
        does."""
        more: list[MeasuredWorkload] = []
        for choice in tried.chosen.spare:
            if not all(w.exercise.exercised is False for w in (*counted, *more)):
                break
            tried, exercise = self._counted(choice, tried)
            if tried.error:
                break
            more.append(replace(choice, exercise=exercise))
        return tried, more

    def _counted(self, choice: MeasuredWorkload, tried: Tried) -> tuple[Tried, Exercise]:
        """Count what is executed of the change before a workload is run, and before a script is
        rehearsed."""
        with tempfile.TemporaryDirectory(prefix="kteardown-script-") as folder:
            if is_own(choice.workload):
                source = tried.base.source
                asked = self._asked(tried)
                _, experiment = described_in(
                    Path(folder), choice.workload, source, asked, self._scripted, self._reporter
                )
            else:
                experiment = self._experiments(choice, tried)[0]
            tried, image = self._built(experiment, tried)
            if tried.error:
                return tried, Exercise()
            changed = changed_for_certain(tried.chosen.changed, image)
            return tried, self._count(choice, tried, experiment, changed)

    def _count(
        self,
        choice: MeasuredWorkload,
        tried: Tried,
        experiment: Experiment,
        changed: Sequence[ChangedFunction],
        machine: Machine | None = None,
    ) -> Exercise:
        asked = self._asked(tried)
        return count_executions(
            choice, tried.kernels, experiment, asked, changed, self._reporter, machine
        )

    def _asked(self, tried: Tried) -> Overrides:
        series = str(tried.base.patches[0].parent)
        return Overrides.of(self._kernels, self._designed, variant=[series])

    def _built(self, experiment: Experiment, tried: Tried) -> tuple[Tried, KernelImage]:
        """Build base and the series; return them in ``tried``, and the latter."""
        resolved = settle(resolve(experiment), self._reporter)
        built = build_kernels(resolved, self._reporter)
        base, image = (built.images[kernel.name] for kernel in resolved.kernels[:2])
        return _with_kernels(tried, base, image), image

    def _experiments(self, choice: MeasuredWorkload, tried: Tried) -> tuple[Experiment, ...]:
        """Return the experiment of a workload, once for each clock; a script is rehearsed first."""
        source = tried.base.source
        asked = self._asked(tried)
        if is_own(choice.workload):
            return experiments_on(choice.workload, source, asked, self._scripted, self._reporter)
        return experiments_of(choice, source, asked)

    def _chosen_by_code(self, tried: Tried) -> Tried:
        """Build base and the series, and choose the workloads that execute functions whose code
        differs."""
        base = base_request(self._kernels, tried.base)
        series = replace(
            base, name=tried.posted.name, series=tried.posted.name, patches=tried.base.patches
        )
        built = build.ensure([base, series], cache_dir=cache_dir(), reporter=self._reporter).images
        tried = _with_kernels(tried, built[base.name], built[series.name])
        if tried.error:
            return tried
        chosen = choose_by_code(tried.chosen, tried.base, built[series.name], self._designed)
        return replace(tried, chosen=chosen, measured=chosen.workloads, error=no_workload(chosen))


def raise_for(tried: Tried, fail_on: FailOn | None) -> None:
    """Raise BrokenError, what kept the series from being measured, or GateError, in this order."""
    materials = [workload.material for workload in tried.measured if workload.material is not None]
    for material in materials:
        check_broken(material)
    if tried.error:
        raise tried.error
    for material in materials:
        gate(material, fail_on)


def _why_nothing_shows(
    measured: Sequence[MeasuredWorkload], counted: Sequence[MeasuredWorkload]
) -> NotExercisedError | None:
    """Return the error if no workload executes the change, or none was run since none can show
    it."""
    if all(workload.exercise.exercised is False for workload in measured):
        return NotExercisedError(_NOTHING_EXECUTED, hint=OTHER)
    if any(workload.run for workload in measured):
        return None
    first = counted[0]
    part = share(first.exercise.cost.share if first.exercise.cost else 0.0)
    return NotExercisedError(
        f"{NOT_MEASURED}: with all that they call, the changed functions are {part} of what the "
        f"kernel executes in the stretch of {first.workload}, whose metrics show a change from "
        f"{share(first.smallest)} on",
        hint=OTHER,
    )


def _with_kernels(tried: Tried, base: KernelImage, variant: KernelImage) -> Tried:
    objects = build.changed_objects(base, variant)
    changed = tuple(dict.fromkeys((*tried.changed_objects, *objects)))
    error = None if objects else NotBuiltError.of("this patch", f" ({reasons(tried.config.files)})")
    return replace(tried, kernels=(base, variant), changed_objects=changed, error=error)


def _is_exact(experiment: Experiment, plan: Plan) -> bool:
    """Return whether no other work of the host changes a figure."""
    return experiment.design.clock != "wall" and (plan.possible_cpus or plan.cpus) == 1
