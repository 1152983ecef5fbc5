"""From the records of a stage to costs, to the functions that are responsible, and to processes that wait."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kteardown.analysis.profile import FunctionCosts, Stretches, collect, growth
from kteardown.hunt.catalogue import Cost
from kteardown.hunt.curve import Curve, half_width
from kteardown.hunt.growth import STEEP
from kteardown.hunt.measure import case_of
from kteardown.hunt.plan import Case
from kteardown.hunt.result import FailureResult, FunctionResult, OwnersResult
from kteardown.rundir.counting import BootRecords, Trial, trials

METRICS: dict[Cost, str] = {
    "sync": "sync_ns",
    "deferred": "deferred_ns",
    "make": "make_ns",
    "held": "held_kb",
}
"""The metric of each cost in the records."""
FLOORS: dict[Cost, float] = {"sync": 20_000, "deferred": 60_000, "make": 40_000, "held": 512}
"""Differences that are noise: a tick of the timer takes some thousand instructions, and deferred work is what
is left of a stretch with tens of them; free memory is counted without the lists of each CPU."""
_STEEP = 1.5
"""The own time of the function that is looked for grows at least with this exponent."""
_USER = "[user]"
_ENABLES = re.compile(r"unlock|irq_enable|irq_restore|irqrestore")
"""Functions that enable interrupts again; where the compiler inlines them, their caller is sampled."""
_ON_BEHALF = re.compile(
    r"finish_task_switch|_*schedule(_\w+)?|_*wait_for_com\w+|_*wake_up(_\w+)?|"
    r"generic_exec_single|_*smp_call_function_\w+|"
    r"_*wait_rcu_gp|_*synchronize_s?rcu\w*|"
    r"clear_(high)?pages?(_\w+)?|get_page_from_freelist|_*alloc_pages\w*|allocate_slab|_*slab_alloc\w*|"
    r"_*kv?malloc\w*|kmem_cache_alloc\w*|"
    r"_*k?v?free(_rcu)?|kmem_cache_free\w*|_*slab_free\w*|_*free_(unref_)?(page|folio)\w*"
)
"""Functions that switch tasks, wake them, wait for others, run a function on a CPU, or allocate, clear and
free memory, in a time that does not depend on how much there is: the caller says what for. The allocator of
per-CPU memory is not among them: it searches.
"""
_CONFIDENCE = 0.975
"""Of each one-sided bound of the times of several processes: the interval has 95%."""


@dataclass
class MeasuredCase:
    """One case on one kernel. Figures are medians over the repetitions of a trial."""

    case: Case
    kernel: str
    figures: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)
    """By metric, then by seed and number of objects."""
    failures: list[FailureResult] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    """Numbers of objects that were expected to exceed the budget; one may have been measured later."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of objects that were measured."""
        return tuple(sorted({size for by in self.figures.values() for _, size in by}))

    @property
    def beyond_budget(self) -> int | None:
        """Return the smallest number of objects that was left out because of the budget."""
        return min(self.left_out - set(self.sizes), default=None)

    def curve(self, cost: Cost) -> Curve | None:
        """Return the curve of a cost; None if it was not measured at any size."""
        by = self.figures.get(METRICS[cost], {})
        seeds, sizes = sorted({seed for seed, _ in by}), sorted({size for _, size in by})
        if not sizes:
            return None
        rows = np.array([[by.get((seed, size), np.nan) for size in sizes] for seed in seeds])
        return Curve(tuple(sizes), rows, FLOORS[cost])

    def largest(self, metric: str) -> float | None:
        """Return the median over seeds of a metric at the largest number of objects that has it."""
        by = self.figures.get(metric, {})
        most = max((size for _, size in by), default=0)
        return float(median([value for (_, size), value in by.items() if size == most])) if by else None


def measured(boots: Sequence[BootRecords]) -> dict[tuple[str, Case], MeasuredCase]:
    """Return every case on every kernel that ``boots`` began, by kernel and case."""
    found: dict[tuple[str, Case], MeasuredCase] = {}
    for boot in boots:
        for trial in trials(boot.records):
            case = case_of(trial.params)
            key = boot.start.kernel, case
            _take(found.setdefault(key, MeasuredCase(case, boot.start.kernel)), boot, trial)
    return found


def _take(into: MeasuredCase, boot: BootRecords, trial: Trial) -> None:
    # Bystanders are measured at the largest number so far: only if all is well does the trial say which.
    largest = max(into.sizes, default=0)
    objects = int(trial.params["objects"] or median(trial.samples.get("objects_count", [largest])))
    if not trial.usable:
        outcome = "failed" if trial.status == "failed" else "void" if trial.status else boot.end.outcome
        detail = trial.detail or boot.end.detail
        into.failures.append(FailureResult(outcome=outcome, objects=objects, detail=detail))
        return
    if "beyond_budget_count" in trial.samples:
        into.left_out.add(objects)
        return
    if "needless_count" in trial.samples:
        return
    for metric, values in trial.samples.items():
        into.figures.setdefault(metric, {})[boot.start.seed, objects] = float(median(values))


