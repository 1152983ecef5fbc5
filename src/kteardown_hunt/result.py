"""The result of a hunt, as ``result.json`` has it."""

from pydantic import Field

from kteardown.model.workload import StrictModel
from kteardown_hunt.catalogue import Cost, KindName, Way

_TIMES = (("days", 86_400), ("h", 3_600), ("min", 60))


class GrowthResult(StrictModel):
    """The verdict on the growth of one cost (``hunt.growth``)."""

    verdict: str
    reason: str
    exponent: float | None = None
    """Of the last doubling."""
    exponent_ci: tuple[float | None, float | None] = (None, None)
    """None where it has no bound."""
    share: float | None = None
    rising: bool = False
    """Whether the cost may be superlinear, and a larger size would decide it."""
    sizes: tuple[int, ...]
    costs: tuple[float | None, ...]
    """The medians over seeds, in instructions or kB; None where nothing was measured."""
    confirmed: bool
    """Whether it was measured with the sizes of the confirmation, and not only with those of the
    screen."""


class FunctionResult(StrictModel):
    """The function that is responsible, and how its own time grows (``hunt.flow``).

    ``share`` is that of all time at the largest size. ``callers``: the nearest first.
    ``no_interrupts``: the share of its time in which the CPU took no interrupts; such time is
    attributed to the function that enables them again. ``place``: where the time was spent, which
    two kinds have in common if they are the same find.
    """

    name: str
    share: float
    exponent: float | None
    callers: tuple[str, ...]
    no_interrupts: float
    place: str


class LockResult(StrictModel):
    """A lock that is held while the cost arises (``hunt.flow``)."""

    name: str
    """Its class in lockdep: the argument with which it is initialised, such as
    ``&ctx->flc_lock``."""
    reading: bool
    """Whether it is held for reading, shared with others, and not alone."""
    share: float
    """The share of the time in which it was held."""
    longest_ns: float
    """The longest time for which it was held at once."""


class CostPrediction(StrictModel):
    """What a find costs at the largest number of objects that limits allow."""

    objects: int
    limit: str
    instructions: tuple[float, float, float | None]
    """The low end, the middle and the high end; None if there is no upper bound."""


class FailureResult(StrictModel):
    """A trial that gave no figures: a guest that failed, or a call in it."""

    outcome: str
    objects: int
    detail: str

    @property
    def brief(self) -> str:
        """Return how it failed: ``hang at 4,608 objects``."""
        return f"{self.outcome} at {self.objects:,} objects"


class CaseResult(StrictModel):
    kind: KindName
    part: str
    object: str
    shape: str
    way: Way
    user: str
    growth: dict[Cost, GrowthResult]
    call: str = ""
    """What the way ``call`` calls, in words; empty for the other ways, and in earlier results."""
    needs: str = ""
    """The symbol of the kernel's configuration without which the kind fails."""
    causes: dict[Cost, FunctionResult] = Field(default={})
    """By superlinear cost, the function that is responsible."""
    elsewhere: dict[str, dict[Cost, GrowthResult]] = Field(default={})
    """By source, what the costs are on other kernels, with one seed."""
    failed_elsewhere: dict[str, FailureResult] = Field(default={})
    """By source, what failed first on other kernels."""
    idle_ns: float | None
    """How long the guest was idle during the release of the largest number, in instructions of the
    clock."""
    bystanders: dict[str, float]
    """``irqs_off_ns``, ``realtime_ns``, ``probe_ns`` and ``objects_count``, the number at which
    they were."""
    counts_each: dict[str, float] = Field(default={})
    """What one object more adds in guests with two CPUs: ``waits_count`` of the owner,
    ``switches_count`` of all tasks, ``calls_count``, ``flushes_count``, ``work_items_count``."""
    failures: tuple[str, ...] = ()
    """``failed`` as text."""
    failed: tuple[FailureResult, ...] = ()
    """Results that were written earlier have only the text."""
    beyond_budget: int | None = None
    """The smallest number of objects that was left out because of the budget."""


