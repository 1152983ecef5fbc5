"""The stages of a hunt in which several processes release at once, on the contention clock."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kteardown.inputs.contention import TRANSFER_TICKS
from kteardown.run.setting import Contention
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.hunt import Hunt
from kteardown_hunt.owner_plan import OWNERS_SEEDS, owners_plan, owners_sizes
from kteardown_hunt.owners import counted_releases, scalings
from kteardown_hunt.plan import Case
from kteardown_hunt.result import CaseResult, OwnersElsewhere, OwnersResult

_WORTH_CONFIRMING = 0.25
"""The screen confirms what is above this share of the way from 1 to the number of processes: the
verdict is ``parallel`` up to half of it, and two seeds seldom differ by a quarter."""


def measure_owners(
    hunt: Hunt, screened: Mapping[Case, MeasuredCase], cases: Sequence[CaseResult]
) -> tuple[OwnersResult, ...]:
    """Release the objects by several processes at once, as far as that is asked for.

    Releases that are superlinear are finds already, and are left out. The others are released once
    by one process and once by the most processes; those that seem to wait for each other then with
    each number of processes, with further seeds, and with both costs of a moved line.
    """
    owners = hunt.request.owners
    alone = {
        Case(case.kind, case.way, case.user): case.growth["sync"].verdict
        for case in cases
        if "sync" in case.growth
    }
    sizes = {
        case: chosen
        for case, measured_case in screened.items()
        if alone.get(case, "superlinear") != "superlinear"
        and (chosen := _sizes(measured_case, max(owners, default=1)))
    }
    if not owners or not sizes:
        return ()
    counts = Contention(lambda trial: 1, tuple(hunt.request.own_kinds), "hunt")
    lab = replace(hunt.lab, contention=counts)
    source = hunt.request.source
    hunt.reporter.note(
        f"releasing by {max(owners)} processes at once on the contention clock: {len(sizes)} ways"
    )
    plan = owners_plan(sizes, [source], owners[-1:], [0], TRANSFER_TICKS[:1], hunt.without_budget)
    first = scalings(counted_releases(hunt.stage("owners-screen", plan, lab)), alone)
    waiting = {
        case: sizes[case]
        for result in first
        if result.ratio > 1 + _WORTH_CONFIRMING * (result.owners - 1)
        and (case := _case(result)) in sizes
    }
    if not waiting:
        return first
    hunt.reporter.note(f"confirming {len(waiting)} of them, which seem to wait for each other")
    kernels = [source, *hunt.request.against]
    seeds = range(OWNERS_SEEDS)
    plan = owners_plan(waiting, kernels, owners, seeds, TRANSFER_TICKS, hunt.without_budget)
    second = _by_kernel(hunt.stage("owners", plan, lab), kernels, alone)
    confirmed = {_case(result) for result in second}
    return (*second, *(result for result in first if _case(result) not in confirmed))


def _by_kernel(
    boots: Sequence[BootRecords], kernels: Sequence[str], alone: Mapping[Case, str]
) -> list[OwnersResult]:
    """Return the results on the first kernel, with those on the others."""
    here, *others = (
        scalings(counted_releases(boot for boot in boots if boot.start.kernel == kernel), alone)
        for kernel in kernels
    )
    elsewhere: dict[tuple[Case, int], dict[str, OwnersElsewhere]] = {}
    for kernel, results in zip(kernels[1:], others, strict=True):
        for result in results:
            figures = OwnersElsewhere(ratio=result.ratio, ci=result.ci, verdict=result.verdict)
            elsewhere.setdefault((_case(result), result.owners), {})[kernel] = figures
    return [
        result.model_copy(update={"elsewhere": elsewhere.get((_case(result), result.owners), {})})
        for result in here
    ]


def _case(result: OwnersResult) -> Case:
    return Case(result.kind, result.way, result.user)


def _sizes(measured_case: MeasuredCase, owners: int) -> tuple[int, int] | None:
    curve = measured_case.curve("sync")
    if curve is None or len(curve.sizes) < 2:
        return None
    # With one seed, each size of a curve has a figure.
    instructions = curve.rows[0]
    each = (instructions[-1] - instructions[0]) / (curve.sizes[-1] - curve.sizes[0])
    return owners_sizes(curve.sizes[-1], float(each), owners)
