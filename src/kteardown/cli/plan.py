"""``kteardown plan`` and ``build``: print the plan of an experiment, or build its kernels."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kteardown.cli import options
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Kernels, Overrides, Parts, apply, on_clocks
from kteardown.model.clock import CLOCKS
from kteardown.report import forecast_text
from kteardown.report.formats import text
from kteardown.run.create import (
    build_kernels,
    design_power,
    forecast_cost,
    plan_boots,
    plan_profiled_boots,
)
from kteardown.run.resolve import Resolved, resolve
from kteardown.visible import echo


def plan(
    experiment: options.ExperimentArg,
    asked: Overrides,
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    experiments = on_clocks(load_experiment(experiment), asked)
    resolutions = [resolve(on_clock, ablate=asked.ablate) for on_clock in experiments]
    if as_json:
        plans: dict[str, dict[str, Any]] = {}
        for resolved in resolutions:
            planned = plan_boots(resolved)
            building, measuring = forecast_cost(resolved, planned, jobs=jobs)
            estimate = {**asdict(measuring), "build": asdict(building)}
            del estimate["trial_s"]
            added = {"estimate": estimate, "decides": asdict(design_power(resolved))}
            plans[str(resolved.experiment.design.clock)] = {
                **planned.model_dump(mode="json"),
                **added,
            }
        echo(json.dumps(plans if len(resolutions) > 1 else next(iter(plans.values())), indent=1))
        return
    for resolved in resolutions:
        _print(resolved, jobs, options.output())


def _print(resolved: Resolved, jobs: int | None, out: Console) -> None:
    planned = plan_boots(resolved)
    building, measuring = forecast_cost(resolved, planned, jobs=jobs)
    power = design_power(resolved)
    design = resolved.experiment.design
    trials = sum(len(boot.trials) for boot in planned.boots)
    boots = f"{'at most ' if design.until else ''}{len(planned.boots)} boots, {trials} trials"
    head = f"{resolved.experiment.name} on {CLOCKS[design.clock]}: {boots}"
    repetitions = f"{design.warmup} + {design.repetitions} repetitions"
    guest = f"{planned.cpus} CPU and {planned.memory_mb} MB"
    for line in (
        f"{head} of {repetitions}; guests of {guest}",
        *forecast_text.building(building),
        *forecast_text.measuring(measuring, planned.memory_mb, at_most=bool(design.until)),
    ):
        out.print(line, soft_wrap=True)
    if power.rows and len(resolved.experiment.variants) > 0:
        text.show(forecast_text.power_table(power, design, resolved.workloads), out)
        out.print()
    machines = list(planned.boots[0].machine)
    table = Table("boot", "block", "kernel", *machines, "seed", "trials", box=None)
    for boot in planned.boots:
        machine = [str(boot.machine[name]) for name in machines]
        table.add_row(
            *(str(boot.index), str(boot.block), boot.kernel),
            *machine,
            str(boot.seed),
            str(len(boot.trials)),
        )
    out.print(table)
    out.print("the trials of the boots of the first block, in order:")
    for trial in planned.boots[0].trials:
        words = " ".join(f"{name}={value}" for name, value in trial.params.items())
        out.print(f"  {trial.index:3} {trial.workload} {words}")
    sampled = len(plan_profiled_boots(resolved, planned).boots)
    if sampled:
        out.print(
            f"--profile adds {sampled} boots that are sampled; the time above does not include them"
        )


def build(
    experiment: options.ExperimentArg,
    parts: Parts,
    kernels: Kernels,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    # Kernels do not depend on the clock, but --layout-twin is accepted only with the wall clock.
    asked = Overrides.of(parts, kernels, clock="wall" if kernels.layout_twin else None)
    wanted = apply(load_experiment(experiment), asked)
    built = build_kernels(resolve(wanted, ablate=kernels.ablate), options.reporter(verbose, quiet))
    table = Table("kernel", "release", "source", "image", box=None)
    for name, image in built.images.items():
        table.add_row(name, image.release, image.source, str(image.image))
    options.output().print(table)