class Find(StrictModel):
    """Superlinear costs of one sort with one cause, or a guest that failed."""

    kind: KindName
    way: Way
    user: str
    object: str
    cost: Cost | None
    """None: the guest failed."""
    failure: str = ""
    """``failed`` as text."""
    failed: FailureResult | None = None
    """How the guest failed; results that were written earlier have only the text."""
    growth: GrowthResult | None = None
    function: FunctionResult | None = None
    locks: tuple[LockResult, ...] = ()
    """The one that was held for longest in all, and others if held for more than half of the time.

    Empty if that was not measured.
    """
    prediction: CostPrediction | None = None
    elsewhere: dict[str, GrowthResult] = Field(default={})
    """The same cost on other kernels, by source, with one seed."""
    failed_elsewhere: dict[str, FailureResult] = Field(default={})
    """What failed on other kernels, by source."""
    also: tuple[str, ...] = ()
    """Other cases in which the same function is responsible: the same find."""

    @property
    def others(self) -> str:
        """Return these cases with each kind named once: ``flocks (exit, random), leases
        (exit)``."""
        ways_by_kind: dict[str, list[str]] = {}
        for text in self.also:
            kind, _, way = text.partition(", ")
            ways_by_kind.setdefault(kind, []).append(way)
        return ", ".join(
            f"{kind} ({', '.join(sorted(ways))})" for kind, ways in ways_by_kind.items()
        )


class Rate(StrictModel):
    """How long an instruction takes on this host: the median over cases, and the median
    deviation."""

    ns: float
    deviation: float
    """As a share of the rate."""
    acceleration: str
    cases: int


class ContendedData(StrictModel):
    """Cache lines for which CPUs wait.

    ``name`` is that of the symbols in the lines; empty for memory that is allocated, which
    ``movers`` describe: the functions that move it, or take the lock in it. ``lines`` is how many
    lines have this name. ``share``: of all the time for which CPUs wait for lines, or sleep.
    """

    name: str
    movers: tuple[str, ...]
    share: float
    lines: int = 1


class OwnersElsewhere(StrictModel):
    """The same ratio on another kernel (``OwnersResult``)."""

    ratio: float
    ci: tuple[float, float]
    verdict: str


class OwnersResult(StrictModel):
    """The time of several processes that released at once, relative to one (``hunt.owners``).

    Results of earlier versions are from the wall clock, and have no counts.
    """

    kind: KindName
    way: Way
    user: str
    owners: int
    objects: int
    """Of each process."""
    boots: int
    ratio: float
    ci: tuple[float, float]
    verdict: str
    """``parallel``, ``serial``, ``convoy`` or ``unknown``."""
    alone: str = ""
    """The verdict on the release by one process on the instruction clock."""
    moves_each: float | None = None
    """Cache lines moved for one object, and so are ``locked_each`` locked instructions."""
    locked_each: float | None = None
    data: tuple[ContendedData, ...] = ()
    """For what the CPUs wait, the longest first."""
    asleep_share: float = 0.0
    """The share of the time for which the CPUs wait that they sleep."""
    elsewhere: dict[str, OwnersElsewhere] = Field(default={})
    """On other kernels, by source."""

    @property
    def case(self) -> tuple[str, Way, str]:
        """Return kind, way and user."""
        return self.kind, self.way, self.user

    @property
    def waits(self) -> bool:
        """Return whether processes that release at once wait for each other."""
        return self.verdict in ("serial", "convoy")

    @property
    def is_find(self) -> bool:
        """Return whether they wait although the release by one of them is linear."""
        return self.waits and self.alone == "linear"


class OwnersFailure(StrictModel):
    """A release by several processes at once, or by one beside them, that gave no counts."""

    kind: KindName
    way: Way
    user: str
    owners: int
    failed: FailureResult


class StayResult(StrictModel):
    """What a release pays for what stays (``hunt.stays``)."""

    kind: KindName
    way: Way
    user: str
    cost: Cost
    stay: str
    """``declared``, or the kind whose objects stay."""
    resident: str
    """What one of them is."""
    verdict: str
    """``pays``, ``free`` or ``unknown``."""
    reason: str
    objects: int
    """Of the largest trial, and so are ``residents``."""
    residents: int
    residents_exponent: float | None = None
    """From the fewest residents to the most."""
    objects_exponent: float | None = None
    """Over all numbers of objects; None if there was one."""
    instructions: float | None = None
    """For one resident, and of one object if ``for_each_object``, at the last doubling."""
    for_each_object: bool = False
    numbers: tuple[int, ...] = ()
    """Of residents, at which ``extras`` were measured."""
    extras: tuple[float, ...] = ()
    """What the release of ``objects`` costs more than beside no resident, in instructions."""
    function: FunctionResult | None = None
    """The function whose own time grows most with the residents."""
    predicted: CostPrediction | None = None
    predicted_residents: int = 0
    """Beside how many residents the prediction is."""
    elsewhere: dict[str, float | None] = Field(default={})
    """By source, ``instructions`` on other kernels, with one seed; None: free or unknown there."""

    @property
    def is_find(self) -> bool:
        return self.verdict == "pays"


