"""What a record is: one line of NDJSON, from the agent or from the lab.

The agent writes ``hello``, ``trial_start``, ``sample``, ``histogram``, ``check``, ``alive``,
``trial_end``, ``error`` and ``bye``; the lab adds ``boot_start`` and ``boot_end`` around them and
puts ``boot`` and ``attempt`` on every line. Raw samples are kept, nothing is averaged.

An attempt at a boot that did not reach its ``boot_end`` was cut short: the lab died. Its
completed trials, those with a ``trial_end``, are never lost:

- On the instruction clock (``acceleration`` "icount") a trial's figures depend on all that the
  guest did before it, so the next attempt runs the whole boot again. It gives the same records to the
  byte; where it does not, the result says so.
- In real time the next attempt runs only the trials that no cut attempt completed. The boot is then
  the sum of its parts: every trial comes whole from one guest.

An attempt that ended as ``infrastructure-error`` says nothing about the kernel; the next one starts as if
it had not been. Readers take, for every boot, the last attempt that ended, and with it the trials that
cut attempts before it completed and it did not begin.

Fields with a default of None or nothing came later than the first records, which do not have them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Outcome = Literal["ok", "panic", "hang", "oom", "agent-error", "infrastructure-error"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "panic", "hang", "oom", "agent-error", "infrastructure-error")
ParamValue = int | str
BASE = "base"
"""The name in the records of the kernel that the others are compared with."""
TWIN = "base-twin"
"""The same kernel once more: what differs between the two is noise."""
LAYOUT = "base-layout"
"""Base with a function that is never called: what differs is where the code lies."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    boot: int = -1
    attempt: int = 0


class BootStart(_Record):
    """The lab is about to boot ``kernel`` (``base``, ``base-twin`` or a variant)."""

    type: Literal["boot_start"] = "boot_start"
    kernel: str
    block: int
    seed: int
    acceleration: str
    host_load: float
    started_at: str
    """Host time, ISO 8601. Never part of a result."""
    session: int = 0
    """Which of the run's sessions (environment.json) booted it, from 0."""
    machine: dict[str, int] = {}
    """Which of the machines that the experiment sweeps, such as ``{"possible_cpus": 32}``."""


class BootEnd(_Record):
    """How the boot ended; ``duration_s`` and ``first_record_s`` are host seconds from its start."""

    type: Literal["boot_end"] = "boot_end"
    outcome: Outcome
    detail: str = ""
    duration_s: float
    first_record_s: float | None
    command: list[str]
    host_load: float
    peak_rss_kb: int | None = None
    """The most memory of the host that QEMU had at once; None where it was not seen."""


class Hello(_Record):
    """The guest as its kernel describes it, before the first trial.

    Counts are 0 where the kernel does not say. ``mitigations`` are those that the guest's kernel is
    vulnerable to or defends against; ``debug`` names what it announced when it booted and that costs time
    everywhere (``lockdep``, ``kasan``, ``init_on_alloc``).
    """

    type: Literal["hello"] = "hello"
    protocol: int
    release: str
    version: str
    machine: str
    cpus_online: int
    cpus_possible: int
    memory_kb: int
    cmdline: str
    clocksource: str = ""
    """When the agent began: on x86 often not yet that of the trials."""
    banner: str = ""
    """The kernel's whole version, compiler included."""
    cpu_model: str = ""
    hypervisor: str = ""
    """As the CPU calls it, such as ``KVMKVMKVM`` or ``TCGTCGTCGTCG``."""
    packages: int = 0
    cores: int = 0
    nodes: int = 0
    """NUMA nodes that are online."""
    page_size: int = 0
    mitigations: dict[str, str] = {}
    debug: tuple[str, ...] = ()


class Settled(_Record):
    """The guest's timers are as fine as they will get: what the trials are timed with."""

    type: Literal["settled"] = "settled"
    clocksource: str
    resolution_ns: int


class TrialStart(_Record):
    type: Literal["trial_start"] = "trial_start"
    trial: int
    workload: str
    params: dict[str, ParamValue]


class Sample(_Record):
    """One measured value of ``metric``, in the unit that its name ends in."""

    type: Literal["sample"] = "sample"
    trial: int
    repetition: int
    metric: str
    value: float | int
    warmup: bool = False


class Buckets(_Record):
    """All values of ``metric`` in a repetition, counted in buckets; several such lines of one add up.

    A bucket is its lowest value and how many there were. There are 2 ** ``bits`` of them for each power
    of two; values below 2 ** (``bits`` + 1) have each their own. ``analysis.estimate.histogram`` reads them.
    """

    type: Literal["histogram"] = "histogram"
    trial: int
    repetition: int
    metric: str
    bits: Annotated[int, Field(ge=1, le=32)]
    buckets: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]], ...]
    warmup: bool = False


class Check(_Record):
    """An invariant that the agent checked while it measured; a failed one voids the trial."""

    type: Literal["check"] = "check"
    trial: int
    repetition: int
    name: str
    ok: bool
    detail: str = ""


class TrialEnd(_Record):
    """``void``: an invariant failed, the samples must not be used. ``failed``: it could not run."""

    type: Literal["trial_end"] = "trial_end"
    trial: int
    status: Literal["ok", "void", "failed"]
    detail: str = ""
    at_s: float | None = None
    """Host seconds since this attempt started its machine, stamped by the lab. Never part of a result."""


class ProfileStretch(_Record):
    """One stretch was sampled: a repetition, or what the workload's profile is about in it.

    ``samples`` were taken every ``period_ns`` on each of ``cpus``; ``lost`` more found no room.
    """

    type: Literal["profile"] = "profile"
    trial: int
    repetition: int
    period_ns: int
    stretch_ns: int
    cpus: int
    samples: int
    lost: int


class Stack(_Record):
    """``count`` samples of a stretch with the same stack, ``outermost;...;innermost``.

    ``ns``: for how long they stand, each for the time since its CPU's sample before.
    """

    type: Literal["stack"] = "stack"
    trial: int
    repetition: int
    stack: str
    count: int
    ns: int


class AgentError(_Record):
    """The agent cannot go on: a bad plan, a missing file, a failed mount."""

    type: Literal["error"] = "error"
    detail: str


class Bye(_Record):
    """The agent ran its whole plan and powers off."""

    type: Literal["bye"] = "bye"
    trials: int


class Alive(_Record):
    """Slow, not hung: what the trial is doing now."""

    type: Literal["alive"] = "alive"
    trial: int
    detail: str = ""


Sampled = ProfileStretch | Stack
Measured = Sample | Buckets | Check
AgentRecord = Hello | Settled | TrialStart | Measured | Alive | Sampled | TrialEnd | AgentError | Bye
Record = Annotated[
    BootStart | BootEnd | AgentRecord,
    Field(discriminator="type"),
]
_adapter: TypeAdapter[Record] = TypeAdapter(Record)


def parse(raw: bytes | str) -> Record:
    """One line as a record. Raises ``pydantic.ValidationError`` (a ValueError) where it is none."""
    return _adapter.validate_json(raw)
