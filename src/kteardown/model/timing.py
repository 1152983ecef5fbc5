"""How the time of a result was made."""

from typing import Literal

from kteardown.model.record import Placed
from kteardown.model.workload import StrictModel

Made = Literal["instruction clock", "kvm", "nested kvm", "mttcg", "metal", "metal guest"]
"""``nested kvm``: the host is itself a guest. ``mttcg``: emulated real time. ``metal``: exported
boots."""


class LostShares(StrictModel):
    """The shares of their time that the trials of one kernel lost to other work of the host.

    ``trials`` counts those whose loss was measured; a trial that was repeated counts each time.
    """

    kernel: str
    trials: int
    median: float
    most: float
    disturbed: int = 0
    """How often a trial was disturbed: it lost more than the limit."""
    void: int = 0
    """How many trials stayed disturbed after the last try."""
    kept: int = 0
    """How many trials were not disturbed in the end."""


class Timing(StrictModel):
    """How the time of a result was made. On the instruction clock only ``made`` is set.

    The processor and its settings are those of the host in the first session; None where unknown.
    ``mitigated`` and ``vulnerable`` count vulnerabilities of the processor. ``clocksource`` are
    those of the guests. ``load`` is that of the host at the start and at the end of boots: least,
    median, most. ``lost`` is empty if no trial recorded what it lost.
    """

    made: tuple[Made, ...]
    """More than one if a run was resumed on another host."""
    processor: str | None = None
    hypervisor: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    smt: str | None = None
    isolated: str | None = None
    mitigated: int | None = None
    vulnerable: int | None = None
    clocksource: tuple[str, ...] = ()
    load: tuple[float, float, float] | None = None
    placed: tuple[Placed, ...] = ()
    """Where guests ran under KVM; usually all of them at one place."""
    lost: tuple[LostShares, ...] = ()
    lost_limit: float | None = None
    """The share of its time above which a trial is disturbed; None: there was no limit."""
