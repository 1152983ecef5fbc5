"""``kteardown plan``: print the plan of an experiment, and build and boot nothing."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kteardown.cli import options
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides
from kteardown.inputs.override import on_clocks
from kteardown.model.clock import CLOCKS
from kteardown.model.plan import Plan
from kteardown.report import forecast_text
from kteardown.report.formats import text
from kteardown.run.create import design_power, forecast_cost, plan_boots, plan_profiled_boots
from kteardown.run.resolve import Resolved, resolve
from kteardown.visible import echo


def plan(
    experiment: options.ExperimentArg,
    asked: Overrides,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, help="Guests that run at the same time, for the forecast (instruction clock)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
) -> None:
    """Print the order of the boots, the trials of each boot, a forecast of time and memory, and what the
    design can decide.

    The forecast, and how much boots differ, are from earlier runs on this host. Nothing is built or booted.
    With --clock both, the plan of each clock is printed; --json has them by clock.

    Examples:

      kteardown plan freezer --quick

      kteardown plan freezer --clock wall --boots 20 --json
    """
    wanted = on_clocks(load_experiment(experiment), asked)
    resolved = [resolve(one, ablate=asked.ablate) for one in wanted]
    if as_json:
        found = {str(one.experiment.design.clock): _fields(one, jobs) for one in resolved}
        echo(json.dumps(found if len(resolved) > 1 else next(iter(found.values())), indent=1))
        return
    for one in resolved:
        _print(one, jobs, options.output())


def _fields(resolved: Resolved, jobs: int | None) -> dict[str, Any]:
    planned = plan_boots(resolved)
    building, measuring = forecast_cost(resolved, planned, jobs=jobs)
    estimate = {**forecast_text.fields(measuring), "build": asdict(building)}
    added = {"estimate": estimate, "decides": asdict(design_power(resolved))}
    return {**planned.model_dump(mode="json"), **added}


def _print(resolved: Resolved, jobs: int | None, out: Console) -> None:
    planned = plan_boots(resolved)
    building, measuring = forecast_cost(resolved, planned, jobs=jobs)
    power = design_power(resolved)
    design = resolved.experiment.design
    trials = sum(len(boot.trials) for boot in planned.boots)
    boots = f"{'at most ' if design.until else ''}{len(planned.boots)} boots, {trials} trials"
    head = f"{resolved.experiment.name} on {CLOCKS[design.clock]}: {boots}"
    each = f"{design.warmup} + {design.repetitions} repetitions"
    guest = f"{planned.cpus} CPU and {planned.memory_mb} MB"
    for line in (
        f"{head} of {each}; guests of {guest}",
        *forecast_text.building(building),
        *forecast_text.measuring(measuring, planned.memory_mb, at_most=bool(design.until)),
    ):
        out.print(line, soft_wrap=True)
    if power.rows and len(resolved.experiment.variants) > 0:
        text.show(forecast_text.power_table(power, design, resolved.workloads), out)
        out.print()
    _table(planned, out)
    sampled = len(plan_profiled_boots(resolved, planned).boots)
    if sampled:
        out.print(f"and {sampled} boots that are sampled for --profile; the time above does not include them")


def _table(planned: Plan, out: Console) -> None:
    machines = list(planned.boots[0].machine)
    table = Table("boot", "block", "kernel", *machines, "seed", "trials", box=None)
    for boot in planned.boots:
        machine = [str(boot.machine[name]) for name in machines]
        table.add_row(
            *(str(boot.index), str(boot.block), boot.kernel), *machine, str(boot.seed), str(len(boot.trials))
        )
    out.print(table)
    out.print("the trials of the boots of the first block, in order:")
    for trial in planned.boots[0].trials:
        words = " ".join(f"{name}={value}" for name, value in trial.params.items())
        out.print(f"  {trial.index:3} {trial.workload} {words}")
