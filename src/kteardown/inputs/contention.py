"""The contention clock: which workloads it can count, the metrics that it has, and its design."""

from collections.abc import Mapping
from math import prod

from kteardown.errors import InputError
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import Experiment
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Metric, Workload
from kteardown.paths import shipped_table

_TABLE = shipped_table("inputs/contention")
METRICS = {key: Metric(**fields) for key, fields in _TABLE["metrics"].items()}
TRANSFER_TICKS: tuple[int, ...] = tuple(_TABLE["transfer_ticks"])
"""The costs of a moved line with which each point is measured: a verdict needs all of them."""
MOST_CPUS = 64
"""The plugin keeps the CPUs that have a line in 64 bits."""
_EACH = "{name}, for one {object}"


def designed(experiment: Experiment) -> Experiment:
    """Return ``experiment`` with the costs of a moved line, if its clock needs them."""
    machine = experiment.machine
    if experiment.design.clock != "contention" or machine.transfer_ticks:
        return experiment
    swept = machine.model_copy(update={"transfer_ticks": TRANSFER_TICKS})
    return experiment.model_copy(update={"machine": swept})


def object_of(workload: Workload) -> str:
    """Return what the figures of a workload are for one of, in words."""
    return workload.contention.object or workload.law or "repetition"


def objects_of(workload: Workload, params: Mapping[str, ParamValue]) -> int:
    """Return how many objects a repetition has at a point: at least 1."""
    factors = workload.contention.objects or ((workload.law,) if workload.law else ())
    values = [params.get(factor, 1) if isinstance(factor, str) else factor for factor in factors]
    return max(1, prod(value for value in values if isinstance(value, int)))


def with_contention(workload: Workload) -> Workload:
    """Return ``workload`` with the metrics of this clock in place of its own."""
    one = object_of(workload)
    metrics = {
        key: metric.model_copy(update={"name": _EACH.format(name=metric.name, object=one)})
        for key, metric in METRICS.items()
    }
    unused = (*workload.metrics, *workload.histograms)
    return workload.model_copy(update={"metrics": metrics, "histograms": {}, "unused": unused})


def check_contention(experiment: Experiment, workloads: Mapping[str, Workload], where: str) -> None:
    """Check that this clock, if the design has it, can count the experiment. Raises InputError."""
    design = experiment.design
    if design.clock != "contention":
        if experiment.machine.transfer_ticks:
            raise InputError(
                f"{where}: machine.transfer_ticks is only for the contention clock",
                hint="add --clock contention, or leave it out.",
            )
        return
    place = f"{where}: --clock contention"
    if experiment.machine.arch != DEFAULT_ARCH:
        raise InputError(
            f"{place}: guests are {experiment.machine.arch}, but only x86_64 is counted",
            hint="leave out --arch.",
        )
    for option, given in (("counts", design.counts), ("profile", design.profile)):
        if given:
            raise InputError(
                f"{place}: --{option} measures on another clock",
                hint=f"leave out --{option}, or choose --clock instructions.",
            )
    for name, workload in workloads.items():
        if workload.contention.refused:
            raise InputError(
                f"{place}: {name} cannot be counted: {workload.contention.refused}",
                hint="choose another workload, or --clock instructions.",
            )
    if (experiment.machine.largest("cpus") or 1) > MOST_CPUS:
        raise InputError(
            f"{place}: more than {MOST_CPUS} CPUs cannot be counted",
            hint=f"choose at most {MOST_CPUS} CPUs.",
        )
