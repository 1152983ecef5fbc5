"""What a plan is: every boot of a run in its order, with its trials."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kteardown.model.experiment import Design
from kteardown.model.point import Point
from kteardown.model.record import LAYOUT, TWIN, ParamValue


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedTrial(_Planned):
    """One trial: a workload at one point, with all its repetitions."""

    index: int
    workload: str
    params: dict[str, ParamValue]
    warmup: int
    repetitions: int
    profile_ns: int = 0
    """The period at which its measured executions are sampled; 0: they are not."""


class PlannedBoot(_Planned):
    """One boot of one kernel; ``kernel`` is ``base``, one of its twins or a variant."""

    index: int
    block: int
    kernel: str
    seed: int
    trials: tuple[PlannedTrial, ...]
    machine: dict[str, int] = {}
    """Which of the machines that the experiment sweeps; empty where it sweeps none."""


class Plan(_Planned):
    """Every boot in its order."""

    boots: tuple[PlannedBoot, ...]
    points: tuple[Point, ...] = ()
    """Every point that is measured, in the order of the report."""
    cpus: int
    """The most, where they are swept; so with the next two."""
    memory_mb: int
    silence_s: float
    """Of the most patient workload, for hardware; the runner scales it to the acceleration."""
    possible_cpus: int | None = None
    numa_nodes: int | None = None


def blocks_of(design: Design) -> int:
    """How many blocks the design has, at most; blocks with higher numbers were added for the layout twin."""
    return design.seeds if design.clock == "instructions" else design.boots


def controls(design: Design) -> tuple[str, ...]:
    """The kernels that are base under another name, or nearly, in every block."""
    if design.clock == "instructions":
        return ()
    return (TWIN, LAYOUT) if design.layout_twin else (TWIN,)
