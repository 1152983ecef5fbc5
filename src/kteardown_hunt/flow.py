"""The stages of a hunt: screen, confirm, then for each find its cause, other kernels, real time, and locks.

A stage whose run directory is complete boots nothing, so a hunt that was interrupted continues where it was.
Before the stages is what they decide: from records to costs, to the functions that are responsible, and to
processes that wait; from costs to finds, the verdict on every case; and which locks are held meanwhile, from
a kernel with lock statistics (``kernels/fragments/lockstat.config``). These make every lock many times
dearer, so nothing else is measured with it.
"""

import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

import numpy as np

from kteardown import version
from kteardown.analysis.profile import FunctionCosts, Stretches, collect, growth
from kteardown.errors import InputError
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import file_hash, split
from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.model.plan import Plan
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Lab
from kteardown.run.places import HERE
from kteardown.rundir.completeness import measured_s
from kteardown.rundir.counting import BootRecords, trials
from kteardown.rundir.snapshot import load_plan
from kteardown.vm import acceleration
from kteardown.vm.agent import build_hunt_agent
from kteardown_hunt import limits
from kteardown_hunt.catalogue import Cost, Kind, choose, load_kinds, possible
from kteardown_hunt.folder import HuntFolder, Request, case_of, measure_stage, requests_of
from kteardown_hunt.growth import (
    MEMORY_WORTH_CONFIRMING,
    STEEP,
    Curve,
    half_width,
    judge,
    may_be_steep,
    predict,
    screen,
)
from kteardown_hunt.plan import (
    CONFIRM_SEEDS,
    REPORTS,
    Case,
    Options,
    can_confirm,
    cases_of,
    confirm_plan,
    owners_plan,
    plan_of_sizes,
    screen_plan,
)
from kteardown_hunt.result import (
    CaseResult,
    CostPrediction,
    FailureResult,
    Find,
    FunctionResult,
    GrowthResult,
    HuntResult,
    LockResult,
    OwnersResult,
    Rate,
)
from kteardown_hunt.tables import summary

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
BYSTANDERS = ("irqs_off_ns", "realtime_ns", "probe_ns", "objects_count")
_GUEST_FAILED = ("panic", "hang", "oom")
_OF_A_CASE = {"kind", "way", "user", "object"}
_SHARE_OF_A_CAUSE = 0.2
"""With less of the time, a function that two kinds have in common says nothing about a common cause."""


@dataclass
class MeasuredCase:
    """One case on one kernel. Figures are medians over the repetitions of a trial."""

    case: Case
    figures: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)
    """By metric, then by seed and number of objects."""
    failures: list[FailureResult] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    """Numbers of objects that were expected to exceed the budget; one may have been measured later."""

    @property
    def sizes(self) -> tuple[int, ...]:
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
            into = found.setdefault((boot.start.kernel, case), MeasuredCase(case))
            # Bystanders are measured at the largest number so far: only if all is well does the trial say
            # which.
            largest = max(into.sizes, default=0)
            objects = int(trial.params["objects"] or median(trial.samples.get("objects_count", [largest])))
            if not trial.usable:
                outcome = trial.status and ("failed" if trial.status == "failed" else "void")
                detail = trial.detail or boot.end.detail
                failure = FailureResult(outcome=outcome or boot.end.outcome, objects=objects, detail=detail)
                into.failures.append(failure)
            elif "beyond_budget_count" in trial.samples:
                into.left_out.add(objects)
            elif "needless_count" not in trial.samples:
                for metric, values in trial.samples.items():
                    into.figures.setdefault(metric, {})[boot.start.seed, objects] = float(median(values))
    return found


def _says_what(function: str) -> bool:
    """Return whether the name of a function says what is done, and not only how."""
    return not _ENABLES.search(function) and not _ON_BEHALF.fullmatch(function)


def place_of(name: str, callers: tuple[str, ...]) -> str:
    """Return the place of a function's time: itself, or the nearest caller that says what is done."""
    return f"{next(filter(_says_what, (name, *callers)), name)}()"


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
        chain = () if _says_what(name) else last.chain_to(name, _says_what)
        callers = chain or last.callers(name)
        function = FunctionResult(
            name=name,
            share=last.share(name),
            exponent=fitted[0] if fitted else None,
            callers=callers,
            no_interrupts=last.no_interrupts(name),
            place=place_of(name, callers),
        )
        found.append((bool(fitted and fitted[0] >= _STEEP and grown > 0), grown, function))
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
        **vars(case),
        owners=owners,
        objects=max(at[1] for at in both),
        boots=len(both),
        ratio=math.exp(middle),
        ci=(low, high),
        verdict="convoy" if low > STEEP * owners else verdict,
    )


