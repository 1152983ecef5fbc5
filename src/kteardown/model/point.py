"""A point: a workload with a value for each of its parameters."""

from collections.abc import Mapping
from itertools import product
from math import prod

from kteardown.model.experiment import Experiment, Sweep
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import StrictModel, Workload

EACH_CPU = "cpus"
"""The value of a number that is as large as the number of the guest's CPUs."""
Key = tuple[tuple[str, ParamValue], ...]
"""All parameters of a point, sorted by name: a dictionary key."""


class Point(StrictModel):
    """A point of an experiment. ``shown`` are the parameters that the experiment sweeps or sets."""

    workload: str
    params: dict[str, ParamValue]
    """Every parameter, with those of the machine that are swept."""
    shown: dict[str, ParamValue]

    @property
    def full(self) -> Key:
        return key(self.params)


def key(params: Mapping[str, ParamValue]) -> Key:
    return tuple(sorted(params.items()))


def size_of(params: Mapping[str, ParamValue], law: str) -> int:
    """Return the value of the parameter of a growth law; 0 if there is none or it is no number."""
    value = params.get(law, 0)
    return value if isinstance(value, int) else 0


def sweep_points(sweep: Sweep, workload: Workload) -> list[dict[str, ParamValue]]:
    """Every parameter point of a sweep: the product of its values, defaults filled in."""
    # The last parameter of the workload's file varies fastest.
    values = (sweep.params.get(name, (spec.default,)) for name, spec in workload.parameters.items())
    return [dict(zip(workload.parameters, point, strict=True)) for point in product(*values)]


def on_machine(
    params: Mapping[str, ParamValue], workload: Workload, cpus: int
) -> dict[str, ParamValue]:
    """Return ``params`` for a guest with ``cpus`` CPUs: the values ``EACH_CPU`` as numbers."""
    return {
        name: cpus if value == EACH_CPU and not workload.parameters[name].choices else value
        for name, value in params.items()
    }


def cpus_of(experiment: Experiment, workloads: Mapping[str, Workload]) -> int:
    """Return the CPUs of the guests of an experiment; the largest number if it is swept."""
    needed = max(workload.cpus for workload in workloads.values())
    return experiment.machine.largest("cpus") or needed


def points_of(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[Point, ...]:
    """Every point of an experiment, in the order of its sweeps and their values."""
    result: list[Point] = []
    cpus = cpus_of(experiment, workloads)
    for sweep in experiment.workloads:
        workload = workloads[sweep.workload]
        chosen = {*experiment.machine.swept, *sweep.params, workload.law}
        for machine in experiment.machine.points():
            for params in sweep_points(sweep, workload):
                on = on_machine(params, workload, machine.get("cpus", cpus))
                full = {**machine, **on}
                shown = {name: value for name, value in full.items() if name in chosen}
                result.append(Point(workload=sweep.workload, params=full, shown=shown))
    return tuple(result)


def weight_of(sweep: Sweep, point: Point) -> float:
    """The weight of a point of ``sweep`` in the verdict of a metric."""
    return prod(
        sweep.weights.get(name, {}).get(str(value), 1.0) for name, value in point.params.items()
    )
