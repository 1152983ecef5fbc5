"""The stages of a hunt: screen, confirm, then for each find its cause, other kernels, real time,
and locks.

A stage whose run directory is complete boots nothing, so a hunt that was interrupted continues
where it was. Before the stages is what they decide: from records to costs, and to the functions
that are responsible; from costs to finds, the verdict on every case; and which locks are held
meanwhile, from a kernel with lock statistics (``kernels/fragments/lockstat.config``). These make
every lock many times dearer, so nothing else is measured with it.
"""

import os
from collections.abc import Mapping, Sequence
from statistics import median

from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.places import HERE
from kteardown.run.setting import Lab
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.snapshot import load_plan
from kteardown.vm.agent import build_agent
from kteardown.vm.contention import need_turns
from kteardown_hunt.catalogue import Cost, Kind, choose_kinds, load_kinds, possible
from kteardown_hunt.finds import (
    MeasuredCase,
    case_results,
    finds_of,
    grows,
    may_grow,
    measured,
    worth_confirming,
)
from kteardown_hunt.folder import HuntFolder, Request, requests_of
from kteardown_hunt.functions import growing_functions
from kteardown_hunt.hunt import ARCH, PERIOD_NS, PROFILED, Hunt
from kteardown_hunt.locks import LOCK_COSTS, held_locks, request_of
from kteardown_hunt.owner_flow import measure_owners
from kteardown_hunt.plan import (
    CONFIRM_SEEDS,
    REPORTS,
    Case,
    Options,
    can_confirm,
    cases_of,
    confirm_plan,
    plan_of_sizes,
    screen_plan,
)
from kteardown_hunt.result import (
    Find,
    FunctionResult,
    HuntResult,
    Rate,
)
from kteardown_hunt.stay_flow import measure_stays
from kteardown_hunt.stay_plan import chosen_residents
from kteardown_hunt.tables import summary
from kteardown_hunt.wait_flow import measure_broadcasts, measure_waits

_RATE_CASES = 6


def kinds_of(request: Request, reporter: Reporter) -> tuple[Kind, ...]:
    """Return the kinds that are asked for and possible. Raises InputError, BuildError, LabError."""
    return possible(
        choose_kinds(load_kinds(request.own_kinds, reporter), request.kinds), request.user
    )


def check_residents(request: Request, reporter: Reporter) -> None:
    """Check that what is to stay can be made. Raises InputError, BuildError, LabError."""
    chosen_residents(request.stay, load_kinds(request.own_kinds, reporter), request.user)


def kernels_of(request: Request, reporter: Reporter) -> Mapping[str, KernelImage]:
    """Return the kernels that a hunt boots, built or fetched. Raises InputError, BuildError,
    LabError."""
    # Of the whole catalogue, so that hunts for other kinds share the kernel in the cache.
    modules = {
        module for kind in load_kinds(request.own_kinds, reporter) for module in kind.modules
    }
    wanted = requests_of(request.source, request.against, request.config, modules, request.compiler)
    return build.ensure(wanted, cache_dir=cache_dir(), reporter=reporter).images


def finish(folder: HuntFolder, reporter: Reporter, *, jobs: int | None = None) -> HuntResult:
    """Boot the rest of a hunt and write its result. Raises InputError, BuildError, LabError."""
    # What the screen shows is written before it is confirmed, which can take hours.
    hunt = _prepare(folder, reporter, jobs)
    reporter.note(f"screening on {hunt.request.source}; kinds: {len(hunt.kinds)}")
    plan = screen_plan(hunt.kinds, hunt.request.source, hunt.options)
    measured_cases = _on(hunt.request.source, measured(hunt.stage("screen", plan)))
    first = {
        case: measured_cases[case]
        for case in cases_of(hunt.kinds, hunt.options)
        if case in measured_cases
    }
    chosen = {
        case: most for case, most in worth_confirming(first.values()).items() if can_confirm(most)
    }
    second: dict[Case, MeasuredCase] = {}
    confirming = hunt.without_budget
    if chosen:
        hunt.save(case_results(hunt.kinds, first, {}, {}, {}), unconfirmed=len(chosen))
        reporter.note(
            f"confirming {len(chosen)} of {len(first)} ways to release, which may grow too fast"
        )
        second = _confirmed(hunt, chosen, confirming)
    steep = {
        case: costs for case, measured_case in second.items() if (costs := grows(measured_case))
    }
    causes = _causes(hunt, second, steep, confirming)
    elsewhere = _elsewhere(hunt, {case: chosen[case] for case in steep}, confirming)
    rate = _rate(hunt, second, {case: chosen[case] for case in steep}, confirming)
    broadcasts, counts = measure_broadcasts(hunt, first)
    cases = [
        result.model_copy(
            update={"counts_each": counts.get(Case(result.kind, result.way, result.user), {})}
        )
        for result in case_results(hunt.kinds, first, second, causes, elsewhere)
    ]
    finds = finds_of(cases, second, hunt.kinds)
    more = {
        "finds": tuple(finds),
        "rate": rate,
        "waits": measure_waits(hunt, first),
        "broadcasts": broadcasts,
        **measure_stays(hunt, first),
        **measure_owners(hunt, first, cases),
    }
    result = hunt.save(cases, **more)
    if source := hunt.request.locks:
        reporter.note(summary(result))
        finds = _with_locks(hunt, finds, second, source, confirming)
        result = hunt.save(cases, **{**more, "finds": tuple(finds)}, locks=source)
    return result


