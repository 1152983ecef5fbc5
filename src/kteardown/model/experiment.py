"""What an experiment and a series are. Read from ``experiments/NAME.toml``."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from kteardown.model.arch import Arch
from kteardown.model.record import ParamValue
from kteardown.model.workload import Name, SpecModel

Clock = Literal["instructions", "wall"]


def _one_or_several(value: object) -> object:
    """Checked as a whole: of a union, pydantic would tell what is wrong by each of its members."""
    several = value if isinstance(value, list | tuple) else [value]
    if value is not None and not (several and all(type(one) is int and one > 0 for one in several)):
        raise ValueError("expected a number above 0, or a list of such")
    return value


Counts = Annotated[int | tuple[int, ...] | None, BeforeValidator(_one_or_several)]
UNTIL = r"^(|verdict|ci=[0-9.]+%)$"


MACHINE_PARAMETERS = ("cpus", "possible_cpus", "numa_nodes")
"""What of a guest can be swept like a parameter of a workload."""


class Sweep(SpecModel):
    """A workload of an experiment with the values that each parameter takes."""

    workload: Name
    params: dict[Name, tuple[ParamValue, ...]] = Field(default={})
    shuffle: bool = False
    """Run the points of a boot in a random order: only where they cannot touch each other."""


class Design(SpecModel):
    """How often and in which order: the part that makes it evidence."""

    clock: Clock = "instructions"
    seeds: int = Field(default=5, ge=1)
    """Boots of each kernel on the instruction clock, one a seed."""
    boots: int = Field(default=10, ge=1)
    """Boots of each kernel (and of the A/A twin) on the wall clock."""
    repetitions: int = Field(default=5, ge=1)
    """Measured executions at one point inside one boot."""
    warmup: int = Field(default=1, ge=0)
    """Executions before them that are recorded, marked and not analysed."""
    seed: int = 1
    """What every random choice of the plan is drawn from."""
    profile: bool = False
    """Beside what is measured, sample where the time goes, in boots of their own."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    same_within: float = Field(default=0.02, gt=0)
    """The margin of the verdict "same": 0.02 is two percent."""
    until: Annotated[str, Field(pattern=UNTIL)] = ""
    """Stop when sure: ``verdict`` or ``ci=2%``; ``boots`` (or ``seeds``) is then the most that is spent."""
    budget_s: float | None = Field(default=None, gt=0)
    """With ``until``: no further look is taken that would need more seconds of measuring than this."""
    layout_twin: bool = False
    """Boot the layout twin in every block, not only where a claim below ten percent needs it (wall clock)."""


class MachineSpec(SpecModel):
    """The guest. ``cpus``, ``possible_cpus`` and ``numa_nodes`` may each be a list.

    Every value of a list gets boots of its own, and every point has it as a parameter.
    """

    arch: Arch = "x86_64"
    cpus: Counts = None
    """None: what the workloads ask for."""
    memory_mb: int | None = Field(default=None, ge=64)
    possible_cpus: Counts = None
    """CPUs that the kernel provides for, of which only ``cpus`` come up; None: those."""
    numa_nodes: Counts = None
    """Nodes among which the memory and all CPUs are divided; None: no NUMA."""
    kernel_args: tuple[str, ...] = ()

    @property
    def swept(self) -> dict[str, tuple[int, ...]]:
        """The values of those that are lists."""
        fields = {name: getattr(self, name) for name in MACHINE_PARAMETERS}
        return {name: value for name, value in fields.items() if isinstance(value, tuple)}

    def points(self) -> list[dict[str, int]]:
        """Every machine of the product of the lists; one without a word where there is none."""
        names, values = list(self.swept), self.swept.values()
        return [dict(zip(names, point, strict=True)) for point in product(*values)]

    def largest(self, name: str) -> int | None:
        """The largest value of ``cpus``, ``possible_cpus`` or ``numa_nodes``."""
        value: int | tuple[int, ...] | None = getattr(self, name)
        return max(value) if isinstance(value, tuple) else value


class Quick(SpecModel):
    """What ``--quick`` replaces: an honest answer of lower power in a few minutes."""

    seeds: int = Field(default=3, ge=1)
    boots: int = Field(default=4, ge=1)
    repetitions: int = Field(default=3, ge=1)
    params: dict[Name, tuple[ParamValue, ...]] = Field(default={})


class Experiment(SpecModel):
    """``experiments/NAME.toml``, complete: what a run directory keeps as its spec."""

    name: Name
    question: str
    source: str
    """The base kernel: ``debian:6.12``, ``git:PATH@REV``, ``tar:FILE`` or ``image:FILE``."""
    variants: tuple[str, ...] = ()
    """Each a series, a part of one (``NAME@2`` the first two patches, ``NAME@-2`` all but the second),
    or a second source."""
    workloads: tuple[Sweep, ...] = Field(min_length=1)
    config: tuple[str, ...] = ()
    """Fragments wanted beyond those of the workloads."""
    design: Design = Design()
    machine: MachineSpec = MachineSpec()
    quick: Quick = Quick()
    predict: dict[Name, tuple[Annotated[int, Field(ge=1)], ...]] = Field(default={})
    """By parameter: where its growth laws are carried on to; twice the largest value where left out."""
    reference: Name | None = None
    """The file of ``reference/`` whose figures the report prints beside its own."""
    folder: str = ""
    """Where those of its workloads are that are not shipped, found when the experiment was loaded: in its
    ``workloads`` and ``agent/workloads``. Empty where all are shipped."""


class Series(SpecModel):
    """A patch series: the files in the order in which they apply."""

    name: Name
    patches: tuple[Path, ...]
