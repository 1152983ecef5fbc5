"""Check an experiment against its workloads, and the values of parameters and of the machine.

Every error names the place and the key.
"""

import re
from collections.abc import Iterable, Mapping
from math import prod

from kteardown.errors import InputError
from kteardown.inputs.contention import check_contention
from kteardown.inputs.counts import check_counts
from kteardown.inputs.fragments import fragments, located
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment, Sweep
from kteardown.model.plan import blocks_of, controls
from kteardown.model.point import EACH_CPU, points_of, weight_of
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Parameter, Workload

MOST_TRIALS = 500_000
"""The trials of a whole plan: each is an object in memory, and takes a guest time."""
MOST_CPUS = 255
MOST_NODES = 128
"""Of the machine that QEMU emulates. A kernel may be configured for fewer."""


def check_experiment(experiment: Experiment, workloads: Mapping[str, Workload], where: str) -> None:
    """Check the experiment against its workloads. Raises InputError that names ``where`` and the
    key."""
    names = [sweep.workload for sweep in experiment.workloads]
    check_counts(experiment, workloads, where)
    check_contention(experiment, workloads, where)
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{where}: workloads: workload {name!r} is listed twice",
                hint="list it once, and give its parameters several values.",
            )
    for sweep in experiment.workloads:
        _check_params(sweep.params, workloads[sweep.workload], where)
        _check_weights(sweep, workloads[sweep.workload], where)
    _check_size(experiment, workloads, where)
    _check_weighed_points(experiment, workloads, where)
    of_workloads = {name for workload in workloads.values() for name in workload.parameters}
    parameters = sorted({*of_workloads, *MACHINE_PARAMETERS})
    for name in experiment.quick.params:
        if name not in parameters:
            what = f"{where}: quick.params.{name}: no workload of the experiment has this parameter"
            raise InputError.unknown(what, name, parameters)
    laws = sorted({workload.law for workload in workloads.values() if workload.law})
    for name in experiment.predict:
        if name not in laws:
            raise InputError.unknown(
                f"{where}: predict.{name}: no workload has a growth law for this parameter",
                name,
                laws,
                if_none="remove it: no workload of the experiment has a growth law.",
            )
    try:
        located(fragments(experiment, workloads), experiment.folder)
    except InputError as error:
        raise InputError(f"{where}: config: {error.message}", hint=error.hint) from error


def _check_params(
    params: Mapping[str, tuple[ParamValue, ...]], workload: Workload, where: str
) -> None:
    for name, values in params.items():
        parameter = workload.parameters.get(name)
        if parameter is None:
            raise InputError.unknown(
                f"{where}: workload {workload.name!r} has no parameter {name!r}",
                name,
                workload.parameters,
                if_none="remove it: this workload has no parameters.",
            )
        if not values:
            raise InputError(
                f"{where}: {workload.name}.{name} has no value",
                hint="add a value, or remove the parameter to use its default value.",
            )
        check_values(values, parameter, f"{where}: {workload.name}.{name}")


def _check_weights(sweep: Sweep, workload: Workload, where: str) -> None:
    for name, weights in sweep.weights.items():
        parameter = workload.parameters.get(name)
        place = f"{where}: {workload.name}.weights.{name}"
        if parameter is None and name not in MACHINE_PARAMETERS:
            parameters = (*workload.parameters, *MACHINE_PARAMETERS)
            raise InputError.unknown(f"{place}: there is no such parameter", name, parameters)
        for text in weights:
            value: ParamValue = int(text) if re.fullmatch("[0-9]+", text) else text
            if parameter is not None:
                check_values([value], parameter, place)
            elif not isinstance(value, int):
                raise InputError(
                    f"{place}={text}: expected a number", hint='write it as in "2" = 0.5.'
                )


def _check_weighed_points(
    experiment: Experiment, workloads: Mapping[str, Workload], where: str
) -> None:
    sweeps = {sweep.workload: sweep for sweep in experiment.workloads}
    weights: dict[str, float] = dict.fromkeys(sweeps, 0.0)
    for point in points_of(experiment, workloads):
        weights[point.workload] += weight_of(sweeps[point.workload], point)
    for name, total in weights.items():
        if total == 0:
            raise InputError(
                f"{where}: {name}.weights: every point has the weight 0",
                hint="give at least one point a weight above 0, or remove the weights.",
            )


def _check_size(experiment: Experiment, workloads: Mapping[str, Workload], where: str) -> None:
    """Check the number of trials, computed without making a plan or a point."""
    machines = prod(map(len, experiment.machine.swept.values()))
    points = [prod(map(len, sweep.params.values())) for sweep in experiment.workloads]
    kernels = 1 + len(controls(experiment.design)) + len(experiment.variants)
    trials = blocks_of(experiment.design) * kernels * machines * sum(points)
    if trials > MOST_TRIALS:
        raise InputError(
            f"{where}: the plan has {trials:,} trials; the maximum is {MOST_TRIALS:,}",
            hint="choose fewer values (--set), seeds (--seeds) or boots (--boots).",
        )
    spec = experiment.machine
    memory_mb = spec.memory_mb or max(workload.memory_mb for workload in workloads.values())
    needed = max(workload.cpus for workload in workloads.values())
    for machine in spec.points():
        cpus, possible, nodes = (
            machine.get(name) or spec.largest(name)
            for name in ("cpus", "possible_cpus", "numa_nodes")
        )
        check_machine(cpus or needed, possible, nodes, memory_mb, f"{where}: ")


def check_machine(
    cpus: int, possible: int | None, nodes: int | None, memory_mb: int, where: str
) -> None:
    """Check that QEMU has such a guest; ``where`` begins the message. Raises InputError."""
    most = possible or cpus
    for name, value, limit, what in (
        ("cpus", cpus, MOST_CPUS, "CPUs that a guest can have"),
        ("possible_cpus", most, MOST_CPUS, "CPUs that a guest can have"),
        ("cpus", cpus, most, "possible CPUs"),
        ("numa_nodes", nodes or 1, most, "possible CPUs"),
        ("numa_nodes", nodes or 1, min(MOST_NODES, memory_mb), "NUMA nodes that QEMU can make"),
    ):
        if value > limit:
            raise InputError(
                f"{where}machine.{name} = {value} is more than {limit}, the number of {what}",
                hint=(
                    f"choose at most {limit}, or change possible_cpus: each NUMA node needs a "
                    "possible CPU."
                ),
            )


def check_values(values: Iterable[ParamValue], parameter: Parameter, where: str) -> None:
    """Check the values of a parameter. Raises InputError that names ``where`` and the wrong
    value."""
    for value in values:
        place = f"{where}={value}"
        if parameter.choices:
            if value not in parameter.choices:
                raise InputError(
                    f"{place}: must be one of {', '.join(parameter.choices)}",
                    hint="choose one of these values.",
                )
        elif value == EACH_CPU:
            continue
        elif not isinstance(value, int):
            raise InputError(
                f"{place}: must be an integer",
                hint=f"write a number without a unit, or {EACH_CPU} for as many as the guest has.",
            )
        elif not parameter.min <= value <= parameter.max:
            raise InputError(
                f"{place}: must be {parameter.min:,} to {parameter.max:,}",
                hint="choose a value in this range.",
            )
