"""``kteardown plan``: the order of trials, before anything is built or booted."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from kteardown import pipeline
from kteardown.cli import options


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=plan.__doc__)(plan)


def plan(
    experiment: options.ExperimentArg,
    clock: options.ClockOption = None,
    quick: options.QuickOption = False,
    source: options.SourceOption = None,
    variant: options.VariantOption = None,
    workload: options.WorkloadOption = None,
    assignments: options.SetOption = None,
    seeds: options.SeedsOption = None,
    boots: options.BootsOption = None,
    repetitions: options.RepetitionsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole plan as JSON.")] = False,
) -> None:
    """Print which kernel is booted when and what each boot runs."""
    chosen = options.Chosen(
        clock, source, None, boots, seeds, repetitions, None, None, variant, workload, assignments, quick
    )
    study = pipeline.prepare(chosen.experiment(experiment))
    planned = pipeline.plan(study)
    out = options.output()
    if as_json:
        typer.echo(planned.model_dump_json(indent=1))
        return
    design = study.experiment.design
    trials = sum(len(boot.trials) for boot in planned.boots)
    head = f"{study.experiment.name} on the {design.clock} clock: {len(planned.boots)} boots, {trials} trials"
    each = f"{design.warmup} + {design.repetitions} repetitions"
    guest = f"{planned.cpus} CPU and {planned.memory_mb} MB"
    out.print(f"{head} of {each}; guests of {guest}", highlight=False, soft_wrap=True)
    table = Table("boot", "block", "kernel", "seed", "trials", box=None)
    for boot in planned.boots:
        table.add_row(str(boot.index), str(boot.block), boot.kernel, str(boot.seed), str(len(boot.trials)))
    out.print(table)
    out.print("each boot runs, in this order (the first boot's):")
    for trial in planned.boots[0].trials:
        words = " ".join(f"{name}={value}" for name, value in trial.params.items())
        out.print(f"  {trial.index:3} {trial.workload} {words}", highlight=False)
