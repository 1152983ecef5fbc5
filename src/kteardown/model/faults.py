"""The ways in which a kernel failed, and the trials that cannot be used."""

from typing import Literal

from kteardown.model.record import Outcome, ProblemKind
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import FiniteModel

FaultKind = Literal[Outcome, ProblemKind, "invariant", "failed trial", "forged record"]
FaultStatus = Literal["broken", "suspected", "base too", "base"]


class VoidTrials(FiniteModel):
    """Trials that cannot be used, counted by kernel, workload and reason."""

    kernel: str
    workload: str
    point: dict[str, ParamValue]
    status: Literal["void", "failed", "missing", "disturbed"]
    detail: str
    count: int


def boot_failed(outcome: Outcome) -> str:
    """Return the ``detail`` of trials that are missing because their boot ended like this."""
    return f"boot: {outcome}"


class FaultPoint(FiniteModel):
    workload: str
    point: dict[str, ParamValue]


class Fault(FiniteModel):
    """A way in which a kernel failed: how boots ended, an invariant, or a problem that its log
    reports.

    ``status``: ``broken``, the kernel fails where base does not; ``suspected``, too few boots show
    it; ``base too``, base fails in the same way; ``base``, a fault of base itself. ``message`` is
    the line of the console or of the invariant. ``points`` are those of the trials that ran; empty
    if it was before the first trial. ``boots`` are the numbers of the boots with the fault, ``of``
    how many boots of the kernel ended; ``base_boots`` and ``base_of`` count those of base and its
    A/A twin. ``p`` is the one-sided p-value of Fisher's exact test of these counts, None where no
    test is needed. ``excerpt`` is the report of the kernel, or the end of the console, of the first
    of these boots.
    """

    kernel: str
    kind: FaultKind
    status: FaultStatus
    message: str
    points: tuple[FaultPoint, ...]
    boots: tuple[int, ...]
    of: int
    base_boots: int
    base_of: int
    p: float | None = None
    excerpt: tuple[str, ...] = ()
