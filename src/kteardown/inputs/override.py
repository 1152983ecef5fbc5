"""Apply command-line options to an experiment before it is run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.errors import InputError, did_you_mean
from kteardown.inputs.fragments import fragments
from kteardown.inputs.load import check_experiment, check_values, load_workloads
from kteardown.model.experiment import MACHINE_PARAMETERS, UNTIL, Clock, Experiment
from kteardown.model.record import ParamValue

MOST_BOOTS, MOST_SEEDS = 40, 20
"""The maximum numbers of a run with ``--until``, unless ``--boots`` or ``--seeds`` gives another."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Overrides:
    """Options of ``kteardown run``; None or empty keeps the value of the experiment file."""

    clock: Clock | None = None
    source: str | None = None
    arch: str | None = None
    boots: int | None = None
    seeds: int | None = None
    repetitions: int | None = None
    until: str | None = None
    budget_s: float | None = None
    lost_limit: float | None = None
    layout_twin: bool = False
    counts: bool = False
    profile: bool = False
    cpus: int | None = None
    memory_mb: int | None = None
    config: Sequence[str] = ()
    variants: Sequence[str] = ()
    workloads: Sequence[str] = ()
    params: Mapping[str, tuple[ParamValue, ...]] = field(default_factory=dict)
    predict: Mapping[str, tuple[ParamValue, ...]] = field(default_factory=dict)
    quick: bool = False


def apply(experiment: Experiment, overrides: Overrides) -> Experiment:
    """Return ``experiment`` changed by the overrides and checked again. Raises InputError."""
    design: dict[str, object] = {}
    params: dict[str, tuple[ParamValue, ...]] = {}
    if overrides.quick:
        quick = experiment.quick
        design |= {"seeds": quick.seeds, "boots": quick.boots, "repetitions": quick.repetitions}
        params |= quick.params
    if overrides.until is not None:
        design |= {"until": _checked_until(overrides.until), "boots": MOST_BOOTS, "seeds": MOST_SEEDS}
    params |= overrides.params
    for key in ("clock", "boots", "seeds", "repetitions", "budget_s", "lost_limit"):
        value = getattr(overrides, key)
        if value is not None:
            design[key] = value
    fields = experiment.model_dump()
    fields["design"] |= design
    machine: dict[str, object] = {
        name: _counts(f"--set {name}", params[name]) for name in MACHINE_PARAMETERS if name in params
    }
    plain = {key: getattr(overrides, key) for key in ("arch", "cpus", "memory_mb")}
    fields["machine"] |= machine | {key: value for key, value in plain.items() if value is not None}
    if overrides.source:
        fields["source"] = overrides.source
    if overrides.variants:
        fields["variants"] = tuple(overrides.variants)
    if overrides.workloads:
        fields |= _part(experiment, overrides.workloads)
    # After the workloads, whose choice keeps the fragments of the whole experiment.
    fields["config"] = tuple(dict.fromkeys([*fields["config"], *overrides.config]))
    own = {name: values for name, values in params.items() if name not in MACHINE_PARAMETERS}
    _set_params(fields["workloads"], own, experiment, {*overrides.params} - {*MACHINE_PARAMETERS})
    for switch in ("layout_twin", "counts", "profile"):
        if getattr(overrides, switch):
            fields["design"][switch] = True
    fields["predict"] |= {
        name: _counts(f"--predict {name}", values) for name, values in overrides.predict.items()
    }
    changed = Experiment.model_validate(fields)
    _check_design(changed, overrides)
    check_experiment(changed, f"experiment {experiment.name}")
    return changed


def _part(experiment: Experiment, names: Sequence[str]) -> dict[str, object]:
    """Return the fields of the experiment that change if only the workloads called ``names`` are run.

    The fragments stay those of the whole experiment, so that every part of it uses the same kernel images.
    """
    workloads = load_workloads(experiment)
    fields = experiment.model_dump()
    chosen = _chosen(fields["workloads"], names)
    theirs = {parameter for name in names for parameter in workloads[name].parameters}
    quick = {
        name: values
        for name, values in experiment.quick.params.items()
        if name in {*theirs, *MACHINE_PARAMETERS}
    }
    laws = {workloads[name].law for name in names}
    return {
        "config": fragments(experiment, workloads),
        "workloads": chosen,
        "quick": {**fields["quick"], "params": quick},
        "predict": {name: sizes for name, sizes in experiment.predict.items() if name in laws},
    }


