"""The model of a workload: its parameters, metrics and requirements, read from ``workloads/NAME.toml``."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kteardown.model.record import ParamValue

Better = Literal["lower", "higher"]
Unit = Literal["ns", "kb", "share", "count", "us", "per_s", "per_cycle"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class StrictModel(BaseModel):
    """Base class of read-only models in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Document(StrictModel, populate_by_name=True, alias_generator=lambda name: name.rstrip("_")):
    """Base class of models that are a JSON document: its key ``schema`` is the field ``schema_``."""

    schema_: int = 1


class Parameter(StrictModel):
    """One parameter of a workload: an integer in a range, or one of the words in ``choices``."""

    help: str
    default: ParamValue
    min: int = 0
    max: int = 2**31 - 1
    choices: tuple[str, ...] = ()
    programs: dict[str, tuple[str, ...]] = {}
    """By choice, the programs that the guest needs besides the agent, from ``kernels.prebuilt``."""


class Metric(StrictModel):
    """One metric of a workload; its unit is at the end of its key."""

    help: str
    name: str = ""
    """The name for people, such as ``freezing user space``; if it is empty, the key in words."""
    better: Better = "lower"
    unit: Unit = "ns"
    headline: bool = False
    """Shown in the main table; other metrics are in result.json and the table of other metrics."""
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = ()
    """Percentiles of the samples of a boot, for latency metrics, compared in addition to the median."""
    optional: bool = False
    """Only some kernels or settings can provide it; if none does, that is not reported."""
    compare: bool = True
    """False for cross-checks, which are reported but have no verdict."""


class HistogramSpec(StrictModel):
    """All values of a time, counted in buckets, in addition to the metrics that are computed from them.

    Values of all boots are merged and shown but not compared, because only a boot is a replication.
    """

    help: str
    unit: Literal["ns"] = "ns"
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = (50, 90, 99, 99.9)


class Workload(StrictModel):
    """``workloads/NAME.toml``: what a workload requires and reports.

    Its C files are ``agent/workloads/NAME/`` or ``agent/workloads/NAME.c``.
    """

    name: Name
    summary: str
    config: tuple[str, ...] = ()
    """Fragments of ``kernels/fragments`` that the kernel needs in addition to ``kernels/base.config``.

    A workload that is not shipped may name fragments of its own folder, too.
    """
    silence_s: float = Field(gt=0)
    """Seconds without a record, on hardware, after which the guest counts as hung."""
    cpus: int = Field(default=1, ge=1)
    memory_mb: int = Field(default=256, ge=64)
    law: str = ""
    """The parameter over which a growth law is fitted."""
    profile_ns: int = Field(default=499_979, ge=10_000)
    """The sampling period of each CPU in a profile.

    A sample costs thousands of instructions, so a longer period distorts less. A prime number avoids
    synchronization with the timers of the kernel.
    """
    parameters: dict[Name, Parameter] = {}
    metrics: dict[Name, Metric]
    histograms: dict[Name, HistogramSpec] = {}
    invariants: dict[Name, str] = {}
    """What the agent checks while it measures, by name; a failed one voids the trial."""
