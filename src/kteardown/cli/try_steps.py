"""The two halves of ``kteardown try``: what can be known before anything is built, and the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.compare import experiment_for
from kteardown.cli.material import material_of_folder
from kteardown.cli.run import check_broken, command_line, gate
from kteardown.cli.terminal import TerminalReporter
from kteardown.cli.try_workloads import (
    Chosen,
    choose_workloads,
    count_executions,
    needed_settings,
    with_call_paths,
)
from kteardown.errors import NotBuiltError, NotExercisedError
from kteardown.kernels import build
from kteardown.kernels.config_of_series import config_of_series, reasons
from kteardown.kernels.find_base import KNOWN, find_base
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.mail.posted import read, store
from kteardown.model.arch import Arch
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.paths import cache_dir
from kteardown.report.try_page import Measured, Tried
from kteardown.run.create import build_kernels, settle
from kteardown.run.resolve import resolve
from kteardown.rundir.find import RunFolder


def prepare(
    what: str,
    kernels: options.Kernels,
    workloads: Sequence[str],
    specs: Sequence[str],
    reporter: TerminalReporter,
    *,
    fetch: bool,
) -> tuple[Tried, Chosen]:
    """Read the mails, find the base, the symbols and the workloads. Builds nothing.

    Raises InputError, BuildError, NotBuiltError, LabError.
    """
    cache = cache_dir()
    sources = Sources(cache, reporter)
    with reporter.task(f"Reading {what}"):
        posted = read(what, cache_dir=cache, reporter=reporter)
    with reporter.task("Looking for the source to which it applies"):
        base = find_base(
            posted.patches,
            sources,
            lambda texts: store(texts, posted.name, cache),
            specs=specs or ([posted.source] if posted.source else KNOWN),
            base_commit=posted.base_commit,
            fetch=fetch,
        )
    with reporter.task("Looking for what is compiled"):
        arch: Arch = "arm64" if kernels.arch is options.ArchChoice.arm64 else "x86_64"
        plain = KernelRequest(BASE, base.source, fragments=tuple(kernels.config or ()), arch=arch)
        config = config_of_series(plain, base.patches, sources)
    chosen = choose_workloads(workloads, base, sources)
    objects = build.base_objects(plain, sources)
    if chosen.known and not chosen.choices and objects is not None:
        with reporter.task("Looking for the system calls that reach what it changes"):
            chosen = with_call_paths(chosen, objects)
    measured = tuple(Measured(choice.workload, choice.why) for choice in chosen.choices)
    executed_by_none, notes = chosen.not_executed, chosen.notes
    return Tried(posted, base, config, measured, executed_by_none, (), command_line(), notes), chosen


def measure(
    tried: Tried,
    chosen: Chosen,
    kernels: options.Kernels,
    designed: options.Designed,
    execution: options.Execution,
    reporter: TerminalReporter,
) -> Tried:
    """Build, check what the series changes in the kernel, and run every chosen workload.

    Raises NotBuiltError if nothing of the series is in the kernel; and all that a run raises.
    """
    parts = options.Parts(variant=[str(tried.base.patches[0].parent)])
    wanted = []
    for choice in chosen.choices:
        experiment = experiment_for(choice.workload, tried.base.source)
        settings = [*needed_settings(choice, experiment), *(designed.assignments or ())]
        design = replace(designed, assignments=settings)
        wanted.append((choice, options.on_clocks(experiment, parts, kernels, design)))
    changed: dict[str, None] = {}
    found = []
    for choice, experiments in wanted:
        variant = _build(experiments[0], tried, changed, reporter)
        run = _run(experiments, kernels, execution, reporter)
        exercise = count_executions(choice, variant, experiments[0], chosen.changed, reporter)
        found.append(Measured(choice.workload, choice.why, run.name, material_of_folder(run), exercise))
    return replace(tried, measured=tuple(found), changed_objects=tuple(changed))


def check_verdicts(tried: Tried, execution: options.Execution) -> None:
    """Raise BrokenError, NotExercisedError or GateError, in this order, for what was found."""
    for one in tried.measured:
        for material in one.materials:
            check_broken(material.name, material.result)
    if tried.measured and all(one.exercise.exercised is False for one in tried.measured):
        raise NotExercisedError(
            "no workload that ran executed a line that the series changes",
            hint="name another workload with --workload, or write one: `kteardown new workload NAME`.",
        )
    for one in tried.measured:
        for material in one.materials:
            gate(material.name, material.result, material.workloads, execution.fail_on)


def _build(
    experiment: Experiment, tried: Tried, changed: dict[str, None], reporter: TerminalReporter
) -> KernelImage:
    """Build base and the series, and add the objects that differ to ``changed``. Raises NotBuiltError."""
    resolved = settle(resolve(experiment), reporter)
    built = build_kernels(resolved, reporter)
    base, variant = (built.images[kernel.name] for kernel in resolved.kernels[:2])
    found = build.changed_objects(base, variant)
    if not found:
        files = tried.config.files
        raise NotBuiltError(
            "nothing of this patch is in the kernel that was built: every object has the same code and data "
            f"as that of base ({reasons(files)})",
            hint="Add the symbols that compile it: --config CONFIG_NAME=y.",
        )
    changed.update(dict.fromkeys(found))
    return variant


def _run(
    experiments: Sequence[Experiment],
    kernels: options.Kernels,
    execution: options.Execution,
    reporter: TerminalReporter,
) -> RunFolder:
    found = pipeline.start(experiments, reporter, ablate=kernels.ablate, command=command_line())
    reporter.note(f"run directory: {found.path}")
    try:
        for run in found.runs:
            pipeline.finish(run, reporter, jobs=execution.jobs)
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish the run with: kteardown run --resume {found.name}")
        raise
    return found
