"""``kteardown run``: run all stages of an experiment."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.cli.gate import check_broken, check_built, gate
from kteardown.cli.run_report import each_clock, material_of_folder, print_report, written
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment
from kteardown.model.both_clocks import CLOCK_NAMES
from kteardown.model.experiment import Experiment
from kteardown.report.material import Material
from kteardown.run import lab, places
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=run.__doc__)(options.grouped(run))


def run(
    parts: options.Parts,
    kernels: options.Kernels,
    designed: options.Designed,
    execution: options.Execution,
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment (`kteardown list experiments`) or a path to a .toml file.",
            autocompletion=complete.experiments,
        ),
    ] = "",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Finish this interrupted run: its id or the beginning of it, its path, or `last`. The "
            "experiment cannot be changed then.",
            autocompletion=complete.runs,
        ),
    ] = None,
) -> None:
    """Run an experiment: build its kernels, boot them, measure, and print the report.

    Kernels in the cache are used again. Everything that is measured is kept in a run directory. --resume
    finishes a run that was interrupted or killed.

    Examples:

      kteardown run freezer --quick

      kteardown run freezer --clock wall --until verdict --budget 1h

      kteardown run freezer --clock both --quick --on slurm:perf

      kteardown run freezer --variant freezer-skip-exited --ablate --json r.json

      kteardown run freezer --set zombies=0:9000:3000 --source debian:7.2"""
    options.need_writable(*execution.files.values())
    places.check(execution.on)
    reporter = execution.reporter()
    if resume is not None:
        plain = (options.Parts(), options.Kernels(), options.Designed())
        if experiment or (parts, kernels, designed) != plain:
            raise InputError(
                "--resume: a run is resumed as it was planned, so no option may change the experiment",
                hint=f"run `kteardown run --resume {resume}`.",
            )
        found = find_runs(resume)
    else:
        if not experiment:
            raise InputError(
                "no experiment is named", hint="name one; `kteardown list experiments` shows them."
            )
        experiments = options.on_clocks(load_experiment(experiment), parts, kernels, designed)
        check_counters(experiments, execution)
        found = pipeline.start(experiments, reporter, ablate=kernels.ablate, command=command_line())
    finish(found, reporter, execution)


def finish(found: RunFolder, reporter: TerminalReporter, execution: options.Execution) -> None:
    """Boot the rest of the plan, print the report, write the files of ``execution``, apply the gate.

    Raises InputError, BuildError, GuestError, LabError, BrokenError, NotBuiltError,
    GateError.
    """
    reporter.note(f"run directory: {found.path}")
    on = places.remembered(found.path, execution.on)
    try:
        for run in found.runs:
            if found.both_clocks:
                reporter.note(f"{CLOCK_NAMES[load(run).experiment.design.clock]}:")
            pipeline.finish(run, reporter, jobs=execution.jobs, on=on)
            if run is not found.runs[-1]:
                reporter.note(f"done; its report: kteardown report {run.name}")
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish it with: kteardown run --resume {found.name}")
        raise
    material = material_of_folder(found)
    text_of, show = partial(written, material), partial(print_report, material)
    gates = partial(apply_gates, each_clock(material), execution.fail_on)
    execution.publish(text_of, show, gates, kept=f"kteardown report {found.name}")


def apply_gates(materials: Sequence[Material], fail_on: options.FailOn | None) -> None:
    """Raise BrokenError or NotBuiltError of any of ``materials``, or else GateError."""
    for one in materials:
        check_broken(one.name, one.result)
        check_built(one.result)
    for one in materials:
        gate(one.name, one.result, one.workloads, fail_on)


def check_counters(experiments: Sequence[Experiment], execution: options.Execution) -> None:
    """Check that guests have counters, if an experiment counts, before anything is built. Raises LabError."""
    for experiment in experiments:
        lab.check_counters(experiment, execution.on)


def command_line() -> str:
    """Return the command as it was typed, for the run's ``environment.json``."""
    return shlex.join(["kteardown", *sys.argv[1:]])
