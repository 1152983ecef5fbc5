"""How far a run is, from its records alone: what decides where it may stop. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kteardown.records.schema import Outcome
from kteardown.records.store import BootRecords
from kteardown.trials.plan import Plan
from kteardown.trials.run import hopeless


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
