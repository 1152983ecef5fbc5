"""``kteardown compare``: compare a patch with its base, without an experiment file."""

from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.cli.run import finish, start
from kteardown.inputs.options import Designed, Kernels, Overrides
from kteardown.inputs.override import on_clocks
from kteardown.run.resolve import base_and_variants, experiment_for


def compare(
    workload: Annotated[
        str,
        typer.Argument(help="A workload (`kteardown list workloads`).", autocompletion=complete.workloads),
    ],
    kernels: Kernels,
    designed: Designed,
    execution: options.Execution,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE, debian-image:6.12. "
            "With --branch it may be omitted or be only git:PATH; base is then the start of the branch.",
            autocompletion=complete.sources,
        ),
    ] = "",
    series: Annotated[
        list[str] | None,
        typer.Option(
            "--series",
            help="What to compare with base: a patch, a folder of patches, an mbox as `b4 am` writes it, "
            "a shipped series, or a second source. Repeatable: give two revisions of a patch at once.",
            autocompletion=complete.series_and_sources,
        ),
    ] = None,
    branch: Annotated[
        list[str] | None,
        typer.Option(
            "--branch",
            metavar="BASE..TOPIC",
            help="What to compare with base, from git: the commits of TOPIC that are not in BASE. The git "
            "tree is that of --source, or else of the current folder. Repeatable.",
        ),
    ] = None,
) -> None:
    """Compare a patch with its base on one workload.

    The points and the design are those of the first experiment that runs the workload, unless options change
    them. Without such an experiment every parameter has its default value.

    Examples:

      kteardown compare zombies --source debian:6.12 --series ./my.mbox --quick

      kteardown compare zombies --source git:~/linux --branch v6.12..my-topic

      kteardown compare zombies --branch v6.12..my-topic --until ci=2%

      kteardown compare zombies --source debian:6.12 --series ./v1 --series ./v2
    """
    reporter = execution.begin()
    source, variants = base_and_variants(source, series or [], branch or [])
    asked = Overrides.of(kernels, designed, variant=variants)
    experiments = on_clocks(experiment_for(workload, source), asked)
    finish(start(experiments, reporter, execution, ablate=asked.ablate), reporter, execution)
