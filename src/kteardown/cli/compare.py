"""``kteardown compare``: compare a patch with its base, without an experiment file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.cli.run import check_counters, command_line, finish
from kteardown.errors import InputError
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, workload_names
from kteardown.inputs.override import Overrides, apply
from kteardown.kernels.git_branch import of_branch
from kteardown.model.experiment import Experiment, Sweep
from kteardown.paths import cache_dir
from kteardown.run import places


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=compare.__doc__)(options.grouped(compare))


def compare(
    workload: Annotated[
        str,
        typer.Argument(help="A workload (`kteardown list workloads`).", autocompletion=complete.workloads),
    ],
    kernels: options.Kernels,
    designed: options.Designed,
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
    options.need_writable(*execution.files.values())
    places.check(execution.on)
    reporter = execution.reporter()
    source, variants = base_and_variants(source, series or [], branch or [])
    parts = options.Parts(variant=variants)
    experiments = options.on_clocks(experiment_for(workload, source), parts, kernels, designed)
    check_counters(experiments, execution)
    found = pipeline.start(experiments, reporter, ablate=kernels.ablate, command=command_line())
    finish(found, reporter, execution)


def base_and_variants(source: str, series: list[str], branches: list[str]) -> tuple[str, list[str]]:
    """Return the source of base and the names of the variants.

    ``branches`` are written BASE..TOPIC. Without ``source``, base is the commit where they begin.

    Raises InputError if there is no variant, or if the options do not determine one base.
    """
    if not series and not branches:
        raise InputError(
            "there is nothing to compare with base: neither --series nor --branch is given",
            hint="name a patch, an mbox or a folder: --series ./my.mbox",
        )
    kind, _, rest = source.partition(":")
    path, at, _ = rest.rpartition("@") if kind == "git" else ("", "", "")
    repository = Path(path if at else rest).expanduser() if kind == "git" else Path()
    found = [of_branch(text, repository, cache_dir()) for text in branches]
    variants = [*series, *(str(branch.folder) for branch in found)]
    if at or (source and not (kind == "git" and found)):
        return source, variants
    bases = list(dict.fromkeys(branch.base for branch in found))
    if len(bases) != 1:
        raise InputError(
            f"--branch: the branches begin at different commits: {', '.join(bases)}"
            if bases
            else "the base kernel is not given: --source is missing",
            hint="add --source git:PATH@REV or --source debian:6.12.",
        )
    return f"git:{repository.absolute()}@{bases[0]}", variants


def experiment_for(workload: str, source: str) -> Experiment:
    """Return an experiment with one workload and base ``source``.

    Sweep and design are those of the first known experiment with this workload, if there is one.

    Raises InputError if there is no such workload.
    """
    here = Path.cwd()
    load_workload(workload, str(here))
    name = f"compare-{workload}"
    question = f"What does the change do to {workload}?"
    for known in map(load_experiment, experiment_names(here)):
        if workload in (sweep.workload for sweep in known.workloads):
            # The published figures are of another change than this one.
            about = {"name": name, "question": question, "source": source, "reference": None}
            return apply(known, Overrides(workloads=(workload,))).model_copy(update=about)
    own = "" if workload in workload_names() else str(here)
    sweeps = (Sweep(workload=workload),)
    return Experiment(name=name, question=question, source=source, workloads=sweeps, folder=own)
