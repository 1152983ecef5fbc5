"""``kteardown compare``: the patch author's way in, with no file to write."""

from __future__ import annotations

from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.run import finish, start
from kteardown.spec.load import experiment_names, fragments, load_experiment, load_workload, load_workloads
from kteardown.spec.model import Experiment, Sweep


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=compare.__doc__)(options.grouped(compare))


def compare(
    workload: Annotated[str, typer.Argument(help="A workload (`kteardown list workloads`).")],
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE, debian-image:6.12.",
        ),
    ],
    series: Annotated[
        list[str],
        typer.Option(
            "--series",
            help="What to hold against it: a patch, a folder of patches, an mbox as `b4 am` leaves it, "
            "a shipped series, or a second source. Repeatable.",
        ),
    ],
    kernels: options.Kernels,
    designed: options.Designed,
    execution: options.Execution,
) -> None:
    """Hold a patch against its base on one workload.

    The parameters sweep as in the experiment that ships with the workload, unless --set says otherwise.

    Examples:

      kteardown compare zombies --source debian:6.12 --series ./my.mbox --quick

      kteardown compare zombies --source debian:6.12 --series ./my.mbox --clock wall --until ci=2%
    """
    options.need_folders(execution.json_file, execution.markdown_file)
    reporter = execution.reporter()
    parts = options.Parts(variant=series)
    experiment = options.changed(experiment_for(workload, source), parts, kernels, designed)
    finish(start(experiment, reporter, ablate=kernels.ablate), reporter, execution)


def experiment_for(workload: str, source: str) -> Experiment:
    """An experiment around one workload, swept and designed as the shipped one that runs it."""
    load_workload(workload)
    name = f"compare-{workload}"
    question = f"What does the change do to {workload}?"
    for shipped in map(load_experiment, experiment_names()):
        for sweep in shipped.workloads:
            if sweep.workload == workload:
                # With the whole experiment's configuration, so that the base kernel is the one built for it.
                config = fragments(shipped, load_workloads(shipped))
                # The posting measured its own change, not this one.
                about = {"name": name, "question": question, "source": source, "reference": None}
                return shipped.model_copy(update={**about, "config": config, "workloads": (sweep,)})
    return Experiment(name=name, question=question, source=source, workloads=(Sweep(workload=workload),))
