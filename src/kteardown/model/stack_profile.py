"""Where the time of a workload goes, by sampled stacks."""

from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import StrictModel


class ProfiledStretch(StrictModel):
    """The samples of one kernel at one point: ``stretches`` repetitions in ``boots`` boots.

    ``stretch_ns`` is the mean length of one stretch, sampling included. ``busy_ns`` is the busy
    time of all CPUs in one stretch; ``idle_share`` is the share of time in which they were idle.
    ``lost`` counts samples that did not fit into the buffer.
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


class FunctionCost(StrictModel):
    """The cost of one function on one kernel at the largest point.

    ``self_share`` is its share of the busy time, ``all_share`` includes its callees, and
    ``smallest_share`` is its share at the smallest point. ``self_ns`` is the time in it for one
    object of the workload, or for one stretch if the workload has no such parameter.
    ``no_interrupts`` is the part of that in which its CPU took no interrupt for at least one and a
    half periods. ``exponent`` says how its time in the whole stretch grows with the number of
    objects: 1 is proportional; None if it was not sampled at two points. ``difference_ns`` is
    relative to base. Intervals are at the confidence of the profile. ``grows`` and ``differs`` are
    true if the samples support the claim, as defined in ``Profile``.
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


class ProfiledFunction(StrictModel):
    """One function with its costs on each kernel.

    ``callers`` are the functions through which more than half of its time was reached, the nearest
    first, on base or, if it was not sampled there, on the first kernel on which it was.
    """

    function: str
    callers: tuple[str, ...]
    costs: tuple[FunctionCost, ...]


class Profile(StrictModel):
    """Where the time of one workload goes, over the values of ``param``.

    ``functions`` are those with a share of at least ``least_share`` on some kernel, and those that
    grow or differ, by decreasing time. A function ``grows`` if its exponent is above 1 +
    ``margin``, where the probability of naming any function of the profile wrongly is below 1 -
    ``confidence`` (Bonferroni). It ``differs`` if its difference is significant in the same sense
    and at least ``least_share`` of base's time.
    """

    workload: str
    param: str
    rest: dict[str, ParamValue]
    """The other parameters of the points that the experiment sets."""
    confidence: float
    least_share: float
    margin: float
    stretches: tuple[ProfiledStretch, ...]
    """By kernel, the smallest point first."""
    functions: tuple[ProfiledFunction, ...]
