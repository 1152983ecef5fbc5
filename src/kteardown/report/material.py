"""All that a report of a run is made of, as one value: what every format but the plain ones
takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kteardown.analysis.both_clocks import both_clocks
from kteardown.inputs.published import Posting
from kteardown.judge.answer import Answer, judge
from kteardown.model.both_clocks import BothClocks
from kteardown.model.clock import CLOCKS
from kteardown.model.plan import Plan
from kteardown.model.result import ByClock, Result
from kteardown.model.samples import Evidence
from kteardown.model.workload import Workload
from kteardown.rundir.snapshot import Snapshot


@dataclass(frozen=True)
class Material:
    """A result with everything that a report shows next to it. ``name``: the run's id."""

    name: str
    result: Result
    workloads: Mapping[str, Workload]
    reference: Posting | None = None
    evidence: Evidence = field(default_factory=Evidence)
    plan: Plan | None = None
    """What was to be measured, and on which guest; None where only the result is known."""
    version: str = ""
    """The version of kteardown that made the run; empty if it is not known."""

    @property
    def clocks(self) -> "tuple[Material, ...]":
        """Return the material of each clock that was measured: this one."""
        return (self,)

    @cached_property
    def answer(self) -> Answer:
        """Return what the run says, from which every format has its first lines."""
        return judge(self.result, self.workloads)

    @property
    def whole(self) -> ByClock:
        """Return the result, with all clocks that were measured."""
        return self.result


@dataclass(frozen=True)
class BothMaterial:
    """A run on both clocks: the material of each, and each comparison on both. ``name``: the run's
    id."""

    name: str
    clocks: tuple[Material, Material]
    """Of the instruction clock, and of the wall clock."""
    both: BothClocks

    @cached_property
    def answer(self) -> Answer:
        """Return what the run says on both clocks together."""
        return judge(self.both, self.workloads)

    @property
    def whole(self) -> ByClock:
        """Return the result, with all clocks that were measured."""
        return self.both

    @property
    def result(self) -> Result:
        """Return the result of one clock: the question and the command are the same on both."""
        return self.clocks[0].result

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """Return the workloads, which are the same on both clocks."""
        return self.clocks[0].workloads


Measured = Material | BothMaterial
"""What every format takes: a run on one clock, or on both."""


def side_by_side(name: str, instructions: Material, wall: Material) -> BothMaterial:
    """Return the material of a run on both clocks.

    A variant that is broken on one clock is broken: the material of the other clock has its faults
    too, so that nothing is claimed of it there.
    """
    both = both_clocks(instructions.result, wall.result)
    clocks = _with_faults_of(instructions, wall), _with_faults_of(wall, instructions)
    return BothMaterial(name, clocks, both)


def _with_faults_of(material: Material, other: Material) -> Material:
    clock = CLOCKS[other.result.clock]
    added = tuple(
        fault.model_copy(update={"message": f"on {clock}: {fault.message}"})
        for fault in other.result.faults
        if fault.status == "broken"
    )
    return replace(
        material,
        result=material.result.model_copy(update={"faults": (*material.result.faults, *added)}),
    )


def material_of(snapshot: Snapshot, result: Result) -> Material:
    """A result with every sample of its run; nothing is written. Raises InputError."""
    # Imported here: numpy and scipy take longer to import than a text report takes to make.
    from kteardown.analysis.evidence import gather

    run = snapshot.run
    at = result.stopping.stopped_at if result.stopping else None
    variants = [name for name in result.kernels if result.is_asked_for(name)]
    samples = gather(
        snapshot.experiment,
        snapshot.workloads,
        snapshot.plan.points,
        snapshot.boots,
        run.profile.boots(),
        variants,
        blocks=at,
    )
    return replace(of_snapshot(snapshot, result), evidence=samples)


def of_snapshot(snapshot: Snapshot, result: Result) -> Material:
    """A result with all of its run but the samples."""
    return Material(
        snapshot.run.name,
        result,
        snapshot.workloads,
        snapshot.published,
        plan=snapshot.plan,
        version=snapshot.version,
    )
