"""The stages that measure what releases wait for, and which of them interrupt other CPUs."""

from collections.abc import Mapping
from dataclasses import replace

from kteardown_hunt import broadcasts
from kteardown_hunt.broadcasts import (
    broadcast_points,
    broadcast_results,
    counts_each,
    is_broadcast,
    middle_counts,
)
from kteardown_hunt.finds import MeasuredCase, measured
from kteardown_hunt.hunt import Hunt
from kteardown_hunt.plan import Case, plan_of_points
from kteardown_hunt.result import BroadcastResult, WaitResult
from kteardown_hunt.waits import (
    WAIT_PARTS,
    WATCH_PERIOD_NS,
    wait_law,
    wait_results,
    waiting_functions,
    watched_points,
)


def measure_waits(hunt: Hunt, screened: Mapping[Case, MeasuredCase]) -> tuple[WaitResult, ...]:
    """Return the releases that wait once for each object, with the functions in which they do."""
    points = {}
    for case, case_measured in screened.items():
        laws = [wait_law(case_measured, part) for part in WAIT_PARTS]
        waiting = [law for law in laws if law.verdict == "for each object"]
        if waiting:
            points[case] = watched_points(waiting[0])
    if not points:
        return ()
    hunt.reporter.note(f"watching what {len(points)} ways to release wait for")
    plan = plan_of_points(
        points,
        [hunt.request.source, *hunt.request.against],
        [0],
        hunt.without_budget,
        WATCH_PERIOD_NS,
        share=True,
    )
    boots = hunt.stage("waits", plan)
    watched = {
        case: seen
        for (kernel, case), seen in waiting_functions(boots).items()
        if kernel == hunt.request.source
    }
    elsewhere: dict[Case, dict[str, MeasuredCase]] = {}
    for (kernel, case), case_measured in measured(boots).items():
        if kernel != hunt.request.source:
            elsewhere.setdefault(case, {})[kernel] = case_measured
    return wait_results(screened, watched, elsewhere)


def measure_broadcasts(
    hunt: Hunt, screened: Mapping[Case, MeasuredCase]
) -> tuple[tuple[BroadcastResult, ...], dict[Case, dict[str, float]]]:
    """Return the releases that interrupt another CPU once for each object, and the counts of all
    cases."""
    points = broadcast_points(screened)
    if not points:
        return (), {}
    source = hunt.request.source
    options = replace(hunt.without_budget, cpus=broadcasts.CPUS)
    hunt.reporter.note(f"counting how often {len(points)} ways to release interrupt another CPU")
    boots = hunt.stage("broadcasts", plan_of_points(points, [source], [0], options, share=True))
    asking = {
        case: points[case]
        for (kernel, case), each in counts_each(boots).items()
        if kernel == source and is_broadcast(each)
    }
    if asking:
        kernels = [source, *hunt.request.against]
        plan = plan_of_points(asking, kernels, range(1, broadcasts.SEEDS), options, share=True)
        boots += hunt.stage("broadcasts-confirm", plan)
    counted = counts_each(boots)
    largest = {case: case_points[-1].objects for case, case_points in points.items()}
    counts = {case: middle_counts(each) for (of, case), each in counted.items() if of == source}
    return broadcast_results(counted, source, largest), counts
