"""The plans of releases by several processes at once, on the contention clock."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from kteardown.model.plan import Plan
from kteardown_hunt.plan import Case, Options, plan_of_sizes

OWNERS_SEEDS = 4
OWNERS_INSTRUCTIONS = 1_000_000
"""What one process executes for its objects when several release at once: the contention clock is
slow."""
OWNERS_FEWEST = 8
"""Objects of each process; with fewer, the time in which they release together is short."""
_MOST_INSTRUCTIONS = 50_000_000
"""Of one process; objects that cost more are not released by several."""


def owners_sizes(largest: int, each: float, owners: int) -> tuple[int, int] | None:
    """Return two numbers of objects of each process, the second twice the first; None if too few
    fit, or if they are too expensive.

    ``largest``: the most objects that fit into memory; ``each``: instructions that one object more
    takes.
    """
    most = min(max(OWNERS_FEWEST, int(OWNERS_INSTRUCTIONS / max(1.0, each))), largest // owners)
    half = most // 2
    if most < OWNERS_FEWEST or 2 * half * each > _MOST_INSTRUCTIONS:
        return None
    return half, 2 * half


def owners_plan(
    sizes: Mapping[Case, tuple[int, int]],
    kernels: Sequence[str],
    owners: Sequence[int],
    seeds: Sequence[int],
    transfer_ticks: Sequence[int],
    options: Options,
) -> Plan:
    """Return the plan of releases by one process and by each number of ``owners`` at once, on the
    contention clock, with each of these costs of a moved line."""
    several = replace(options, owners=(1, *owners), cpus=max(owners))
    plan = plan_of_sizes(sizes, kernels, seeds, several, share=True)
    boots = [
        boot.model_copy(update={"machine": {"transfer_ticks": ticks}})
        for ticks, boot in product(transfer_ticks, plan.boots)
    ]
    numbered = (
        boot.model_copy(update={"index": index, "block": index}) for index, boot in enumerate(boots)
    )
    return plan.model_copy(update={"boots": tuple(numbered)})