def worth_confirming(screened: Iterable[MeasuredCase]) -> dict[Case, int]:
    """Return the cases that may have a find, with the largest number of objects that the screen measured."""
    # Memory does not depend on how it is released. A guest reports it only while the number of objects grows,
    # so of one way of each kind at all sizes: that of the other ways, at one size or two, asks for nothing.
    return {
        each.case: max(each.sizes)
        for each in screened
        if each.sizes and any(_asks_for(*costs) for costs in _curves(each).items())
    }


def may_grow(each: MeasuredCase) -> bool:
    """Return whether a case may have a find after one seed of the confirmation."""
    return any(may_be_steep(curve) for curve in _curves(each).values())


def _asks_for(cost: Cost, curve: Curve) -> bool:
    if cost == "held":
        return len(curve.complete().sizes) > 2 and screen(curve, MEMORY_WORTH_CONFIRMING)
    return screen(curve)


def grows(each: MeasuredCase) -> list[Cost]:
    return [cost for cost, curve in _curves(each).items() if judge(curve).verdict == "superlinear"]


def case_results(
    kinds: Sequence[Kind],
    screened: Mapping[Case, MeasuredCase],
    confirmed: Mapping[Case, MeasuredCase],
    causes: Mapping[Case, Mapping[Cost, FunctionResult]],
    elsewhere: Mapping[Case, Mapping[str, MeasuredCase]],
) -> list[CaseResult]:
    """Return the verdicts of all cases, from the confirmation where there is one."""
    known = {kind.name: kind for kind in kinds}
    found = []
    for case, first in screened.items():
        if case.kind not in known:
            continue
        kind, second, others = known[case.kind], confirmed.get(case), elsewhere.get(case, {})
        growth = {cost: _screened(cost, curve) for cost, curve in _curves(first).items()}
        if second is not None:
            growth |= _growths(second)
        both = [each for each in (second, first) if each is not None]
        watched = {
            name: value for name in BYSTANDERS for each in both if (value := each.largest(name)) is not None
        }
        failed = tuple(failure for each in both for failure in each.failures)
        result = CaseResult(
            **vars(case),
            **kind.model_dump(include={"part", "object", "shape", "needs"}),
            growth=growth,
            call=kind.call if case.way == "call" else "",
            causes=dict(causes.get(case, {})),
            elsewhere={source: _growths(each) for source, each in others.items()},
            failed_elsewhere={source: each.failures[0] for source, each in others.items() if each.failures},
            idle_ns=both[0].largest("idle_ns"),
            bystanders=watched,
            failures=tuple(map(_text, failed)),
            failed=failed,
            beyond_budget=first.beyond_budget,
        )
        found.append(result)
    return found


def finds_of(
    cases: Sequence[CaseResult], confirmed: Mapping[Case, MeasuredCase], kinds: Sequence[Kind]
) -> list[Find]:
    """Return the finds, the worst first."""
    known = {kind.name: kind for kind in kinds}
    # The memory that an object takes: one of the ways of its kind has it at all sizes.
    memory: dict[str, tuple[int, float]] = {}
    for case in cases:
        held = case.growth.get("held")
        if held is not None and held.costs[-1]:
            memory[case.kind] = max(memory.get(case.kind, (0, 0.0)), (held.sizes[-1], held.costs[-1]))
    kb_each = {kind: kb / size for kind, (size, kb) in memory.items()}
    found = []
    for case in cases:
        same = case.model_dump(include=_OF_A_CASE)
        failed = next((failure for failure in case.failed if failure.outcome in _GUEST_FAILED), None)
        if failed:
            found.append(Find(**same, cost=None, failure=_text(failed), failed=failed))
        of = Case(case.kind, case.way, case.user)
        for cost, grown in case.growth.items():
            if grown.verdict == "superlinear" and grown.confirmed:
                curve = confirmed[of].curve(cost)
                assert curve is not None
                found.append(
                    Find(
                        **same,
                        cost=cost,
                        growth=grown,
                        function=case.causes.get(cost),
                        prediction=_prediction(curve, known[case.kind], case.user, kb_each.get(case.kind))
                        if cost != "held"
                        else None,
                        elsewhere={
                            source: those[cost] for source, those in case.elsewhere.items() if cost in those
                        },
                        failed_elsewhere=case.failed_elsewhere,
                    )
                )
    return _merged(found)