def _prepare(folder: HuntFolder, reporter: Reporter, jobs: int | None) -> Hunt:
    request = folder.request()
    catalogue = load_kinds(request.own_kinds, reporter)
    kinds = kinds_of(request, reporter)
    kernels = kernels_of(request, reporter)
    lab = Lab(
        machine=HERE.machine("", reporter, repeat=False),
        agent=build_agent(
            ARCH, cache=cache_dir(), reporter=reporter, own=request.own_kinds, also="hunt"
        ),
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
    if request.owners:
        need_turns(ARCH, cache=cache_dir(), reporter=reporter)
    return Hunt(folder, request, catalogue, kinds, kernels, lab, options, reporter)


def _on(kernel: str, cases: Mapping[tuple[str, Case], MeasuredCase]) -> dict[Case, MeasuredCase]:
    return {case: measured_case for (of, case), measured_case in cases.items() if of == kernel}


def _confirmed(
    hunt: Hunt, chosen: Mapping[Case, int], options: Options
) -> dict[Case, MeasuredCase]:
    """Measure these cases at six sizes: with one seed, then what may still grow too fast with the
    others."""
    source = hunt.request.source
    boots: list[BootRecords] = []
    for name, seeds in (("narrow", [0]), ("confirm", range(1, CONFIRM_SEEDS))):
        plan = confirm_plan(chosen, [source], seeds, options)
        boots += hunt.stage(name, plan)
        cases = _on(source, measured(boots))
        growing = {case for case, measured_case in cases.items() if may_grow(measured_case)}
        chosen = {case: most for case, most in chosen.items() if case in growing}
        if not chosen:
            break
    return cases


def _causes(
    hunt: Hunt,
    confirmed: Mapping[Case, MeasuredCase],
    steep: Mapping[Case, Sequence[Cost]],
    options: Options,
) -> dict[Case, dict[Cost, FunctionResult]]:
    """Profile each find at its three largest sizes, and return the function that is responsible."""
    causes: dict[Case, dict[Cost, FunctionResult]] = {}
    for cost, watch in PROFILED.items():
        sizes = {case: confirmed[case].sizes[-3:] for case, costs in steep.items() if cost in costs}
        if not sizes:
            continue
        hunt.reporter.note(
            f"sampling the functions that take the time of {len(sizes)} finds ({cost})"
        )
        plan = plan_of_sizes(
            sizes, [hunt.request.source], [0], options, watch, profile_ns=PERIOD_NS, share=True
        )
        for case, function in growing_functions(hunt.stage(f"profile-{cost}", plan)).items():
            causes.setdefault(case, {})[cost] = function
    return causes


def _elsewhere(
    hunt: Hunt, largest: Mapping[Case, int], options: Options
) -> dict[Case, dict[str, MeasuredCase]]:
    """Measure the finds on the other kernels, and return what was measured by case and source."""
    cases: dict[Case, dict[str, MeasuredCase]] = {}
    if largest and hunt.request.against:
        hunt.reporter.note(f"measuring the finds on {', '.join(hunt.request.against)}")
        plan = confirm_plan(largest, hunt.request.against, [0], options)
        for (source, case), measured_case in measured(hunt.stage("kernels", plan)).items():
            cases.setdefault(case, {})[source] = measured_case
    return cases


def _with_locks(
    hunt: Hunt,
    finds: list[Find],
    confirmed: Mapping[Case, MeasuredCase],
    source: str,
    options: Options,
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


def _rate(
    hunt: Hunt,
    confirmed: Mapping[Case, MeasuredCase],
    largest: Mapping[Case, int],
    options: Options,
) -> Rate | None:
    """Measure some finds in real time, and return how long an instruction takes on this host."""
    sample = dict(sorted(largest.items())[:: max(1, len(largest) // _RATE_CASES)][:_RATE_CASES])
    if not sample:
        return None
    lab = hunt.real_time("measuring some finds")
    sizes = {case: confirmed[case].sizes[-1:] for case in sample}
    # A resumed hunt keeps the cases that it began with, although its finds may be others: the rate
    # is that of the host, which may be busy now.
    begun = hunt.folder.measured(["rate"])
    plan = (
        load_plan(begun[0]) if begun else plan_of_sizes(sizes, [hunt.request.source], [0], options)
    )
    rates: list[float] = []
    for case, measured_case in _on(
        hunt.request.source, measured(hunt.stage("rate", plan, lab))
    ).items():
        exact = confirmed[case].largest("sync_ns")
        real = measured_case.largest("sync_ns")
        if exact and real:
            rates.append(real / exact)
    if not rates:
        return None
    rate = median(rates)
    deviation = median([abs(ns / rate - 1) for ns in rates])
    return Rate(ns=rate, deviation=deviation, acceleration=lab.acceleration, cases=len(rates))
