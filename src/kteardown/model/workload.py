"""What a workload is: its parameters, metrics and needs. Read from ``workloads/NAME.toml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kteardown.model.record import ParamValue

Better = Literal["lower", "higher"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class SpecModel(BaseModel):
    """Read-only, and strict: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(SpecModel):
    """One parameter of a workload: an integer in a range, or a word out of ``choices``."""

    help: str
    default: ParamValue
    min: int = 0
    max: int = 2**31 - 1
    choices: tuple[str, ...] = ()
    programs: dict[str, tuple[str, ...]] = {}
    """By choice: what the guest must have beside the agent, out of ``kernels.guest_programs``."""


class Metric(SpecModel):
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


class Histogram(SpecModel):
    """All values of a time, counted in buckets, beside the metrics that are made of them.

    Merged over all boots they are shown, and not compared: a boot is a replication, a value in it is none.
    """

    help: str
    unit: Literal["ns"] = "ns"
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = (50, 90, 99, 99.9)


class Workload(SpecModel):
    """``workloads/NAME.toml``: what the agent's ``workloads/NAME.c`` needs and reports."""

    name: Name
    summary: str
    config: tuple[str, ...] = ()
    """Fragments of ``kernels/fragments`` that the kernel must have beyond ``kernels/base.config``."""
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
