"""The models of an experiment and a series, read from ``experiments/NAME.toml``."""

from itertools import product
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.model.clock import Clock
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Name, ParameterName, StrictModel


def _one_or_several(value: object) -> object:
    """Check the value as a whole; for a union pydantic would report an error for each member."""
    several = value if isinstance(value, list | tuple) else [value]
    if value is not None and not (
        several and all(type(count) is int and count > 0 for count in several)
    ):
        raise ValueError("expected a number above 0, or a list of such")
    return value


Counts = Annotated[int | tuple[int, ...] | None, BeforeValidator(_one_or_several)]
SYMBOL = r"CONFIG_\w+=\S+"
"""A fragment that is one symbol, and not the name of a file; with ? at its end, it may be
refused."""
UNTIL = r"^(|verdict|ci=[0-9.]+%|(margin|step)=[\w.%=,-]+)$"


PREBUILT = ("image", "debian-image")
"""The kinds of sources that are finished kernels."""
MACHINE_PARAMETERS = ("cpus", "possible_cpus", "numa_nodes", "transfer_ticks")
"""The properties of a guest that can be swept like a parameter of a workload."""


class Sweep(StrictModel):
    """A workload of an experiment with the values of each parameter."""

    workload: Name
    params: dict[ParameterName, tuple[ParamValue, ...]] = Field(default={})
    metrics: tuple[Name, ...] = ()
    """The headline metrics; empty: those that the workload marks."""
    shuffle: bool = False
    """Run the points of a boot in random order. Use this only if the points cannot influence each
    other."""
    weights: dict[ParameterName, dict[str, Annotated[float, Field(ge=0, lt=1e6)]]] = Field(
        default={}
    )
    """By parameter and value, the weight of a point in the verdict of a metric; 1 if it is not
    given.

    The weight of a point is the product over its parameters.
    """


class Design(StrictModel):
    """The number and order of boots and repetitions, which make the figures evidence."""

    clock: Clock = "instructions"
    seeds: int = Field(default=5, ge=1)
    """Boots of each kernel on the instruction or contention clock, one for each seed."""
    boots: int = Field(default=10, ge=1)
    """Boots of each kernel (and of the A/A twin) on the wall clock."""
    repetitions: int = Field(default=5, ge=1)
    """Measured executions at one point inside one boot."""
    warmup: int = Field(default=1, ge=0)
    """Executions before the measured ones, which are recorded and marked but not analysed."""
    seed: int = 1
    """The seed of every random choice of the plan."""
    profile: bool = False
    """Also sample where the time goes, in separate boots."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    same_within: float = Field(default=0.02, gt=0, lt=1)
    """The margin of the verdict "same": 0.02 is two percent."""
    until: Annotated[str, Field(pattern=UNTIL)] = ""
    """Stop when ``verdict``, ``ci=2%`` or ``margin=2%`` is certain; ``boots`` (``seeds``) is a
    maximum."""
    budget_s: float | None = Field(default=None, gt=0)
    """With ``until``: take no further look that would need more seconds of measuring than this."""
    lost_limit: float | None = Field(default=None, gt=0, le=1)
    """On the wall clock: the share of its time above which a trial that lost it is void and
    repeated.

    None: the default for the acceleration; 1: no trial is void for that.
    """
    layout_twin: bool = False
    """Boot the layout twin in every block, even without a claim below ten percent (wall clock)."""
    counts: bool = False
    """Also count events of the processor in each stretch that a workload marks
    (``inputs.load``)."""


class MachineSpec(StrictModel):
    """The guest. Its CPUs and nodes may be lists: each value has its own boots, and is a
    parameter."""

    arch: Arch = DEFAULT_ARCH
    cpus: Counts = None
    """None: the number that the workloads require."""
    memory_mb: int | None = Field(default=None, ge=64)
    possible_cpus: Counts = None
    """The CPUs that the kernel provides for, of which only ``cpus`` are online; None: as many as
    ``cpus``."""
    numa_nodes: Counts = None
    """The nodes among which the memory and all CPUs are divided; None: no NUMA."""
    transfer_ticks: Counts = None
    """On the contention clock: what it costs to move a cache line, in ticks of an instruction."""
    kernel_args: tuple[Annotated[str, Field(pattern="^[!-~]([ -~]*[!-~])?$")], ...] = ()

    @property
    def swept(self) -> dict[str, tuple[int, ...]]:
        fields = {name: getattr(self, name) for name in MACHINE_PARAMETERS}
        return {name: value for name, value in fields.items() if isinstance(value, tuple)}

    def points(self) -> list[dict[str, int]]:
        """Return every combination of the lists; without lists, one machine with no parameters."""
        names = list(self.swept)
        values = self.swept.values()
        return [dict(zip(names, point, strict=True)) for point in product(*values)]

    def largest(self, name: str) -> int | None:
        value: int | tuple[int, ...] | None = getattr(self, name)
        return max(value) if isinstance(value, tuple) else value


class Quick(StrictModel):
    """The values that ``--quick`` replaces, for a result of lower power in a few minutes."""

    seeds: int = Field(default=3, ge=1)
    boots: int = Field(default=4, ge=1)
    repetitions: int = Field(default=3, ge=1)
    params: dict[ParameterName, tuple[ParamValue, ...]] = Field(default={})


class Experiment(StrictModel):
    """A complete ``experiments/NAME.toml``, which a run directory stores as its specification."""

    name: Name
    question: str
    source: str
    """Base: ``debian:6.12``, ``git:PATH@REV``, ``tar:FILE``, ``image:FILE`` or
    ``debian-image:6.12``."""
    compiler: str = ""
    """For kernels that are built: ``gcc-14``, ``clang-19`` or a path; empty: the default of this
    host."""
    variants: tuple[str, ...] = ()
    """Each is a series, a part of one, a second source, or a series on a second source.

    ``NAME@2`` is the first two patches of a series, ``NAME@-2`` all but the second, ``NAME on
    debian:7.3`` the series on another source.
    """
    workloads: tuple[Sweep, ...] = Field(min_length=1)
    config: tuple[str, ...] = ()
    """Fragments that are needed in addition to those of the workloads: names, symbols, or paths of
    files."""
    design: Design = Design()
    machine: MachineSpec = MachineSpec()
    quick: Quick = Quick()
    predict: dict[ParameterName, tuple[Annotated[int, Field(ge=1)], ...]] = Field(default={})
    """By parameter, where growth laws are evaluated; by default at twice the largest measured
    value."""
    reference: Name | None = None
    """The file in ``postings/`` whose published figures the report shows next to its own."""
    folder: str = ""
    """The folder of workloads and fragments that are not shipped, set when the experiment is
    loaded.

    They are in its ``workloads``, ``agent/workloads`` and ``kernels/fragments``. Empty if all are
    shipped.
    """


class Series(StrictModel):
    """A patch series: its files in the order in which they apply."""

    name: Name
    patches: tuple[Path, ...]
