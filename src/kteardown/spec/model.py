"""What an experiment, a workload and a series are. Read from TOML by ``spec.load``."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kteardown.machines.base import Arch
from kteardown.records.schema import ParamValue

Clock = Literal["instructions", "wall"]
Better = Literal["lower", "higher"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


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


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Model):
    """One parameter of a workload: an integer in a range, or a word out of ``choices``."""

    help: str
    default: ParamValue
    min: int = 0
    max: int = 2**31 - 1
    choices: tuple[str, ...] = ()
    programs: dict[str, tuple[str, ...]] = {}
    """By choice: what the guest must have beside the agent, out of ``kernels.programs``."""


class Metric(_Model):
    """One metric of a workload; its unit is what its name ends in."""

    help: str
    better: Better = "lower"
    unit: Literal["ns", "kb", "share", "count", "us", "per_s"] = "ns"
    headline: bool = False
    """Shown in the main table; the others are in result.json and the detail table."""
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = ()
    """Of a latency metric: percentiles of the samples of a boot, compared beside the median."""
    optional: bool = False
    """Only some kernels or settings can give it; where none does, that is not worth a word."""
    compare: bool = True
    """False for cross-checks, which are reported and never judged."""


class Histogram(_Model):
    """All values of a time, counted in buckets, beside the metrics that are made of them.

    Merged over all boots they are shown, and not compared: a boot is a replication, a value in it is none.
    """

    help: str
    unit: Literal["ns"] = "ns"
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = (50, 90, 99, 99.9)


class Workload(_Model):
    """``workloads/NAME.toml``: what the agent's ``workloads/NAME.c`` needs and reports."""

    name: Name
    summary: str
    config: tuple[str, ...] = ()
    """Fragments of ``kernels/fragments`` that the kernel must have."""
    silence_s: float = Field(gt=0)
    """Seconds without a record, on hardware, after which the guest is hung."""
    cpus: int = Field(default=1, ge=1)
    memory_mb: int = Field(default=256, ge=64)
    law: str = ""
    """The parameter over which a growth law is fitted."""
    profile_ns: int = Field(default=499_979, ge=10_000)
    """How often each CPU is sampled where a profile is asked for. A sample costs thousands of instructions:
    seldom distorts less. A prime number keeps out of step with the kernel's own timers."""
    parameters: dict[Name, Parameter] = {}
    metrics: dict[Name, Metric]
    histograms: dict[Name, Histogram] = {}
    invariants: dict[Name, str] = {}
    """What the agent checks while it measures, by name; a failed one voids the trial."""


class Sweep(_Model):
    """A workload of an experiment with the values that each parameter takes."""

    workload: Name
    params: dict[Name, tuple[ParamValue, ...]] = {}
    shuffle: bool = False
    """Run the points of a boot in a random order: only where they cannot touch each other."""


class Design(_Model):
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


class MachineSpec(_Model):
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


class Quick(_Model):
    """What ``--quick`` replaces: an honest answer of lower power in a few minutes."""

    seeds: int = Field(default=3, ge=1)
    boots: int = Field(default=4, ge=1)
    repetitions: int = Field(default=3, ge=1)
    params: dict[Name, tuple[ParamValue, ...]] = {}


class Experiment(_Model):
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
    predict: dict[Name, tuple[Annotated[int, Field(ge=1)], ...]] = {}
    """By parameter: where its growth laws are carried on to; twice the largest value where left out."""
    reference: Name | None = None
    """The file of ``reference/`` whose figures the report prints beside its own."""
    folder: str = ""
    """Where those of its workloads are that are not shipped, found when the experiment was loaded: in its
    ``workloads`` and ``agent/workloads``. Empty where all are shipped."""


class Series(_Model):
    """A patch series: the files in the order in which they apply."""

    name: Name
    patches: tuple[Path, ...]
