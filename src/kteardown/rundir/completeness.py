"""How far a run is, only from its records, to decide where it may stop. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from kteardown.model.kernel_facts import KernelFacts, not_built
from kteardown.model.plan import Plan, PlannedBoot, rests
from kteardown.model.record import NOT_VARIANTS, Outcome
from kteardown.rundir.counting import BootRecords

_HOPELESS = 2
"""A kernel with this many failed boots in succession is not booted again."""


def up_to(plan: Plan, blocks: int) -> Plan:
    return plan.model_copy(
        update={"boots": tuple(boot for boot in plan.boots if boot.block < blocks)}
    )


def measurable(plan: Plan, kernels: Mapping[str, KernelFacts]) -> Plan:
    """Return ``plan`` without the boots of variants of which nothing is in the kernel that was
    built.

    If no variant is left there is nothing to measure, and so no boot. A kernel that is still to be
    built is left: it is not in ``kernels``.
    """
    absent = not_built(kernels)
    parts = {name for name, facts in kernels.items() if facts.for_ablation}
    left = {boot.kernel for boot in plan.boots}.difference(absent, parts, NOT_VARIANTS)
    boots = tuple(boot for boot in plan.boots if left and boot.kernel not in absent)
    return plan.model_copy(update={"boots": boots}) if absent else plan


def complete_blocks(plan: Plan, boots: Sequence[BootRecords], most: int) -> int:
    """Return how many of the first ``most`` blocks need no further boot, counted from the first."""
    return min((boot.block for boot in boots_left(plan, boots, most)), default=most)


def boots_left(plan: Plan, boots: Sequence[BootRecords], most: int) -> list[PlannedBoot]:
    """Return the boots of the first ``most`` blocks that have not ended."""
    # A boot that is skipped because earlier boots of its kernel failed is not left.
    ended: Mapping[int, Outcome] = {
        boot.boot: boot.end.outcome for boot in boots if boot.end.outcome != "infrastructure-error"
    }
    given_up = GivenUp(plan)
    return [
        boot
        for boot in plan.boots
        if boot.block < most and boot.index not in ended and not given_up.decide(boot, ended)
    ]


def measured_s(boots: Sequence[BootRecords]) -> float:
    """Return the host seconds in which at least one of ``boots`` ran."""
    spans = sorted(
        (datetime.fromisoformat(b.start.started_at).timestamp(), b.end.duration_s) for b in boots
    )
    total = 0.0
    until = float("-inf")
    for start, duration in spans:
        total += max(0.0, start + duration - max(start, until))
        until = max(until, start + duration)
    return total


def spent(
    boots: Sequence[BootRecords], looks: Sequence[int], reached: int, budget_s: float | None
) -> bool:
    """Return whether measuring up to the next of ``looks`` would exceed the budget.

    The time per block is that of the blocks so far, from the records, so that a resumed run and
    every report come to the same decision. ``reached`` is the number of complete blocks.
    """
    covered = [look for look in looks if look <= reached]
    if budget_s is None or not covered or covered[-1] == looks[-1]:
        return False
    last_look = covered[-1]
    next_look = looks[len(covered)]
    so_far = measured_s([boot for boot in boots if boot.start.block < last_look])
    return so_far * next_look / last_look > budget_s


class GivenUp:
    """Which boots of a plan are skipped because too many boots of their kernel before them failed
    in a row.

    The order is that of the plan and not of time, so that a run that was killed and resumed, or had
    more jobs, skips the same boots. The rest of a boot that failed is never skipped. What is known
    of a kernel is kept from one question to the next, so that a plan of ten thousand boots takes no
    longer for each of them than a short one: a boot that has ended must not change its outcome.
    """

    def __init__(self, plan: Plan) -> None:
        self._groups: dict[object, list[int]] = {}
        """The boots of each kernel and machine, by index, in order."""
        self._place: dict[int, tuple[object, int]] = {}
        """By index of a boot, its group and its position there; the rest of a boot that failed has
        none."""
        self._rows: dict[object, list[int]] = {}
        """By group, before each of its first boots, how many failed in a row."""
        later = rests(plan)
        for boot in () if plan.independent else plan.boots:
            name = (boot.kernel, tuple(sorted(boot.machine.items())))
            group = self._groups.setdefault(name, [])
            if boot.index not in later:
                self._place[boot.index] = (name, len(group))
            group.append(boot.index)

    def decide(self, boot: PlannedBoot, ended: Mapping[int, Outcome]) -> bool | None:
        """Return whether ``boot`` is skipped; None if it depends on boots that have not ended
        yet."""
        if boot.index not in self._place:
            return False
        name, position = self._place[boot.index]
        group = self._groups[name]
        rows = self._rows.setdefault(name, [0])
        while len(rows) <= position and (outcome := ended.get(group[len(rows) - 1])) is not None:
            rows.append(_row(rows[-1], outcome))
        if len(rows) > position:
            return rows[position] >= _HOPELESS
        least = most = rows[-1]
        for index in group[len(rows) - 1 : position]:
            outcome = ended.get(index)
            least = _row(least, outcome or "ok")
            most = min(most + 1, _HOPELESS) if outcome is None else _row(most, outcome)
            if least >= _HOPELESS:
                return True
        return False if most < _HOPELESS else None


def _row(before: int, outcome: Outcome) -> int:
    """Return how many failed in a row after one more; once there are too many, that is for good."""
    if before >= _HOPELESS:
        return before
    return 0 if outcome == "ok" else before + 1
