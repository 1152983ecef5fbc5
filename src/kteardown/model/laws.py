"""How a metric grows with a parameter, and how its values are distributed."""

from typing import Literal

from pydantic import Field

from kteardown.model.judged import Outside, Valued, Verdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import FiniteModel

LawModel = Literal["constant", "linear", "nlogn", "quadratic", "power", "unknown"]


class Distribution(Valued):
    """All values of a metric of one kernel at one point, merged over its boots. It has no verdict.

    ``percentiles`` are by their percent, such as ``"99.9"``; ``error`` is their largest relative
    error.
    """

    kernel: str
    point: dict[str, ParamValue]
    n: int
    percentiles: dict[str, float]
    error: float


class Prediction(FiniteModel):
    """A growth law evaluated at ``at``, in the metric's unit, with its prediction interval.

    ``refused`` is the reason why there is no value, if the data does not support one; otherwise it
    is empty.
    """

    at: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refused: str = ""


class Law(Valued):
    """How a metric of one kernel grows with one parameter; the other parameters are fixed at
    ``point``.

    ``per_unit`` is the cost of one more, in the metric's unit (the slope of the straight line).
    ``exponent`` is that of the power law of the part that grows. None if it cannot be estimated.

    ``ratio`` is the slope of a variant divided by that of base, for headline metrics: the mean over
    boots of both, with Fieller's interval. ``verdict`` is None if the slopes are not compared.
    """

    kernel: str
    param: str
    model: LawModel
    per_unit: float | None
    per_unit_ci: tuple[float, float] | None
    intercept: float | None
    exponent: float | None
    exponent_ci: tuple[float, float] | None = None
    r2: float | None
    points: int
    point: dict[str, ParamValue] = Field(default={})
    predictions: tuple[Prediction, ...] = ()
    ratio: float | None = None
    ratio_ci: tuple[float, float] | None = None
    ratio_p: float | None = None
    verdict: Verdict | None = None
    reason: str = ""
    outside: Outside | None = None
