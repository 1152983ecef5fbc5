"""What the command line may change in an experiment, before it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.errors import InputError
from kteardown.records.schema import ParamValue
from kteardown.spec.load import check_experiment, did_you_mean, fragments, load_workloads
from kteardown.spec.model import Clock, Experiment


@dataclass(frozen=True)
class Overrides:
    """Options of ``kteardown run``; None or empty leaves what the file says."""

    clock: Clock | None = None
    source: str | None = None
    arch: str | None = None
    boots: int | None = None
    seeds: int | None = None
    repetitions: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    variants: Sequence[str] = ()
    workloads: Sequence[str] = ()
    params: Mapping[str, tuple[ParamValue, ...]] = field(default_factory=dict)
    quick: bool = False


def apply(experiment: Experiment, overrides: Overrides) -> Experiment:
    """The experiment with the overrides in it, checked again. Raises InputError."""
    design: dict[str, object] = {}
    params: dict[str, tuple[ParamValue, ...]] = {}
    if overrides.quick:
        quick = experiment.quick
        design |= {"seeds": quick.seeds, "boots": quick.boots, "repetitions": quick.repetitions}
        params |= quick.params
    params |= overrides.params
    for key in ("clock", "boots", "seeds", "repetitions"):
        value = getattr(overrides, key)
        if value is not None:
            design[key] = value
    machine = {key: getattr(overrides, key) for key in ("arch", "cpus", "memory_mb")}
    fields = experiment.model_dump()
    fields["design"] |= design
    fields["machine"] |= {key: value for key, value in machine.items() if value is not None}
    if overrides.source:
        fields["source"] = overrides.source
    if overrides.variants:
        fields["variants"] = tuple(overrides.variants)
    if overrides.workloads:
        # The kernels stay those of the whole experiment: the same images, whatever part of it is run.
        fields["config"] = fragments(experiment, load_workloads(experiment))
        fields["workloads"] = _chosen(fields["workloads"], overrides.workloads)
    _set_params(fields["workloads"], params, experiment, set(overrides.params))
    changed = Experiment.model_validate(fields)
    check_experiment(changed, f"experiment {experiment.name}")
    return changed


def _chosen(sweeps: Sequence[dict[str, object]], names: Sequence[str]) -> list[dict[str, object]]:
    have = [str(sweep["workload"]) for sweep in sweeps]
    for name in names:
        if name not in have:
            raise InputError(
                f"--workload {name}: the experiment does not run it{did_you_mean(name, have)}",
                hint=f"it runs: {', '.join(have)}.",
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
        sweep["params"] = {**sweep["params"], **mine}  # type: ignore[dict-item]
        used |= mine.keys()
    for name in sorted(demanded - used):
        have = sorted({p for sweep in sweeps for p in workloads[str(sweep["workload"])].parameters})
        raise InputError(
            f"--set {name}: no workload of the experiment has this parameter{did_you_mean(name, have)}",
            hint=f"they have: {', '.join(have) or 'none'}.",
        )