def _curves(each: MeasuredCase) -> dict[Cost, Curve]:
    found = {cost: each.curve(cost) for cost in METRICS}
    return {cost: curve for cost, curve in found.items() if curve is not None}


def _screened(cost: Cost, curve: Curve) -> GrowthResult:
    """Return the verdict of the screen: no find where it does not ask for a confirmation."""
    found = _growth(curve, confirmed=False)
    if found.verdict != "superlinear" or _asks_for(cost, curve):
        return found
    reason = f"{found.reason}, in the screen: too little to be confirmed"
    return found.model_copy(update={"verdict": "unknown", "reason": reason})


def _growths(each: MeasuredCase) -> dict[Cost, GrowthResult]:
    return {cost: _growth(curve, confirmed=True) for cost, curve in _curves(each).items()}


def _growth(curve: Curve, *, confirmed: bool) -> GrowthResult:
    found = judge(curve)
    last = found.exponents[-1] if found.exponents else None
    medians = np.nanmedian(curve.rows, axis=0)
    return GrowthResult(
        verdict=found.verdict,
        reason=found.reason,
        exponent=_finite(last.value) if last else None,
        exponent_ci=(_finite(last.low), _finite(last.high)) if last else (None, None),
        share=found.share,
        rising=found.rising,
        sizes=curve.sizes,
        costs=tuple(_finite(float(value)) for value in medians),
        confirmed=confirmed,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _prediction(curve: Curve, kind: Kind, user: str, kb_each: float | None) -> CostPrediction | None:
    allowed = limits.largest(kind.limit, kind.most, user, kb_each)
    if allowed is None or allowed[0] < curve.sizes[-1] or (found := predict(curve, allowed[0])) is None:
        return None
    low, middle, high = found
    return CostPrediction(objects=allowed[0], limit=allowed[1], instructions=(low, middle, _finite(high)))


def _text(failure: FailureResult) -> str:
    return f"{failure.brief}: {failure.detail}"


def _merged(found: Sequence[Find]) -> list[Find]:
    """Put finds together in which the same function makes the same cost grow; the worst one remains."""
    ordered = sorted(found, key=_badness, reverse=True)
    groups: dict[object, list[Find]] = {}
    for number, find in enumerate(ordered):
        # What two finds have in common if they are one.
        cause: object = number
        if find.function is not None:
            kind = "" if find.function.share >= _SHARE_OF_A_CAUSE else find.kind
            cause = find.cost, find.function.place, kind
        groups.setdefault(cause, []).append(find)
    return [
        first.model_copy(update={"also": tuple(f"{find.kind}, {find.way}" for find in rest)})
        for first, *rest in groups.values()
    ]


def _badness(find: Find) -> tuple[bool, bool, float]:
    """Return the order of finds: failures of guests, then interrupts off, then the predicted cost."""
    if find.growth is None:
        return True, False, 0.0
    off = find.function is not None and find.function.no_interrupts > 0.5
    cost = find.prediction.instructions[1] if find.prediction else find.growth.costs[-1]
    return False, off, cost or 0.0


FRAGMENT = "lockstat"
LOCK_COSTS: Final[dict[Cost, tuple[str, str]]] = {
    "sync": ("locks_release", "elapsed_ns"),
    "deferred": ("locks_deferred", "deferred_ns"),
    "make": ("locks_making", "make_ns"),
}
"""By cost, the invariant whose detail has the locks (``agent/hunt/hunt.c``), and the metric of their time."""
MOST = 3
_MOSTLY = 0.5
"""Locks besides the first are named if they are held for more than this share of the time."""


def advice(name: str, finds: Sequence[Find], request: Request) -> str:
    """Return the sentence that says how hunt ``name`` can name the locks; empty if it has no find for it."""
    if all(find.cost not in LOCK_COSTS for find in finds):
        return ""
    # What Debian builds, it has the source of.
    source = request.source.replace("debian-image:", "debian:")
    command = f"kteardown hunt --resume {name} --locks "
    if not _is_built(source):
        return f"which locks are held: {command}SOURCE"
    cost = build.cost([request_of(source, request.config, request.compiler)], cache_dir=cache_dir())
    minutes = f"about {max(1, round(cost.seconds / 60))}" if cost.seconds else "6 to 12"
    takes = f"; {minutes} min to build its kernel, with lock statistics" if cost.kernels else ""
    return f"which locks are held: {command}{shlex.quote(source)}{takes}"


def check(locks: str) -> None:
    """Check that ``locks`` is empty or can be built with lock statistics. Raises InputError."""
    if locks and not _is_built(locks):
        raise InputError(
            f"--locks {locks}: a prebuilt kernel does not count how long locks are held",
            hint="name the same version as a source that is built: debian:X.Y, git:PATH@REV or tar:FILE.",
        )


def request_of(source: str, config: Sequence[str], compiler: str = "") -> KernelRequest:
    """Return the request for ``source`` with lock statistics, under its own name. Raises InputError."""
    plain = requests_of(source, (), (*config, FRAGMENT), compiler=compiler)[0]
    return replace(plain, name=f"{source} with lock statistics")


def held_locks(boots: Iterable[BootRecords]) -> dict[tuple[Case, Cost], tuple[LockResult, ...]]:
    """Return the locks of each case and cost: the one held for longest, then others held for most of it."""
    found: dict[tuple[Case, Cost], tuple[LockResult, ...]] = {}
    for trial in (trial for boot in boots for trial in trials(boot.records) if trial.usable):
        for cost, (invariant, metric) in LOCK_COSTS.items():
            # Of the repetition that counts, which comes after a warm-up.
            text, (*_, time_ns) = trial.details.get(invariant, ""), trial.samples.get(metric, [0.0])
            if locks := _locks(text, time_ns):
                found[case_of(trial.params), cost] = locks
    return found


def _locks(text: str, of_ns: float) -> tuple[LockResult, ...]:
    """Return the locks of the detail of an invariant; their shares are of ``of_ns``."""
    if not text or of_ns <= 0:
        return ()
    locks = []
    for line in text.splitlines():
        held, longest, how, name = line.split(" ", 3)
        # Several locks of one class can be held at once, and counting begins a little earlier.
        share = min(1.0, int(held) / of_ns)
        locks.append(LockResult(name=name, reading=how == "reading", share=share, longest_ns=int(longest)))
    return tuple(lock for number, lock in enumerate(locks[:MOST]) if not number or lock.share > _MOSTLY)


def _is_built(source: str) -> bool:
    return split(source.rpartition(" on ")[2])[0] in ("debian", "git", "tar")


ARCH: Arch = DEFAULT_ARCH
_PERIOD_NS = 49_999
_PROFILED: dict[Cost, str] = {"sync": "cost", "deferred": "deferred", "make": "make"}
"""By cost, what the agent is to watch while it is sampled."""
_RATE_CASES = 6


@dataclass(frozen=True)
class _Hunt:
    folder: HuntFolder
    request: Request
    kinds: tuple[Kind, ...]
    kernels: Mapping[str, KernelImage]
    lab: Lab
    options: Options
    reporter: Reporter

    def stage(
        self, name: str, plan: Plan, lab: Lab | None = None, kernels: Mapping[str, KernelImage] | None = None
    ) -> list[BootRecords]:
        """Boot the rest of a stage and return the records of its boots."""
        return measure_stage(self.folder, name, plan, kernels or self.kernels, lab or self.lab, self.reporter)

    def real_time(self, what: str) -> Lab:
        """Return the lab on the wall clock, and say that this measures ``what``."""
        best = acceleration.best_wall_acceleration(ARCH, cache=cache_dir()).acceleration
        self.reporter.note(f"{what} in real time ({best})")
        return replace(self.lab, acceleration=best, jobs=1)

    def save(self, cases: Sequence[CaseResult], **more: Any) -> HuntResult:
        """Write the result, with ``more`` fields of it, and return it."""
        result = HuntResult(
            kteardown=version(),
            command=self.request.command,
            source=self.request.source,
            release=self.kernels[self.request.source].release,
            against=self.request.against,
            agent_hash=file_hash(self.lab.agent),
            image_hashes={source: image.image_hash for source, image in self.kernels.items()},
            measured_s=round(sum(measured_s(run.boots()) for run in self.folder.measured()), 1),
            kinds=len(self.kinds),
            cases=tuple(cases),
            **{"finds": (), **more},
        )
        self.folder.save(self.folder.result_file, result.model_dump_json(indent=1))
        return result


def kinds_of(request: Request, reporter: Reporter) -> tuple[Kind, ...]:
    """Return the kinds that are asked for and possible. Raises InputError, BuildError, LabError."""
    return possible(choose(load_kinds(request.own_kinds, reporter), request.kinds), request.user)


def kernels_of(request: Request, reporter: Reporter) -> Mapping[str, KernelImage]:
    """Return the kernels that a hunt boots, built or fetched. Raises InputError, BuildError, LabError."""
    # Of the whole catalogue, so that hunts for other kinds share the kernel in the cache.
    modules = {module for kind in load_kinds(request.own_kinds, reporter) for module in kind.modules}
    wanted = requests_of(request.source, request.against, request.config, modules, request.compiler)
    return build.ensure(wanted, cache_dir=cache_dir(), reporter=reporter).images


def finish(folder: HuntFolder, reporter: Reporter, *, jobs: int | None = None) -> HuntResult:
    """Boot the rest of a hunt and write its result. Raises InputError, BuildError, LabError."""
    # What the screen shows is written before it is confirmed, which can take hours.
    hunt = _prepare(folder, reporter, jobs)
    reporter.note(f"screening on {hunt.request.source}; kinds: {len(hunt.kinds)}")
    plan = screen_plan(hunt.kinds, hunt.request.source, hunt.options)
    found = _on(hunt.request.source, measured(hunt.stage("screen", plan)))
    first = {case: found[case] for case in cases_of(hunt.kinds, hunt.options) if case in found}
    chosen = {case: most for case, most in worth_confirming(first.values()).items() if can_confirm(most)}
    second: dict[Case, MeasuredCase] = {}
    confirming = replace(hunt.options, budget_minstr=0)
    if chosen:
        hunt.save(case_results(hunt.kinds, first, {}, {}, {}), unconfirmed=len(chosen))
        reporter.note(f"confirming {len(chosen)} of {len(first)} ways to release, which may grow too fast")
        second = _confirmed(hunt, chosen, confirming)
    steep = {case: costs for case, each in second.items() if (costs := grows(each))}
    causes = _causes(hunt, second, steep, confirming)
    elsewhere = _elsewhere(hunt, {case: chosen[case] for case in steep}, confirming)
    rate = _rate(hunt, second, {case: chosen[case] for case in steep}, confirming)
    cases = case_results(hunt.kinds, first, second, causes, elsewhere)
    finds = finds_of(cases, second, hunt.kinds)
    owners = _owners(hunt, first, cases)
    result = hunt.save(cases, finds=tuple(finds), rate=rate, owners=owners)
    if source := hunt.request.locks:
        reporter.note(summary(result))
        finds = _with_locks(hunt, finds, second, source, confirming)
        result = hunt.save(cases, finds=tuple(finds), rate=rate, owners=owners, locks=source)
    return result


def _prepare(folder: HuntFolder, reporter: Reporter, jobs: int | None) -> _Hunt:
    request = folder.request()
    kinds = kinds_of(request, reporter)
    kernels = kernels_of(request, reporter)
    lab = Lab(
        machine=HERE.machine("", reporter, repeat=False),
        agent=build_hunt_agent(ARCH, cache=cache_dir(), reporter=reporter, kinds=request.own_kinds),
        arch=ARCH,
        acceleration="icount",
        reports=REPORTS,
        jobs=jobs or os.cpu_count() or 1,
        has_own_programs=bool(request.own_kinds),
    )
    options = Options(
        budget_minstr=request.budget_minstr,
        user=request.user,
        modules={kind.name: kind.modules for kind in kinds if kind.modules},
    )
    return _Hunt(folder, request, kinds, kernels, lab, options, reporter)


def _on(kernel: str, found: Mapping[tuple[str, Case], MeasuredCase]) -> dict[Case, MeasuredCase]:
    return {case: each for (of, case), each in found.items() if of == kernel}


def _confirmed(hunt: _Hunt, chosen: Mapping[Case, int], options: Options) -> dict[Case, MeasuredCase]:
    """Measure these cases at six sizes: with one seed, then what may still grow too fast with the others."""
    source = hunt.request.source
    boots: list[BootRecords] = []
    for name, seeds in (("narrow", [0]), ("confirm", range(1, CONFIRM_SEEDS))):
        plan = confirm_plan(chosen, [source], seeds, options)
        boots += hunt.stage(name, plan)
        found = _on(source, measured(boots))
        growing = {case for case, each in found.items() if may_grow(each)}
        chosen = {case: most for case, most in chosen.items() if case in growing}
        if not chosen:
            break
    return found


def _causes(
    hunt: _Hunt,
    confirmed: Mapping[Case, MeasuredCase],
    steep: Mapping[Case, Sequence[Cost]],
    options: Options,
) -> dict[Case, dict[Cost, FunctionResult]]:
    """Profile each find at its three largest sizes, and return the function that is responsible."""
    causes: dict[Case, dict[Cost, FunctionResult]] = {}
    for cost, watch in _PROFILED.items():
        sizes = {case: confirmed[case].sizes[-3:] for case, costs in steep.items() if cost in costs}
        if not sizes:
            continue
        hunt.reporter.note(f"sampling what takes the time of {len(sizes)} finds ({cost})")
        plan = plan_of_sizes(
            sizes, [hunt.request.source], [0], options, watch, profile_ns=_PERIOD_NS, share=True
        )
        for case, function in growing_functions(hunt.stage(f"profile-{cost}", plan)).items():
            causes.setdefault(case, {})[cost] = function
    return causes


def _elsewhere(
    hunt: _Hunt, largest: Mapping[Case, int], options: Options
) -> dict[Case, dict[str, MeasuredCase]]:
    """Measure the finds on the other kernels, and return what was measured by case and source."""
    found: dict[Case, dict[str, MeasuredCase]] = {}
    if largest and hunt.request.against:
        hunt.reporter.note(f"measuring the finds on {', '.join(hunt.request.against)}")
        plan = confirm_plan(largest, hunt.request.against, [0], options)
        for (source, case), each in measured(hunt.stage("kernels", plan)).items():
            found.setdefault(case, {})[source] = each
    return found


def _with_locks(
    hunt: _Hunt, finds: list[Find], confirmed: Mapping[Case, MeasuredCase], source: str, options: Options
) -> list[Find]:
    """Release the objects of each find once on a kernel that counts how long locks are held."""
    cases = [Case(find.kind, find.way, find.user) for find in finds]
    sizes = {
        case: confirmed[case].sizes[-1:]
        for case, find in zip(cases, finds, strict=True)
        if find.cost in LOCK_COSTS
    }
    if not sizes:
        return finds
    request = request_of(source, hunt.request.config, hunt.request.compiler)
    kernels = build.ensure([request], cache_dir=cache_dir(), reporter=hunt.reporter).images
    hunt.reporter.note(f"counting how long locks are held on {request.name}")
    plan = plan_of_sizes(sizes, [request.name], [0], options)
    held = held_locks(hunt.stage("locks", plan, kernels=kernels))
    return [
        find.model_copy(update={"locks": held.get((case, find.cost), ()) if find.cost else ()})
        for case, find in zip(cases, finds, strict=True)
    ]


def _owners(
    hunt: _Hunt, screened: Mapping[Case, MeasuredCase], cases: Sequence[CaseResult]
) -> tuple[OwnersResult, ...]:
    """Release every case by several processes at once in real time, as far as that is asked for."""
    owners = hunt.request.owners
    largest = {case: each.sizes[-1] for case, each in screened.items() if each.sizes}
    if not owners or not largest:
        return ()
    lab = hunt.real_time(f"releasing by up to {max(owners)} processes at once")
    plan = owners_plan(largest, hunt.request.source, owners, replace(hunt.options, budget_minstr=0))
    alone = {
        Case(case.kind, case.way, case.user): case.growth["sync"].verdict
        for case in cases
        if "sync" in case.growth
    }
    return scalings(hunt.stage("owners", plan, lab), alone)


def _rate(
    hunt: _Hunt, confirmed: Mapping[Case, MeasuredCase], largest: Mapping[Case, int], options: Options
) -> Rate | None:
    """Measure some finds in real time, and return how long an instruction takes on this host."""
    some = dict(sorted(largest.items())[:: max(1, len(largest) // _RATE_CASES)][:_RATE_CASES])
    if not some:
        return None
    lab = hunt.real_time("measuring some finds")
    sizes = {case: confirmed[case].sizes[-1:] for case in some}
    # A resumed hunt keeps the cases that it began with, although its finds may be others: the rate is that
    # of the host, which may be busy now.
    begun = hunt.folder.measured(["rate"])
    plan = load_plan(begun[0]) if begun else plan_of_sizes(sizes, [hunt.request.source], [0], options)
    rates: list[float] = []
    for case, each in _on(hunt.request.source, measured(hunt.stage("rate", plan, lab))).items():
        exact, real = confirmed[case].largest("sync_ns"), each.largest("sync_ns")
        if exact and real:
            rates.append(real / exact)
    if not rates:
        return None
    rate = median(rates)
    deviation = median([abs(each / rate - 1) for each in rates])
    return Rate(ns=rate, deviation=deviation, acceleration=lab.acceleration, cases=len(rates))