def parse_seconds(text: str, where: str) -> float:
    """Return ``"90s"``, ``"30m"`` or ``"2h"`` in seconds. Raises InputError that names ``where``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not match or float(match[1]) == 0:
        raise InputError(
            f"{where} {text}: expected a time with a unit", hint="write it as in 90s, 30m or 2h."
        )
    return float(match[1]) * _SECONDS[match[2]]


def parse_share(text: str, where: str) -> float:
    """Return ``"5%"`` as 0.05. Raises InputError that names ``where``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not match or not 0 < float(match[1]) <= 100:
        raise InputError(
            f"{where} {text}: expected a share above 0% and up to 100%", hint="write it as in 5% or 0.5%."
        )
    return float(match[1]) / 100


def _counts(option: str, values: Sequence[ParamValue]) -> tuple[ParamValue, ...]:
    if not values or not all(isinstance(value, int) and value > 0 for value in values):
        raise InputError(f"{option}: expected integers above 0", hint=f"write them as in {option}=2,32.")
    return tuple(values)


def _checked_until(text: str) -> str:
    if not text or not re.fullmatch(UNTIL, text):
        raise InputError(
            f"--until {text}: expected verdict or ci=WIDTH%",
            hint="use --until verdict to stop when no headline metric is inconclusive, or --until ci=2% "
            "to stop when every headline metric is known to within 2%.",
        )
    return text


def _check_design(experiment: Experiment, overrides: Overrides) -> None:
    design = experiment.design
    if overrides.budget_s is not None and not design.until:
        raise InputError(
            "--budget is only for a run with --until", hint="add --until verdict or --until ci=2%."
        )
    if overrides.lost_limit is not None and design.clock != "wall":
        raise InputError(
            "--lost-limit is only for the wall clock: other work of the host does not change an instruction "
            "count",
            hint="add --clock wall.",
        )
    wall = design.clock == "wall"
    given, other, mine = (overrides.seeds, "seeds", "boots") if wall else (overrides.boots, "boots", "seeds")
    if given is not None:
        raise InputError(
            f"--{other} {given}: has no effect on the clock of this run, which is {design.clock}",
            hint=f"write --{mine} {given}, or choose the other clock with --clock.",
        )
    if overrides.layout_twin and design.clock != "wall":
        raise InputError(
            "--layout-twin is only for the wall clock: instruction counts do not depend on code layout",
            hint="add --clock wall.",
        )


def _chosen(sweeps: Sequence[dict[str, object]], names: Sequence[str]) -> list[dict[str, object]]:
    have = [str(sweep["workload"]) for sweep in sweeps]
    for name in names:
        if name not in have:
            raise InputError(
                f"--workload {name}: the experiment does not run it{did_you_mean(name, have)}",
                hint=f"choose one of: {', '.join(have)}.",
            )
    return [sweep for sweep in sweeps if sweep["workload"] in names]


def _set_params(
    sweeps: Sequence[dict[str, object]],
    params: Mapping[str, tuple[ParamValue, ...]],
    experiment: Experiment,
    demanded: set[str],
) -> None:
    workloads = load_workloads(experiment)
    used: set[str] = set()
    for sweep in sweeps:
        known = workloads[str(sweep["workload"])].parameters
        mine = {name: values for name, values in params.items() if name in known}
        for name in mine.keys() & demanded:
            check_values(mine[name], known[name], f"--set {name}")
        sweep["params"] = {**sweep["params"], **mine}  # type: ignore[dict-item]
        used |= mine.keys()
    for name in sorted(demanded - used):
        theirs = {p for sweep in sweeps for p in workloads[str(sweep["workload"])].parameters}
        have = sorted({*MACHINE_PARAMETERS, *theirs})
        raise InputError(
            f"--set {name}: no workload of the experiment has this parameter{did_you_mean(name, have)}",
            hint=f"choose one of: {', '.join(have)}.",
        )
