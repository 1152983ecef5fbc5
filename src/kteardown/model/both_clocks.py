"""The results of a run on both clocks, and how they relate."""

from typing import Literal, get_args

from kteardown.model.clock import Clock, value_unit
from kteardown.model.judged import Judged, Verdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better, Document, StrictModel

Reading = Literal["disagree", "exact only", "wall only", "agree", "undecided"]
READINGS: tuple[Reading, ...] = get_args(Reading)
"""In the order of reports: what a reader must not miss is first."""


class OneClock(StrictModel):
    """What one clock says about a comparison; the fields are those of ``Comparison``.

    ``value_unit`` is the unit of the values that were compared; empty in files that did not record
    it.
    """

    ratio: float | None
    ci: tuple[float, float] | None
    verdict: Verdict
    mde: float | None
    exact: bool
    reason: str
    value_unit: str = ""

    @classmethod
    def of(cls, c: Judged, clock: Clock) -> "OneClock":
        """Return the side of one comparison, or of the verdict of one metric, on ``clock``."""
        fields = {name: getattr(c, name) for name in cls.model_fields}
        return cls.model_validate({**fields, "value_unit": value_unit(c.unit, clock)})


class ClockReading(StrictModel):
    """A comparison on both clocks.

    A side is None if its clock has no such comparison. ``reading`` says how the two relate:
    ``agree`` (both better, both worse, both the same), ``exact only`` (the wall clock finds no
    change, though it could have seen one), ``wall only``, ``disagree`` (opposite directions) or
    ``undecided``. ``reason`` says why in a few words.
    """

    workload: str
    variant: str
    metric: str
    statistic: str
    unit: str
    better: Better
    point: dict[str, ParamValue]
    instructions: OneClock | None
    wall: OneClock | None
    reading: Reading
    reason: str


class ClockRate(StrictModel):
    """The wall nanoseconds of one instruction, fitted over the medians of a metric of all kernels
    and points.

    ``rate`` is the geometric mean; ``residual`` the typical relative deviation of a median from it
    (the standard deviation of the logarithms); ``low`` and ``high`` are the extremes of the
    ``medians``.
    """

    workload: str
    metric: str
    rate: float
    residual: float
    low: float
    high: float
    medians: int


class BothClocks(Document):
    """The JSON of a run on both clocks: every comparison read on both, and the whole result of each
    clock."""

    metrics: tuple[ClockReading, ...] = ()
    """The verdicts of headline metrics over all their points; a reading of these has an empty
    ``point``."""
    readings: tuple[ClockReading, ...]
    rates: tuple[ClockRate, ...]
    notes: tuple[str, ...]
    results: dict[Clock, Result]
    sentence: str = ""
    """Both clocks in one sentence; empty until it is written."""
