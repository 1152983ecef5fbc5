"""The model of what ``kteardown selftest`` found, which a user can send."""

from typing import Any

from kteardown.model.result import ClockReading, Timing
from kteardown.model.workload import StrictModel


class Noise(StrictModel):
    """What base compared with itself shows on the wall clock: the A/A interval, and what could be found."""

    workload: str
    metric: str
    point: dict[str, int | str]
    null_ci: tuple[float, float] | None
    mde: float | None


class HostCheck(StrictModel):
    """A check of the host for the wall clock: what it found, and what it costs if it is not ok."""

    name: str
    ok: bool
    state: str
    cost: str = ""
    command: str = ""
    """What changes it; empty if it cannot be changed by a command."""


class CannotShow(StrictModel):
    """Something that this host cannot show, why, and the command that shows it on a host that can."""

    what: str
    why: str
    command: str


class SelfTest(StrictModel):
    """Everything that ``kteardown selftest`` found. ``run`` is empty without a comparison."""

    kteardown: str
    machine: dict[str, Any]
    acceleration: str
    probe: str
    """Why KVM is not used; empty if it is."""
    probe_s: float
    checks: tuple[HostCheck, ...]
    cannot_show: tuple[CannotShow, ...]
    run: str = ""
    timing: Timing | None = None
    noise: tuple[Noise, ...] = ()
    readings: tuple[ClockReading, ...] = ()

    @property
    def disagreements(self) -> tuple[ClockReading, ...]:
        """Return the comparisons in which the clocks have opposite verdicts."""
        return tuple(reading for reading in self.readings if reading.reading == "disagree")
