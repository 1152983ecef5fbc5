"""What a profile says: the models behind ``profiles`` of result.json."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kteardown.model.record import ParamValue


class _Profiled(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProfiledStretch(_Profiled):
    """What was sampled of one kernel at one point: ``stretches`` repetitions of ``boots`` boots.

    ``stretch_ns`` is the mean length of one, sampling included. ``busy_ns`` is the time of all CPUs in
    one, ``idle_share`` the share of time in which they had nothing to run. ``lost`` samples found no room.
    """

    kernel: str
    point: dict[str, ParamValue]
    boots: int
    stretches: int
    stretch_ns: float
    busy_ns: float
    idle_share: float
    period_ns: int
    cpus: int
    samples: int
    lost: int


class FunctionCost(_Profiled):
    """What one function takes on one kernel at the largest point.

    ``self_share`` is its part of the busy time, ``all_share`` that of it and all that it calls,
    ``smallest_share`` its part at the smallest point; ``self_ns`` the time in it for one object of the
    workload (for one stretch, where the workload counts none). ``no_interrupts`` is the part of that in
    which its CPU took no interrupt for a period and a half and more.
    ``exponent`` tells how the time of the whole stretch grows with the number of objects: 1 is in
    proportion; None where it was not seen at two points. ``difference_ns`` is against base. Intervals
    are at the profile's confidence. ``grows`` and ``differs`` stand where the samples carry the claim,
    as ``Profile`` says.
    """

    kernel: str
    self_share: float
    all_share: float
    smallest_share: float
    self_ns: float
    self_ci: tuple[float, float]
    no_interrupts: float
    samples: int
    exponent: float | None = None
    exponent_ci: tuple[float, float] | None = None
    grows: bool = False
    difference_ns: float | None = None
    difference_ci: tuple[float, float] | None = None
    differs: bool = False


class ProfiledFunction(_Profiled):
    """One function with its costs, a kernel each. ``callers``: on base, or where base never was in it, the
    functions through which most of its time was reached, the nearest first, while one has most of it."""

    function: str
    callers: tuple[str, ...]
    costs: tuple[FunctionCost, ...]


class Profile(_Profiled):
    """Where the time of one workload goes, over the values of ``param``.

    ``functions`` are those with a share of at least ``least_share`` on some kernel, and those that grow
    or differ; the most time first. A function ``grows`` where its exponent is above 1 + ``margin`` with the
    chance of naming any function of the profile wrongly below 1 - ``confidence`` (Bonferroni);
    it ``differs`` where its difference is not zero in the same sense and at least ``least_share``
    of base's time.
    """

    workload: str
    param: str
    rest: dict[str, ParamValue]
    """The other parameters of the points, those that the experiment chose."""
    confidence: float
    least_share: float
    margin: float
    stretches: tuple[ProfiledStretch, ...]
    """By kernel, the smallest point first."""
    functions: tuple[ProfiledFunction, ...]
