"""How far a run is, only from its records, to decide where it may stop. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kteardown.model.plan import Plan, PlannedBoot, is_rest
from kteardown.model.record import Outcome
from kteardown.rundir.counting import BootRecords

_HOPELESS = 2
"""A kernel with this many failed boots in succession is not booted again."""


def up_to(plan: Plan, blocks: int) -> Plan:
    """Return the first ``blocks`` blocks of ``plan``."""
    return plan.model_copy(update={"boots": tuple(boot for boot in plan.boots if boot.block < blocks)})


def complete_blocks(plan: Plan, boots: Sequence[BootRecords], most: int) -> int:
    """Return how many of the first ``most`` blocks need no further boot, counted from the first.

    A boot that is skipped because earlier boots of its kernel failed is not missing.
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
    """Return the host seconds in which at least one of ``boots`` ran."""
    spans = sorted((datetime.fromisoformat(b.start.started_at).timestamp(), b.end.duration_s) for b in boots)
    total, until = 0.0, float("-inf")
    for start, duration in spans:
        total += max(0.0, start + duration - max(start, until))
        until = max(until, start + duration)
    return total


def spent(boots: Sequence[BootRecords], looks: Sequence[int], reached: int, budget_s: float | None) -> bool:
    """Return whether measuring up to the next of ``looks`` would exceed the budget.

    The time per block is that of the blocks so far, from the records, so that a resumed run and every report
    come to the same decision. ``reached`` is the number of complete blocks.
    """
    covered = [look for look in looks if look <= reached]
    if budget_s is None or not covered or covered[-1] == looks[-1]:
        return False
    here, there = covered[-1], looks[len(covered)]
    so_far = measured_s([boot for boot in boots if boot.start.block < here])
    return so_far * there / here > budget_s


def hopeless(boot: PlannedBoot, plan: Plan, ended: Mapping[int, Outcome]) -> bool | None:
    """Return whether ``boot`` is skipped because too many boots of its kernel before it failed in succession.

    The order is that of the plan and not of time, so that a run that was killed and resumed, or had more
    jobs, skips the same boots. None if it depends on boots that have not ended yet. The rest of a boot that
    hung is never skipped.
    """
    if plan.independent or is_rest(boot, plan):
        return False
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
