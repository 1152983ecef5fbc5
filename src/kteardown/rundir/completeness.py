"""How far a run is, from its records alone: what decides where it may stop. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import Outcome
from kteardown.rundir.counting import BootRecords

_HOPELESS = 2
"""A kernel whose boots failed this often in a row without one success is not booted again."""


def up_to(plan: Plan, blocks: int) -> Plan:
    """The part of ``plan`` in its first ``blocks`` blocks."""
    return plan.model_copy(update={"boots": tuple(boot for boot in plan.boots if boot.block < blocks)})


def complete_blocks(plan: Plan, boots: Sequence[BootRecords], most: int) -> int:
    """How many blocks from the first on, out of ``most``, need no further boot.

    A boot that is left out because the boots of its kernel fail is not missed.
    """
    ended: Mapping[int, Outcome] = {
        boot.boot: boot.end.outcome for boot in boots if boot.end.outcome != "infrastructure-error"
    }
    missed = [
        boot.block
        for boot in plan.boots
        if boot.block < most and boot.index not in ended and not hopeless(boot, plan, ended)
    ]
    return min(missed, default=most)


def measured_s(boots: Sequence[BootRecords]) -> float:
    """Host seconds in which at least one of ``boots`` ran."""
    spans = sorted((datetime.fromisoformat(b.start.started_at).timestamp(), b.end.duration_s) for b in boots)
    total, until = 0.0, float("-inf")
    for start, duration in spans:
        total += max(0.0, start + duration - max(start, until))
        until = max(until, start + duration)
    return total


def spent(boots: Sequence[BootRecords], looks: Sequence[int], reached: int, budget_s: float | None) -> bool:
    """Whether to measure from the last of ``looks`` that is reached to the next would exceed the budget.

    Judged by what the blocks so far took: from the records, so that a resumed run, or a report made
    again, judges alike. ``reached`` counts complete blocks.
    """
    covered = [look for look in looks if look <= reached]
    if budget_s is None or not covered or covered[-1] == looks[-1]:
        return False
    here, there = covered[-1], looks[len(covered)]
    so_far = measured_s([boot for boot in boots if boot.start.block < here])
    return so_far * there / here > budget_s


def hopeless(boot: PlannedBoot, plan: Plan, ended: Mapping[int, Outcome]) -> bool | None:
    """Whether boots of this kernel before ``boot`` failed so often in a row that it is left out.

    By the order of the plan and not of time, so that a run that was killed and resumed, or had more
    jobs, leaves out the same boots. None where boots that have not ended yet decide it.
    """
    least = most = 0
    for before in plan.boots:
        if before.index >= boot.index or least >= _HOPELESS:
            break
        if (before.kernel, before.machine) == (boot.kernel, boot.machine):
            outcome = ended.get(before.index)
            least = least + 1 if outcome not in (None, "ok") else 0
            most = 0 if outcome == "ok" else most + 1
    if least >= _HOPELESS:
        return True
    return False if most < _HOPELESS else None
