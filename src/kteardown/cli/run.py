"""``kteardown run`` and ``compare``: run all stages of an experiment, or of one workload without a
file."""

import shlex
from functools import partial
from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError
from kteardown.flows.ending import gate
from kteardown.flows.scripts import experiments_on
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, on_clocks
from kteardown.report.formats import text
from kteardown.report.publication import of_run
from kteardown.run import named
from kteardown.run.resolve import base_and_variants
from kteardown.rundir.find import RunFolder, find_runs


def run(
    asked: Overrides,
    execution: options.Execution,
    experiment: options.ExperimentArg = "",
    resume: Annotated[str | None, typer.Option(metavar="RUN", autocompletion=complete.runs)] = None,
    own_paths: Annotated[list[str] | None, typer.Option("--own", metavar="PATH")] = None,
) -> None:
    reporter = execution.begin()
    if resume is not None:
        if experiment or asked != Overrides():
            raise InputError(
                "--resume: a run is resumed as it was planned, so no option may change the "
                "experiment",
                hint=f"run `kteardown run --resume {resume}`.",
            )
        folder = find_runs(resume)
        named.need(
            named.of_runs(folder),
            own_paths or (),
            folder.name,
            f"kteardown run --resume {shlex.quote(resume)}",
        )
    else:
        if own_paths:
            raise InputError(
                "--own is only for a run that is resumed",
                hint="leave --own out, or add --resume RUN.",
            )
        if not experiment:
            raise InputError(
                "no experiment is named", hint="name one; `kteardown list experiments` shows them."
            )
        experiments = on_clocks(load_experiment(experiment), asked)
        folder = execution.runner(reporter).start(experiments, ablate=asked.ablate)
    finish(folder, reporter, execution, "run")


def finish(
    folder: RunFolder, reporter: TerminalReporter, execution: options.Execution, verb: str = "run"
) -> None:
    """Boot the rest of the plan, print the result, write the files of ``execution``, apply the
    gate.

    Raises InputError, BuildError, GuestError, LabError, BrokenError, NotBuiltError,
    GateError.
    """
    material = execution.runner(reporter).boot_rest(folder)
    show = partial(text.brief, material, options.output())
    gates = partial(gate, material, execution.fail_on)
    execution.publish(of_run(material, verb), show, gates, kept=f"kteardown report {folder.name}")


def compare(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    source: Annotated[str, typer.Option(autocompletion=complete.sources)] = "",
    series: Annotated[
        list[str] | None, typer.Option(autocompletion=complete.series_and_sources)
    ] = None,
    branch: Annotated[list[str] | None, typer.Option(metavar="BASE..TOPIC")] = None,
) -> None:
    reporter = execution.begin()
    alone = ["kteardown", "measure", workload, *(["--source", source] if source else [])]
    source, variants = base_and_variants(
        source, series or [], branch or [], workload=workload, alone=shlex.join(alone)
    )
    asked = Overrides.of(kernels, designed, variant=variants)
    experiments = experiments_on(workload, source, asked, scripted, reporter)
    folder = execution.runner(reporter).start(experiments, ablate=asked.ablate)
    finish(folder, reporter, execution, "compare")
