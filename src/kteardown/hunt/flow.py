"""The stages of a hunt: screen, confirm, then for each find its cause, other kernels, real time, and locks.

A stage whose run directory is complete boots nothing, so a hunt that was interrupted continues where it was.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from kteardown import version
from kteardown.hunt import decide, locks
from kteardown.hunt.catalogue import Cost, Kind, choose, load_kinds, own_kinds, possible
from kteardown.hunt.costs import MeasuredCase, measured
from kteardown.hunt.explain import growing_functions
from kteardown.hunt.folder import HuntFolder, Request, plan_of
from kteardown.hunt.measure import HuntKernels, build_kernels, measure_stage, requests_of
from kteardown.hunt.owners import scalings
from kteardown.hunt.plan import (
    CONFIRM_SEEDS,
    Case,
    Options,
    can_confirm,
    cases_of,
    confirm_plan,
    locks_plan,
    owners_plan,
    profile_plan,
    real_time_plan,
    screen_plan,
)
from kteardown.hunt.result import CaseResult, Find, FunctionResult, HuntResult, OwnersResult, Rate
from kteardown.hunt.tables import summary
from kteardown.kernels.source import file_hash
from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.model.plan import Plan
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Lab
from kteardown.rundir.completeness import measured_s
from kteardown.rundir.counting import BootRecords
from kteardown.vm import acceleration
from kteardown.vm.agent import build_hunt_agent
from kteardown.vm.qemu import QemuMachine

ARCH: Arch = DEFAULT_ARCH
_PERIOD_NS = 49_999
_PROFILED: dict[Cost, str] = {"sync": "cost", "deferred": "deferred", "make": "make"}
"""By cost, what the agent is to watch while it is sampled."""
_RATE_CASES = 6


@dataclass(frozen=True)
class _Hunt:
    """What every stage needs."""

    folder: HuntFolder
    request: Request
    kinds: tuple[Kind, ...]
    kernels: HuntKernels
    lab: Lab
    options: Options
    reporter: Reporter

    def stage(self, name: str, plan: Plan) -> list[BootRecords]:
        """Boot the rest of a stage and return the records of its boots."""
        return measure_stage(self.folder, name, plan, self.kernels, self.lab, self.reporter)


def kinds_of(request: Request, reporter: Reporter) -> tuple[Kind, ...]:
    """Return the kinds that are asked for and that the user can make objects of.

    Raises InputError, BuildError, LabError.
    """
    own = own_kinds(Path(request.own) if request.own else None)
    return possible(choose(load_kinds(own, reporter), request.kinds), request.user)


def kernels_of(request: Request, reporter: Reporter) -> HuntKernels:
    """Return the kernels that a hunt boots, built or fetched. Raises InputError, BuildError, LabError."""
    own = own_kinds(Path(request.own) if request.own else None)
    # Of the whole catalogue, so that hunts for other kinds share the kernel in the cache.
    modules = {module for kind in load_kinds(own, reporter) for module in kind.modules}
    return build_kernels(requests_of(request.source, request.against, request.config, modules), reporter)


def finish(folder: HuntFolder, reporter: Reporter, *, jobs: int | None = None) -> HuntResult:
    """Boot the rest of a hunt and write its result. Raises InputError, BuildError, LabError.

    What the screen shows is written before it is confirmed, which can take hours.
    """
    hunt = _prepare(folder, reporter, jobs)
    source = hunt.request.source
    reporter.note(f"screening on {source}; kinds: {len(hunt.kinds)}")
    plan = screen_plan(hunt.kinds, hunt.request.source, hunt.options)
    found = _on(hunt.request.source, measured(hunt.stage("screen", plan)))
    first = {case: found[case] for case in cases_of(hunt.kinds, hunt.options) if case in found}
    chosen = {
        case: most for case, most in decide.worth_confirming(first.values()).items() if can_confirm(most)
    }
    second: dict[Case, MeasuredCase] = {}
    confirming = replace(hunt.options, budget_minstr=0)
    if chosen:
        screened = decide.case_results(hunt.kinds, first, {}, {}, {})
        _save(hunt, _result(hunt, screened, unconfirmed=len(chosen)))
        reporter.note(f"confirming {len(chosen)} of {len(first)} ways to release, which may grow too fast")
        second = _confirmed(hunt, chosen, confirming)
    steep = {case: costs for case, each in second.items() if (costs := decide.grows(each))}
    causes = _causes(hunt, second, steep, confirming)
    elsewhere = _elsewhere(hunt, {case: chosen[case] for case in steep}, confirming)
    rate = _rate(hunt, second, {case: chosen[case] for case in steep}, confirming)
    cases = decide.case_results(hunt.kinds, first, second, causes, elsewhere)
    finds = decide.finds(cases, second, hunt.kinds)
    result = _result(hunt, cases, finds, rate).model_copy(update={"owners": _owners(hunt, first, cases)})
    _save(hunt, result)
    if source := hunt.request.locks:
        reporter.note(summary(result))
        finds = _with_locks(hunt, finds, second, source, confirming)
        result = result.model_copy(update={"finds": tuple(finds), "locks": source})
        _save(hunt, result)
    return result


def _result(
    hunt: _Hunt,
    cases: Sequence[CaseResult],
    finds: Sequence[Find] = (),
    rate: Rate | None = None,
    unconfirmed: int = 0,
) -> HuntResult:
    return HuntResult(
        kteardown=version(),
        command=hunt.request.command,
        source=hunt.request.source,
        release=hunt.kernels.images[hunt.request.source].release,
        against=hunt.request.against,
        agent_hash=file_hash(hunt.lab.agent),
        image_hashes={source: image.image_hash for source, image in hunt.kernels.images.items()},
        measured_s=round(sum(measured_s(run.boots()) for run in hunt.folder.measured()), 1),
        kinds=len(hunt.kinds),
        cases=tuple(cases),
        finds=tuple(finds),
        rate=rate,
        unconfirmed=unconfirmed,
    )


def _save(hunt: _Hunt, result: HuntResult) -> None:
    hunt.folder.save(hunt.folder.result_file, result.model_dump_json(indent=1))


def _prepare(folder: HuntFolder, reporter: Reporter, jobs: int | None) -> _Hunt:
    request = folder.request()
    own = own_kinds(Path(request.own) if request.own else None)
    kinds = kinds_of(request, reporter)
    kernels = kernels_of(request, reporter)
    lab = Lab(
        machine=QemuMachine(reporter.command),
        agent=build_hunt_agent(ARCH, cache=cache_dir(), reporter=reporter, kinds=own),
        arch=ARCH,
        acceleration="icount",
        jobs=jobs or os.cpu_count() or 1,
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
        may_grow = {case for case, each in found.items() if decide.may_grow(each)}
        chosen = {case: most for case, most in chosen.items() if case in may_grow}
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
        plan = profile_plan(sizes, hunt.request.source, options, watch, _PERIOD_NS)
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
        case: confirmed[case].sizes[-1]
        for case, find in zip(cases, finds, strict=True)
        if find.cost in locks.LOCK_COSTS
    }
    if not sizes:
        return finds
    request = locks.request_of(source, hunt.request.config)
    kernels = build_kernels([request], hunt.reporter)
    hunt.reporter.note(f"counting how long locks are held on {request.name}")
    plan = locks_plan(sizes, request.name, options)
    boots = measure_stage(hunt.folder, "locks", plan, kernels, hunt.lab, hunt.reporter)
    held = locks.held_locks(boots)
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
    best = acceleration.best_wall_acceleration(ARCH, cache=cache_dir())
    lab = replace(hunt.lab, acceleration=best.acceleration, jobs=1)
    hunt.reporter.note(
        f"releasing by up to {max(owners)} processes at once in real time ({lab.acceleration})"
    )
    plan = owners_plan(largest, hunt.request.source, owners, replace(hunt.options, budget_minstr=0))
    boots = measure_stage(hunt.folder, "owners", plan, hunt.kernels, lab, hunt.reporter)
    alone = {
        Case(case.kind, case.way, case.user): case.growth["sync"].verdict
        for case in cases
        if "sync" in case.growth
    }
    found = [
        OwnersResult(kind=case.kind, way=case.way, user=case.user, alone=alone.get(case, ""), **asdict(one))
        for case, those in scalings(boots).items()
        for one in those
    ]
    return tuple(sorted(found, key=lambda one: one.ratio / one.owners, reverse=True))


def _rate(
    hunt: _Hunt, confirmed: Mapping[Case, MeasuredCase], largest: Mapping[Case, int], options: Options
) -> Rate | None:
    """Measure some finds in real time, and return how long an instruction takes on this host."""
    some = dict(sorted(largest.items())[:: max(1, len(largest) // _RATE_CASES)][:_RATE_CASES])
    if not some:
        return None
    best = acceleration.best_wall_acceleration(ARCH, cache=cache_dir())
    lab = replace(hunt.lab, acceleration=best.acceleration, jobs=1)
    hunt.reporter.note(f"measuring some finds in real time ({lab.acceleration})")
    sizes = {case: confirmed[case].sizes[-1:] for case in some}
    # A resumed hunt keeps the cases that it began with, although its finds may be others: the rate is that
    # of the host, which may be busy now.
    begun = hunt.folder.measured(["rate"])
    plan = plan_of(begun[0]) if begun else real_time_plan(sizes, hunt.request.source, options)
    boots = measure_stage(hunt.folder, "rate", plan, hunt.kernels, lab, hunt.reporter)
    rates: list[float] = []
    for case, each in _on(hunt.request.source, measured(boots)).items():
        exact, real = confirmed[case].largest("sync_ns"), each.largest("sync_ns")
        if exact and real:
            rates.append(real / exact)
    if not rates:
        return None
    rate = median(rates)
    deviation = median([abs(each / rate - 1) for each in rates])
    return Rate(ns=rate, deviation=deviation, acceleration=lab.acceleration, cases=len(rates))