class WaitingFunction(StrictModel):
    """A function in which a task sleeps, for each object; ``callers``: the nearest first."""

    name: str
    callers: tuple[str, ...]
    count_each: float
    """How many waits one object more adds."""
    ns_each: float
    """And how much time, by the guest's clock."""
    event: str = ""
    """What is waited for, such as ``grace periods (RCU)``; empty if that has no name
    (``kteardown/model/events.toml``)."""


class WaitResult(StrictModel):
    """A release that waits once for each object (``hunt.waits``)."""

    kind: KindName
    way: Way
    user: str
    part: str
    """``release``, or ``deferred``: a kernel thread waits, after the release."""
    sizes: tuple[int, ...]
    asleep_ns: tuple[float, ...]
    """By size, how long the guest was idle; the guest's clock."""
    each_ns: float
    """For one object more, without pauses of the kind itself."""
    functions: tuple[WaitingFunction, ...] = ()
    elsewhere: dict[str, float] = Field(default={})
    """By source, ``each_ns`` on other kernels."""


class BroadcastResult(StrictModel):
    """A release that interrupts other CPUs once for each object (``hunt.broadcasts``)."""

    kind: KindName
    way: Way
    user: str
    objects: int
    seeds: int
    calls_each: tuple[float, float]
    """Functions that another CPU runs, for one object more: the least and the most over seeds."""
    flushes_each: tuple[float, float]
    """Flushes of the TLB of another CPU, in the same form."""
    elsewhere: dict[str, tuple[float, float]] = Field(default={})
    """By source, calls and flushes for one object more on other kernels."""


class HuntResult(StrictModel):
    schema_version: int = 1
    kteardown: str
    command: str
    source: str
    release: str
    """The version of the kernel that was hunted on."""
    against: tuple[str, ...]
    agent_hash: str = ""
    """SHA-256 of the agent; empty in earlier results, as the next field."""
    image_hashes: dict[str, str] = Field(default={})
    """By source, SHA-256 of the kernel's image."""
    locks: str = ""
    """The source of the kernel that counted how long locks were held; empty: none."""
    measured_s: float
    """Host seconds in which guests ran."""
    kinds: int
    cases: tuple[CaseResult, ...]
    finds: tuple[Find, ...]
    rate: Rate | None = None
    owners: tuple[OwnersResult, ...] = ()
    """The slowest first, relative to the number of processes."""
    owners_failed: tuple[OwnersFailure, ...] = ()
    owners_left_out: int = 0
    """Releases that were not measured with several processes: too few objects fit into memory, or
    they are too expensive."""
    residents: dict[str, int] = Field(default={})
    """What ``--stay`` asked for: by kind, how many."""
    stays: tuple[StayResult, ...] = ()
    """Costs that were measured beside residents, and are not ``free``; the dearest first."""
    free: int = 0
    """Costs that are the same whatever stays."""
    waits: tuple[WaitResult, ...] = ()
    """The longest first."""
    broadcasts: tuple[BroadcastResult, ...] = ()
    """The most interrupts first."""
    unconfirmed: int = 0
    """Ways to release that the screen asks for and that are not confirmed yet; 0: the hunt is
    finished."""

    def case_of(self, of: Find | OwnersResult) -> CaseResult | None:
        """Return the case of a find, or of a release by several processes; None if the result lacks
        it."""
        key = (of.kind, of.way, of.user)
        return next((case for case in self.cases if (case.kind, case.way, case.user) == key), None)


def predicted_time(prediction: CostPrediction, rate: Rate) -> str:
    """Return the predicted time with its upper bound: ``3.4 h (up to 4.2 days)``."""
    _, middle, high = prediction.instructions
    time = rough_time(middle * rate.ns / 1e9)
    highest = time if high is None else rough_time(high * rate.ns / 1e9)
    return f"{time}{f' (up to {highest})' if highest != time else ''}"


def rough_time(seconds: float) -> str:
    """Return a time with no more digits than an extrapolation has: ``66 s``, ``9.3 h``, ``19
    days``."""
    unit, size = next(((unit, size) for unit, size in _TIMES if seconds >= 2 * size), ("s", 1))
    value = seconds / size
    if value < 0.001:
        return "<0.001 s"
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
