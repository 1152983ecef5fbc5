"""At which points a workload is counted: small ones, which together reach all that its parameters turn on."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from kteardown.inputs.load import experiment_names, load_experiment, load_workload, workload_names
from kteardown.model.experiment import Sweep
from kteardown.model.record import ParamValue
from kteardown.model.workload import Parameter, Workload

_REDUCED = 10
_SHORT: Mapping[str, int] = tomllib.loads(
    files("kteardown.coverage").joinpath("points.toml").read_text(encoding="utf-8")
)


def points_of(workload: Workload) -> list[dict[str, ParamValue]]:
    """Return the points at which ``workload`` is counted, the first with all defaults but for its size.

    Each other point differs from it in one parameter: in every other of its choices, or, where 0 means
    without, in the smallest other value that a shipped experiment uses.
    """
    plain = {name: _small(name, parameter, workload) for name, parameter in workload.parameters.items()}
    points = [plain]
    for name, parameter in workload.parameters.items():
        # A parameter whose default is "all" selects parts of what is executed with the default.
        others = parameter.choices if parameter.default != "all" else ()
        points += [{**plain, name: choice} for choice in others if choice != parameter.default]
    known = workload.parameters
    for name in (name for name, parameter in known.items() if parameter.default == 0):
        values = {v for s in _sweeps() if s.workload == workload.name for v in s.params.get(name, ())}
        used = [value for value in values if isinstance(value, int) and value]
        points += [{**plain, name: min(used)}] if used else []
    # Without those that need a program in the guest.
    return [p for p in points if not any(known[name].programs.get(str(value)) for name, value in p.items())]


def two_sizes(workload: Workload, point: Mapping[str, ParamValue]) -> list[dict[str, ParamValue]]:
    """Return ``point`` at two sizes of the parameter of the growth law; without one, only ``point``."""
    law = workload.law
    size = point.get(law)
    if not law or not isinstance(size, int):
        return [dict(point)]
    larger = min(max(2 * size, 2), workload.parameters[law].max)
    return [{**point, law: size}, {**point, law: larger}]


def stress_tests() -> frozenset[str]:
    """Return the shipped workloads that have invariants and no headline metric."""
    workloads = map(load_workload, workload_names())
    return frozenset(
        one.name for one in workloads if not any(metric.headline for metric in one.metrics.values())
    )


def words(params: Mapping[str, ParamValue], workload: Workload) -> str:
    """Return the parameters in which a point differs from the first one; ``-`` if in none."""
    plain = points_of(workload)[0]
    return " ".join(f"{name}={value}" for name, value in params.items() if plain.get(name) != value) or "-"


def _small(name: str, parameter: Parameter, workload: Workload) -> ParamValue:
    default = parameter.default
    if not isinstance(default, int):
        return default
    if name == workload.law:
        default = default // _REDUCED
    return max(parameter.min, min(default, _SHORT.get(name, default)))


@lru_cache
def _sweeps() -> tuple[Sweep, ...]:
    """Return how the shipped experiments use workloads."""
    return tuple(sweep for name in experiment_names() for sweep in load_experiment(name).workloads)
