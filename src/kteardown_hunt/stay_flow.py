"""The stages that measure what releases pay for what stays.

What kinds declare is always measured. With ``--stay``, each case is first measured beside all that
is asked for at once, then what differs beside each of them, then what still differs at several
numbers of both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.analysis.stretches import Stretches, collect
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.catalogue import Cost, Kind
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import case_of
from kteardown_hunt.functions import paying_function
from kteardown_hunt.hunt import PERIOD_NS, PROFILED, Hunt
from kteardown_hunt.limits import largest
from kteardown_hunt.plan import CONFIRM_SEEDS, Case, TrialPoint, plan_of_points
from kteardown_hunt.result import CostPrediction, FailureResult, FunctionResult, StayResult
from kteardown_hunt.stay_plan import (
    DECLARED,
    MOST_OBJECTS,
    StayGrid,
    chosen_residents,
    declared_grid,
    general_grid,
    profile_points,
    screen_points,
    single_points,
    together,
    without_other_orders,
)
from kteardown_hunt.stays import StayCosts, StayLaw, differing, laws_of, stay_costs

_PREDICTED_AT_MOST = 100_000
"""Of objects, and of residents: an extra grows with both."""


def measure_stays(hunt: Hunt, screened: Mapping[Case, MeasuredCase]) -> dict[str, Any]:
    """Return the fields of the result that say what releases pay for what stays."""
    residents = chosen_residents(hunt.request.stay, hunt.catalogue, hunt.request.user)
    most = {case: max(screened[case].sizes, default=0) for case in without_other_orders(screened)}
    kinds = {kind.name: kind for kind in hunt.kinds}
    grids = [
        (case, grid)
        for case, number in most.items()
        if (grid := declared_grid(kinds[case.kind], number)) is not None
    ]
    failed: list[StayResult] = []
    if residents:
        more, failed = _general_grids(hunt, residents, most)
        grids += more
    results = [*_measured(hunt, grids), *failed]
    shown = [result for result in results if result.verdict != "free"]
    return {
        "residents": residents,
        "stays": tuple(sorted(shown, key=_worst, reverse=True)),
        "free": len(results) - len(shown),
    }


def _worst(result: StayResult) -> tuple[bool, float]:
    predicted = result.predicted.instructions[1] if result.predicted else 0.0
    return result.is_find, predicted or (result.extras[-1] if result.extras else 0.0)


def _stage(
    hunt: Hunt,
    name: str,
    points: Mapping[Case, Sequence[TrialPoint]],
    *,
    kernels: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    profile_ns: int = 0,
    by_residents: bool = False,
) -> list[BootRecords]:
    plan = plan_of_points(
        points,
        kernels or [hunt.request.source],
        seeds,
        hunt.without_budget,
        profile_ns,
        share=True,
        by_residents=by_residents,
    )
    return hunt.stage(name, plan)


def _general_grids(
    hunt: Hunt, residents: Mapping[str, int], most: Mapping[Case, int]
) -> tuple[list[tuple[Case, StayGrid]], list[StayResult]]:
    """Return which cases differ beside which residents, and the residents that could not be
    made."""
    sizes = {case: number for case, number in most.items() if number}
    if not sizes:
        return [], []
    groups, failed = _groups(hunt, residents, *next(iter(sizes.items())))
    if not groups:
        return [], failed
    hunt.reporter.note(f"measuring {len(sizes)} ways to release beside {', '.join(residents)}")
    points = {case: screen_points(groups, number) for case, number in sizes.items()}
    screen = _of_source(hunt, _stage(hunt, "stay-screen", points, by_residents=True))
    suspects: dict[Case, dict[str, int]] = {}
    for case, costs in screen.items():
        differ = [group for group in groups if _may_differ(costs, together(group))]
        if differ:
            suspects[case] = {name: number for group in differ for name, number in group.items()}
    if not suspects:
        return [], failed
    hunt.reporter.note(f"measuring {len(suspects)} of them beside one sort of residents at a time")
    points = {case: single_points(those, sizes[case]) for case, those in suspects.items()}
    single = _of_source(hunt, _stage(hunt, "stay-single", points, by_residents=True))
    grids: list[tuple[Case, StayGrid]] = []
    for case, costs in single.items():
        for name, number in suspects[case].items():
            stay = together({name: number})
            if differing(costs, [stay]):
                grids.append((case, general_grid(name, number, sizes[case])))
            elif failure := costs.failed_beside(stay):
                failed.append(_failed(hunt, case, name, number, failure))
    return grids, failed


def _may_differ(costs: StayCosts, stay: str) -> bool:
    return bool(differing(costs, [stay])) or costs.failed_beside(stay) is not None


def _groups(
    hunt: Hunt, residents: Mapping[str, int], case: Case, objects: int
) -> tuple[list[dict[str, int]], list[StayResult]]:
    """Return which residents are there at once, and those that cannot be made.

    All at once are what a guest usually has memory for; otherwise each sort is by itself.
    """
    singles = [{name: number} for name, number in residents.items()]
    stays = [*map(together, singles), together(residents)]
    points = {case: [TrialPoint(min(objects, MOST_OBJECTS), stay) for stay in stays]}
    costs = _of_source(hunt, _stage(hunt, "stay-check", points)).get(case, StayCosts())
    failed = [
        _failed(hunt, case, name, residents[name], failure)
        for name in residents
        if (failure := costs.failed_beside(together({name: residents[name]})))
    ]
    without = {result.stay for result in failed}
    possible = {name: number for name, number in residents.items() if name not in without}
    if not failed and costs.failed_beside(stays[-1]) and len(residents) > 1:
        return singles, failed
    return [possible] if possible else [], failed


def _failed(hunt: Hunt, case: Case, name: str, number: int, failure: FailureResult) -> StayResult:
    return StayResult(
        **vars(case),
        cost="sync",
        stay=name,
        resident=_resident(hunt, case, name),
        verdict="failed",
        reason=f"{failure.brief}: {failure.detail}",
        objects=failure.objects,
        residents=number,
    )


def _of_source(hunt: Hunt, boots: Sequence[BootRecords]) -> dict[Case, StayCosts]:
    costs = stay_costs(boots)
    return {case: of for (kernel, case), of in costs.items() if kernel == hunt.request.source}


def _measured(hunt: Hunt, grids: Sequence[tuple[Case, StayGrid]]) -> list[StayResult]:
    """Measure the laws of these grids, and return a result for each cost."""
    if not grids:
        return []
    hunt.reporter.note(f"measuring how {len(grids)} costs of a release grow with what stays")
    boots = _stage(hunt, "stay", _points(grids))
    laws = _laws(_of_source(hunt, boots), grids)
    asking = [at for at in grids if any(law.verdict != "free" for law in laws[at].values())]
    if asking:
        boots += _stage(hunt, "stay-confirm", _points(asking), seeds=range(1, CONFIRM_SEEDS))
        laws = _laws(_of_source(hunt, boots), grids)
    finds = {
        at: [cost for cost, law in of.items() if law.verdict == "pays"] for at, of in laws.items()
    }
    causes = _causes(hunt, finds)
    elsewhere = _elsewhere(hunt, [at for at, costs in finds.items() if costs])
    measured = _of_source(hunt, boots)
    results = []
    for at, of in laws.items():
        results += [
            _result(hunt, at, cost, law, causes.get((at, cost)), elsewhere.get(at, {}))
            for cost, law in of.items()
        ]
        case, grid = at
        failures = (
            failure
            for number in grid.residents
            if case in measured and (failure := measured[case].failed_beside(grid.text(number)))
        )
        if not of and (failure := next(failures, None)):
            failed = StayLaw("failed", f"{failure.brief}: {failure.detail}")
            results.append(_result(hunt, at, "sync", failed, None, {}))
    return results


def _points(grids: Sequence[tuple[Case, StayGrid]]) -> dict[Case, list[TrialPoint]]:
    points: dict[Case, list[TrialPoint]] = {}
    for case, grid in grids:
        points.setdefault(case, []).extend(grid.points())
    return points


def _laws(
    measured: Mapping[Case, StayCosts], grids: Sequence[tuple[Case, StayGrid]]
) -> dict[tuple[Case, StayGrid], dict[Cost, StayLaw]]:
    return {
        (case, grid): laws_of(measured[case], grid) if case in measured else {}
        for case, grid in grids
    }


def _causes(
    hunt: Hunt, finds: Mapping[tuple[Case, StayGrid], Sequence[Cost]]
) -> dict[tuple[tuple[Case, StayGrid], Cost], FunctionResult]:
    """Sample each find beside its three largest numbers of residents."""
    causes: dict[tuple[tuple[Case, StayGrid], Cost], FunctionResult] = {}
    for cost, watch in PROFILED.items():
        chosen = [at for at, costs in finds.items() if cost in costs]
        points: dict[Case, list[TrialPoint]] = {}
        for case, grid in chosen:
            sampled = [point._replace(watch=watch) for point in profile_points(grid)]
            points.setdefault(case, []).extend(sampled)
        if not points:
            continue
        boots = _stage(hunt, f"stay-profile-{cost}", points, profile_ns=PERIOD_NS)
        sampled_at = {}
        for stretches in collect(boots):
            params = dict(stretches.key)
            place = case_of(params), int(params["objects"]), str(params["stay"])
            sampled_at[place] = stretches
        for case, grid in chosen:
            function = _paying(case, grid, sampled_at)
            if function is not None:
                causes[(case, grid), cost] = function
    return causes


def _paying(
    case: Case, grid: StayGrid, sampled: Mapping[tuple[Case, int, str], Stretches]
) -> FunctionResult | None:
    stays = (grid.text(grid.residents[-1]), grid.text(0))
    numbers = (grid.objects[-1], 0) if grid.baseline else (grid.objects[-1],)
    there = [sampled.get((case, number, stay)) for number in numbers for stay in stays]
    if None in there:
        return None
    all_there, without_residents, *ends = [stretches for stretches in there if stretches]
    return paying_function(all_there, [without_residents, *ends[:1]], ends[1:])


def _elsewhere(
    hunt: Hunt, grids: Sequence[tuple[Case, StayGrid]]
) -> dict[tuple[Case, StayGrid], dict[str, Mapping[Cost, StayLaw]]]:
    if not grids or not hunt.request.against:
        return {}
    boots = _stage(hunt, "stay-kernels", _points(grids), kernels=hunt.request.against)
    costs = stay_costs(boots)
    return {
        (case, grid): {
            source: laws_of(costs[source, case], grid)
            for source in hunt.request.against
            if (source, case) in costs
        }
        for case, grid in grids
    }


def _resident(hunt: Hunt, case: Case, stay: str) -> str:
    """Return what one of the residents is, in words."""
    kinds = {kind.name: kind for kind in hunt.catalogue}
    return kinds[case.kind].resident if stay == DECLARED else kinds[stay].object


def _result(
    hunt: Hunt,
    at: tuple[Case, StayGrid],
    cost: Cost,
    law: StayLaw,
    function: FunctionResult | None,
    elsewhere: Mapping[str, Mapping[Cost, StayLaw]],
) -> StayResult:
    case, grid = at
    predicted, beside = _prediction(hunt, case, grid, law)
    return StayResult(
        **vars(case),
        cost=cost,
        stay=grid.stay,
        resident=_resident(hunt, case, grid.stay),
        verdict=law.verdict,
        reason=law.reason,
        objects=grid.objects[-1],
        residents=grid.residents[-1],
        residents_exponent=law.residents_exponent,
        objects_exponent=law.objects_exponent,
        instructions=law.instructions,
        for_each_object=law.for_each_object,
        numbers=grid.residents[-len(law.extras) :] if law.extras else (),
        extras=law.extras,
        function=function,
        predicted=predicted,
        predicted_residents=beside,
        elsewhere={
            source: law_there.instructions if law_there.verdict == "pays" else None
            for source, laws in elsewhere.items()
            if (law_there := laws.get(cost)) is not None
        },
    )


def _prediction(
    hunt: Hunt, case: Case, grid: StayGrid, law: StayLaw
) -> tuple[CostPrediction | None, int]:
    """Return the extra of as many objects and residents as there can be, and of how many
    residents."""
    if law.verdict != "pays" or law.instructions is None:
        return None, 0
    kinds = {kind.name: kind for kind in hunt.catalogue}
    kind = kinds[case.kind]
    objects, limit = _most(kind, kind.limit, kind.most, case.user)
    other = kind if grid.stay == DECLARED else kinds[grid.stay]
    residents, _ = (
        _most(other, other.residents_limit, 0, case.user)
        if grid.stay == DECLARED
        else _most(other, other.limit, other.most, case.user)
    )
    extra = law.instructions * residents * (objects if law.for_each_object else 1)
    return CostPrediction(
        objects=objects, limit=limit, instructions=(extra, extra, extra)
    ), residents


def _most(kind: Kind, limit: str, most: int, user: str) -> tuple[int, str]:
    allowed, words = largest(limit, most, user) or (_PREDICTED_AT_MOST, "no limit that is known")
    return (allowed, words) if allowed <= _PREDICTED_AT_MOST else (_PREDICTED_AT_MOST, "")
