"""The stages of a hunt in which several processes release at once, on the contention clock."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psutil

from kteardown.inputs.contention import TRANSFER_TICKS
from kteardown.run.setting import ContentionSetup, Lab
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.hunt import Hunt
from kteardown_hunt.owner_plan import OWNERS_SEEDS, owners_plan, owners_sizes
from kteardown_hunt.owners import counted_releases, failed_releases, scalings
from kteardown_hunt.plan import Case, memory_of
from kteardown_hunt.result import CaseResult, OwnersElsewhere, OwnersResult

_WORTH_CONFIRMING = 0.25
"""Releases above this share of the way from 1 to the number of processes are confirmed.
``parallel`` ends at half of the way."""
_LEAST_SEEDS = 2
"""With fewer seeds for a cost of a moved line, the confirmation has no verdict."""


def measure_owners(
    hunt: Hunt, screened: Mapping[Case, MeasuredCase], cases: Sequence[CaseResult]
) -> dict[str, Any]:
    """Release the objects by several processes at once, as far as that is asked for; return fields
    of the result.

    Releases that are superlinear are finds already, and are left out. The others are released once
    by one process and once by the most processes; those that seem to wait for each other then with
    each number of processes, with further seeds, and with both costs of a moved line.
    """
    owners = hunt.request.owners
    if not owners:
        return {}
    alone = {
        Case(case.kind, case.way, case.user): case.growth["sync"].verdict
        for case in cases
        if "sync" in case.growth
    }
    wanted = {case for case, verdict in alone.items() if verdict != "superlinear"}
    sizes = {
        case: chosen
        for case, measured_case in screened.items()
        if case in wanted and (chosen := _sizes(measured_case, max(owners)))
    }
    left_out = {"owners_left_out": len(wanted) - len(sizes)}
    if not sizes:
        return left_out
    lab = _lab(hunt, max(owners))
    hunt.reporter.note(
        f"releasing by {max(owners)} processes at once on the contention clock: {len(sizes)} ways"
    )
    plan = owners_plan(
        sizes, [hunt.request.source], owners[-1:], [0], TRANSFER_TICKS[:1], hunt.without_budget
    )
    boots = hunt.stage("owners-screen", plan, lab)
    results = {
        result.case: result
        for result in scalings(counted_releases(boots), alone, TRANSFER_TICKS[:1], 1)
    }
    waiting = {
        case: chosen
        for case, chosen in sizes.items()
        if (result := results.get((case.kind, case.way, case.user)))
        and result.ratio > 1 + _WORTH_CONFIRMING * (result.owners - 1)
    }
    confirmed, more_boots = _confirmed(hunt, lab, waiting, alone)
    for case in waiting:
        # What could not be confirmed is no find.
        first = results[case.kind, case.way, case.user]
        results[first.case] = first.model_copy(update={"verdict": "unknown"})
    for result in confirmed:
        results.pop(result.case, None)
    return {
        "owners": (*confirmed, *results.values()),
        "owners_failed": failed_releases((*boots, *more_boots)),
        **left_out,
    }


def _confirmed(
    hunt: Hunt, lab: Lab, waiting: Mapping[Case, tuple[int, int]], alone: Mapping[Case, str]
) -> tuple[list[OwnersResult], list[BootRecords]]:
    """Measure what seems to wait with all seeds and costs; return the results and the boots of the
    kernel that is hunted on."""
    if not waiting:
        return [], []
    hunt.reporter.note(f"confirming {len(waiting)} of them, which seem to wait for each other")
    kernels = [hunt.request.source, *hunt.request.against]
    seeds = range(OWNERS_SEEDS)
    owners = hunt.request.owners
    plan = owners_plan(waiting, kernels, owners, seeds, TRANSFER_TICKS, hunt.without_budget)
    boots = hunt.stage("owners", plan, lab)
    here = [boot for boot in boots if boot.start.kernel == hunt.request.source]
    return _by_kernel(boots, kernels, alone), here


def _lab(hunt: Hunt, owners: int) -> Lab:
    """Return the lab on the contention clock, with as many guests at a time as the host has memory
    for."""
    counts = ContentionSetup(lambda trial: 1, tuple(hunt.request.own_kinds), "hunt")
    fitting = int(psutil.virtual_memory().total >> 20) // memory_of(owners)
    return replace(hunt.lab, contention=counts, jobs=max(1, min(hunt.lab.jobs, fitting)))


def _by_kernel(
    boots: Sequence[BootRecords], kernels: Sequence[str], alone: Mapping[Case, str]
) -> list[OwnersResult]:
    """Return the results on the first kernel, with those on the others."""
    here, *others = (
        scalings(
            counted_releases(boot for boot in boots if boot.start.kernel == kernel),
            alone,
            TRANSFER_TICKS,
            _LEAST_SEEDS,
        )
        for kernel in kernels
    )
    elsewhere: dict[object, dict[str, OwnersElsewhere]] = {}
    for kernel, results in zip(kernels[1:], others, strict=True):
        for result in results:
            figures = OwnersElsewhere(ratio=result.ratio, ci=result.ci, verdict=result.verdict)
            elsewhere.setdefault((result.case, result.owners), {})[kernel] = figures
    return [
        result.model_copy(update={"elsewhere": elsewhere.get((result.case, result.owners), {})})
        for result in here
    ]


def _sizes(measured_case: MeasuredCase, owners: int) -> tuple[int, int] | None:
    curve = measured_case.curve("sync")
    if curve is None or len(curve.sizes) < 2:
        return None
    # With one seed, each size of a curve has a figure.
    instructions = curve.rows[0]
    each = (instructions[-1] - instructions[0]) / (curve.sizes[-1] - curve.sizes[0])
    return owners_sizes(curve.sizes[-1], float(each), owners)