def _says_what(function: str) -> bool:
    """Return whether the name of a function says what is done, and not only how."""
    return not _ENABLES.search(function) and not _ON_BEHALF.fullmatch(function)


def function_of(
    name: str, share: float, exponent: float | None, callers: tuple[str, ...], no_interrupts: float
) -> FunctionResult:
    """Return a function with the place of its time: itself, or the nearest caller that says what is done."""
    place = f"{next(filter(_says_what, (name, *callers)), name)}()"
    return FunctionResult(
        name=name, share=share, exponent=exponent, callers=callers, no_interrupts=no_interrupts, place=place
    )


def growing_functions(boots: Sequence[BootRecords]) -> dict[Case, FunctionResult]:
    """Return for each case the function whose own time grew most, among those that grow steeply if any do."""
    by_case: dict[Case, dict[int, Stretches]] = {}
    for stretches in collect(boots):
        params = dict(stretches.key)
        by_case.setdefault(case_of(params), {})[int(params["objects"])] = stretches
    return {case: found for case, sizes in by_case.items() if (found := _growing(sizes)) is not None}


def _growing(sizes: dict[int, Stretches]) -> FunctionResult | None:
    numbers = sorted(sizes)
    costs = [FunctionCosts(sizes[number]) for number in numbers]
    last = costs[-1]
    before = costs[-2] if len(costs) > 1 else None
    found: list[tuple[bool, float, FunctionResult]] = []
    for name in last.functions - {_USER}:
        times = [each.own(name) for each in costs]
        fitted = growth(numbers, times)
        grown = times[-1].ns - (before.own(name).ns if before else 0.0)
        callers = () if _says_what(name) else last.chain_to(name, _says_what)
        function = function_of(
            name,
            last.share(name),
            fitted.exponent if fitted else None,
            callers or last.callers(name),
            last.no_interrupts(name),
        )
        found.append((bool(fitted and fitted.exponent >= _STEEP and grown > 0), grown, function))
    steep = [each for each in found if each[0] and each[2].share > 0.1] or found
    return max(steep, key=lambda each: each[1])[2] if steep else None


def scalings(boots: Sequence[BootRecords], alone: Mapping[Case, str]) -> tuple[OwnersResult, ...]:
    """Return how each case scales to each number of owners, from the boots of one stage; the slowest first.

    ``alone``: by case, the verdict on the release by one process on the instruction clock. One CPU has no
    contention: a release whose instructions are linear can still take a lock of the whole machine. So the
    same boot measures on the wall clock the release by one process and by P processes, each on a CPU of its
    own and with as many objects of its own. The ratio of the two times is 1 if they do not hinder each other,
    and P if they release one after another. More than P is a convoy: each object costs more than if the
    processes had taken turns.
    """
    times: dict[tuple[Case, int], dict[tuple[int, int], float]] = {}
    for boot in boots:
        for trial in trials(boot.records):
            if trial.usable and trial.samples.get("elapsed_ns"):
                key = case_of(trial.params), int(trial.params["owners"])
                at = boot.boot, int(trial.params["objects"])
                times.setdefault(key, {})[at] = median(trial.samples["elapsed_ns"])
    found = [
        one.model_copy(update={"alone": alone.get(case, "")})
        for (case, owners), those in sorted(times.items())
        if owners > 1 and (one := scaling(case, owners, times.get((case, 1), {}), those))
    ]
    return tuple(sorted(found, key=lambda one: one.ratio / one.owners, reverse=True))


def scaling(
    case: Case, owners: int, alone: Mapping[tuple[int, int], float], together: Mapping[tuple[int, int], float]
) -> OwnersResult | None:
    """Return the scaling, from times by boot and number of objects; None with fewer than two boots.

    The ratio is the geometric mean over boots, with its interval by Student's t of the logarithms. Closer to
    one than to ``owners`` is parallel.
    """
    both = [at for at in together if alone.get(at, 0) > 0 and together[at] > 0]
    if len(both) < 2:
        return None
    logs = np.log([together[at] / alone[at] for at in both])
    middle, width = float(logs.mean()), float(half_width(logs, _CONFIDENCE))
    low, high = math.exp(middle - width), math.exp(middle + width)
    between = (1 + owners) / 2
    verdict = "parallel" if high < between else "serial" if low > between else "unknown"
    return OwnersResult(
        kind=case.kind,
        way=case.way,
        user=case.user,
        owners=owners,
        objects=max(at[1] for at in both),
        boots=len(both),
        ratio=math.exp(middle),
        ci=(low, high),
        verdict="convoy" if low > STEEP * owners else verdict,
    )
