"""Finds points for which two results publish two values: the same kernel, guest, workload and
parameters.

A result of the instruction clock repeats what it measures. If two results of the same agent differ
at one point by far more than each of them scatters, one has counted something else as well, and no
figure of that point can be believed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from claims import Claim, experiments_of, is_of_script
from kteardown.inputs.load import load_workload
from kteardown.model.experiment import Experiment
from kteardown.model.judged import Comparison
from kteardown.model.result import Result
from kteardown.model.workload import Workload

LEAST = 0.02
"""Values that differ by a smaller share are the same."""
SCATTERS = 5
"""Values differ if they are further apart than so many standard deviations of both together."""


class Value(NamedTuple):
    """A median that ``result`` publishes, and the standard deviation of the boots."""

    result: str
    median: float
    sd: float


def conflicts(published: Iterable[Claim]) -> list[str]:
    """One line for each point with two values, with the first two results that differ."""
    found: defaultdict[tuple[str, ...], list[Value]] = defaultdict(list)
    for claim in published:
        result = claim.results.get("instructions")
        # A script has no other parameters than its own, and no other result.
        if result is not None and claim.measured and not is_of_script(claim.spec.command):
            agent = claim.measured.ids.get("agent", "")
            (experiment,) = (
                e
                for e in experiments_of(claim.root, claim.spec.command)[0]
                if e.design.clock == "instructions"
            )
            for key, median, sd in values(result, experiment):
                found[agent, *key].append(Value(claim.name, median, sd))
    lines = []
    for (_agent, _image, _guest, workload, metric, point), seen in found.items():
        pair = next(
            ((a, b) for a in seen for b in seen if a.median < b.median and differ(a, b)), None
        )
        if pair:
            texts = " and ".join(f"{value.median:g} in results/{value.result}" for value in pair)
            lines.append(f"{workload} {metric} at {point}: {texts}")
    return sorted(set(lines))


def differ(one: Value, other: Value) -> bool:
    """Whether two values cannot be of the same thing."""
    distance = abs(one.median - other.median)
    return distance > max(
        LEAST * max(abs(one.median), abs(other.median)), SCATTERS * (one.sd + other.sd)
    )


def values(
    result: Result, experiment: Experiment
) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """The key, the median and the standard deviation of each value of a result, the same value
    once."""
    guest = experiment.machine.model_dump_json()
    workloads: dict[str, Workload] = {}
    seen: set[tuple[str, ...]] = set()
    for compared in result.comparisons:
        name = compared.workload
        workload = workloads.setdefault(name, load_workload(name))
        point = whole_point(compared, workload, experiment)
        for kernel, stats in (("base", compared.base), (compared.variant, compared.changed)):
            if kernel in result.kernels and (kernel, compared.metric, name, point) not in seen:
                seen.add((kernel, compared.metric, name, point))
                image = result.kernels[kernel].image_hash
                yield (image, guest, name, compared.metric, point), stats.median, stats.sd or 0


def whole_point(compared: Comparison, workload: Workload, experiment: Experiment) -> str:
    """A point with every parameter: what one result sweeps is the default of another, or set for
    all."""
    point = {name: parameter.default for name, parameter in workload.parameters.items()}
    for sweep in experiment.workloads:
        if sweep.workload == compared.workload:
            point |= {name: given[0] for name, given in sweep.params.items() if len(given) == 1}
    return " ".join(f"{name}={value}" for name, value in sorted((point | compared.point).items()))
