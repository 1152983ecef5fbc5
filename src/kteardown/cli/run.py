"""``kteardown run`` and ``compare``: run all stages of an experiment, or of one workload without a file."""

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.cli.outcome import gate
from kteardown.cli.script import experiments_on
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, on_clocks
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Experiment
from kteardown.report.formats import text
from kteardown.report.material import Measured, side_by_side
from kteardown.report.publication import of_run
from kteardown.run import lab, named
from kteardown.run.resolve import base_and_variants
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load


def run(
    asked: Overrides,
    execution: options.Execution,
    experiment: options.ExperimentArg = "",
    resume: Annotated[str | None, typer.Option(metavar="RUN", autocompletion=complete.runs)] = None,
    own: Annotated[list[str] | None, typer.Option(metavar="PATH")] = None,
) -> None:
    reporter = execution.begin()
    if resume is not None:
        if experiment or asked != Overrides():
            raise InputError(
                "--resume: a run is resumed as it was planned, so no option may change the experiment",
                hint=f"run `kteardown run --resume {resume}`.",
            )
        found = find_runs(resume)
        named.need(
            named.of_runs(found), own or (), found.name, f"kteardown run --resume {shlex.quote(resume)}"
        )
    else:
        if own:
            raise InputError(
                "--own is for what a run names that is resumed", hint="leave it out, or add --resume RUN."
            )
        if not experiment:
            raise InputError(
                "no experiment is named", hint="name one; `kteardown list experiments` shows them."
            )
        found = start(on_clocks(load_experiment(experiment), asked), reporter, execution, ablate=asked.ablate)
    finish(found, reporter, execution, "run")


def start(
    experiments: Sequence[Experiment],
    reporter: TerminalReporter,
    execution: options.Execution,
    *,
    ablate: bool = False,
    command: str = "",
) -> RunFolder:
    """Create the run of an experiment (on both clocks: one for each), with the kernels that it begins with.

    ``command``, if it is not the one as it was typed, repeats it. Raises InputError, BuildError, LabError.
    """
    for experiment in experiments:
        lab.check_host(experiment, execution.on, kvm=execution.require is not None)
    return pipeline.start(experiments, reporter, ablate=ablate, command=command or command_line())


def boot_rest(
    found: RunFolder, reporter: TerminalReporter, execution: options.Execution, *, repeat: bool = False
) -> Measured:
    """Boot the rest of the plan, and return what the run says. ``repeat`` as for ``run.lab``.

    Raises InputError, BuildError, GuestError, LabError.
    """
    reporter.note(f"run directory: {found.path}")
    on = lab.remembered_place(RunDir(found.path), execution.on)
    snapshots = [load(run) for run in found.runs]
    for snapshot in snapshots:
        lab.check_host(snapshot.experiment, on, kvm=execution.require is not None)
    materials = []
    try:
        for snapshot in snapshots:
            if found.both_clocks:
                reporter.note(f"{CLOCKS[snapshot.experiment.design.clock]}:")
            materials.append(pipeline.finish(snapshot, reporter, lab.Where(on, execution.jobs, repeat)))
            if snapshot is not snapshots[-1]:
                reporter.note(f"done; its report: kteardown report {snapshot.run.name}")
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish it with: {_resume_command(found, on)}")
        raise
    return side_by_side(found.name, *materials) if found.both_clocks else materials[0]


def finish(
    found: RunFolder, reporter: TerminalReporter, execution: options.Execution, verb: str = "run"
) -> None:
    """Boot the rest of the plan, print the result, write the files of ``execution``, apply the gate.

    Raises InputError, BuildError, GuestError, LabError, BrokenError, NotBuiltError,
    GateError.
    """
    material = boot_rest(found, reporter, execution)
    show = partial(text.brief, material, options.output())
    gates = partial(gate, material, execution.fail_on)
    execution.publish(of_run(material, verb), show, gates, kept=f"kteardown report {found.name}")


def _resume_command(found: RunFolder, on: str) -> str:
    """Return the command that goes on with a run, with what must be named again."""
    words = f" --on {shlex.quote(on)}" if on else ""
    words += named.options(one.text for one in named.of_runs(found))
    return f"kteardown run --resume {found.name}{words}"


def command_line() -> str:
    """Return the command as it was typed, for the run's ``environment.json``."""
    return shlex.join(["kteardown", *sys.argv[1:]])


def compare(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    source: Annotated[str, typer.Option(autocompletion=complete.sources)] = "",
    series: Annotated[list[str] | None, typer.Option(autocompletion=complete.series_and_sources)] = None,
    branch: Annotated[list[str] | None, typer.Option(metavar="BASE..TOPIC")] = None,
) -> None:
    reporter = execution.begin()
    source, variants = base_and_variants(source, series or [], branch or [])
    asked = Overrides.of(kernels, designed, variant=variants)
    experiments = experiments_on(workload, source, asked, scripted, reporter)
    found = start(experiments, reporter, execution, ablate=asked.ablate)
    finish(found, reporter, execution, "compare")
