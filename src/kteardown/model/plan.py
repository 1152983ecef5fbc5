"""The model of a plan: every boot of a run in order, with its trials."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field

from kteardown.model.experiment import Design
from kteardown.model.point import Point
from kteardown.model.record import LAYOUT, TWIN
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import ModuleAlias, StrictModel, Workload


class PlannedTrial(StrictModel):
    """One trial: a workload at one point, with all its repetitions."""

    index: int
    workload: str
    params: dict[str, ParamValue]
    warmup: int
    repetitions: int
    profile_ns: int = 0
    """The sampling period of its measured executions; 0 if they are not sampled."""
    script: dict[str, str] | None = None
    """Of a script: where the values of each metric are read (``Metric.read``), by key; None: it is
    none."""


def script_of(workload: Workload) -> dict[str, str] | None:
    if workload.script is None:
        return None
    return {key: metric.read for key, metric in workload.metrics.items() if metric.read}


def modules_of(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Return the modules that scripts ask for."""
    scripts = (workload.script for workload in workloads)
    return tuple(dict.fromkeys(word for script in scripts if script for word in script.modules))


class PlannedBoot(StrictModel):
    """One boot of one kernel; ``kernel`` is ``base``, one of its twins or a variant."""

    index: int
    block: int
    kernel: str
    seed: int
    trials: tuple[PlannedTrial, ...]
    modules: tuple[ModuleAlias, ...] = ()
    """Modules that a prebuilt kernel loads in this boot besides those that every boot needs; of a
    script, names and aliases, which the guest loads as modprobe does."""
    machine: dict[str, int] = Field(default={})
    """The values of the machine parameters that the experiment sweeps; empty if it sweeps none."""

    @property
    def place(self) -> tuple[object, ...]:
        """Block, kernel and machine, and the point of a script, which has a boot of its own.

        Only boots with the rest of a boot that failed have the same.
        """
        script = [
            tuple(sorted(trial.params.items())) for trial in self.trials if trial.script is not None
        ]
        return self.block, self.kernel, tuple(sorted(self.machine.items())), *script


class Plan(StrictModel):
    boots: tuple[PlannedBoot, ...]
    points: tuple[Point, ...] = ()
    """Every point that is measured, in the order of the report."""
    cpus: int
    """The largest value if it is swept, as for the next two fields."""
    memory_mb: int
    silence_s: float
    """The longest of all workloads, for hardware; the runner scales it to the acceleration."""
    possible_cpus: int | None = None
    numa_nodes: int | None = None
    independent: bool = False
    """Whether each boot is about something else, so that failed boots say nothing about the next
    one."""


def rests(plan: Plan) -> frozenset[int]:
    """Return the indices of the boots that have the trials that an earlier boot of ``plan`` did not
    reach."""
    places: set[object] = set()
    indices: set[int] = set()
    for boot in plan.boots:
        if boot.place in places:
            indices.add(boot.index)
        places.add(boot.place)
    return frozenset(indices)


def blocks_of(design: Design) -> int:
    """Return the maximum number of blocks; blocks with higher numbers were added for the layout
    twin."""
    return design.boots if design.clock == "wall" else design.seeds


def controls(design: Design) -> tuple[str, ...]:
    """Return the twins of base that are booted in every block."""
    if design.clock != "wall":
        return ()
    return (TWIN, LAYOUT) if design.layout_twin else (TWIN,)


@dataclass(frozen=True)
class Spread:
    """Standard deviations over boots of the log ratio, of a metric and of one point, in an earlier
    run."""

    metric: float
    point: float
    run: str


@dataclass(frozen=True)
class Decidable:
    """The smallest change of a metric, and of one of its points, that is found with 80% power.

    As relative increases: 0.1 is +10%; a decrease is found from 1 / 1.1 on. None if nothing can be
    found. ``metric_name`` is empty for the metrics whose spread is not known; ``run`` then too.
    """

    workload: str
    metric_name: str
    points: int
    spread: float
    metric: float | None
    point: float | None
    run: str


@dataclass(frozen=True)
class DesignPower:
    """What a design can decide: ``tests`` headline metrics times variants, from ``boots`` pairs of
    boots."""

    tests: int
    boots: int
    rows: tuple[Decidable, ...]
