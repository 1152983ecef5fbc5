"""What a record is: one line of NDJSON, from the agent or from the lab.

The agent writes ``hello``, ``trial_start``, ``sample``, ``check``, ``alive``,
``trial_end``, ``error`` and ``bye``; the lab adds ``boot_start`` and ``boot_end`` around them and
puts ``boot`` and ``attempt`` on every line. Raw samples are kept, nothing is averaged.
A boot that did not reach its ``boot_end`` (the lab died) is run again as the next
attempt; readers take the last attempt that has one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Outcome = Literal["ok", "panic", "hang", "oom", "agent-error", "infrastructure-error"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "panic", "hang", "oom", "agent-error", "infrastructure-error")
ParamValue = int | str


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


class BootEnd(_Record):
    """How the boot ended; ``duration_s`` and ``first_record_s`` are host seconds."""

    type: Literal["boot_end"] = "boot_end"
    outcome: Outcome
    detail: str = ""
    duration_s: float
    first_record_s: float | None
    command: list[str]
    host_load: float


class Hello(_Record):
    """The guest as the agent finds it, before the first trial."""

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


AgentRecord = Hello | TrialStart | Sample | Check | Alive | TrialEnd | AgentError | Bye
Record = Annotated[
    BootStart | BootEnd | Hello | TrialStart | Sample | Check | Alive | TrialEnd | AgentError | Bye,
    Field(discriminator="type"),
]
_adapter: TypeAdapter[Record] = TypeAdapter(Record)


def parse(raw: bytes | str) -> Record:
    """One line as a record. Raises ``pydantic.ValidationError`` (a ValueError) where it is none."""
    return _adapter.validate_json(raw)
