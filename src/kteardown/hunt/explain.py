"""Why a cost grows: the function whose own time grows, from a profile at several sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kteardown.analysis.profile.stacks import FunctionCosts, Stretches, collect, growth
from kteardown.hunt.measure import case_of
from kteardown.hunt.plan import Case
from kteardown.rundir.counting import BootRecords

_STEEP = 1.5
"""The own time of the function that is looked for grows at least with this exponent."""
_USER = "[user]"
_ENABLES = re.compile(r"unlock|irq_enable|irq_restore|irqrestore")
"""Functions that enable interrupts again; where the compiler inlines them, their caller is sampled."""
_ON_BEHALF = re.compile(
    r"finish_task_switch|_*schedule(_\w+)?|_*wait_for_com\w+|_*wake_up(_\w+)?|"
    r"generic_exec_single|_*smp_call_function_\w+|"
    r"_*wait_rcu_gp|_*synchronize_s?rcu\w*|"
    r"clear_(high)?pages?(_\w+)?|get_page_from_freelist|_*alloc_pages\w*|allocate_slab|_*slab_alloc\w*|"
    r"_*kv?malloc\w*|kmem_cache_alloc\w*|"
    r"_*k?v?free(_rcu)?|kmem_cache_free\w*|_*slab_free\w*|_*free_(unref_)?(page|folio)\w*"
)
"""Functions that switch tasks, wake them, wait for others, run a function on a CPU, or allocate, clear and
free memory, in a time that does not depend on how much there is: the caller says what for. The allocator of
per-CPU memory is not among them: it searches.
"""


@dataclass(frozen=True)
class Function:
    """A function and how its own time grows. ``share`` is that of all time at the largest size.

    ``callers``: the nearest first. ``no_interrupts``: the share of its time in which the CPU took no
    interrupts; such time is attributed to the function that enables them again.
    """

    name: str
    share: float
    exponent: float | None
    callers: tuple[str, ...]
    no_interrupts: float

    @property
    def place(self) -> str:
        """Where the time was spent, which two kinds have in common if they are the same find."""
        chain = (self.name, *self.callers)
        return f"{next(filter(_says_what, chain), self.name)}()"


def _says_what(function: str) -> bool:
    """Return whether the name of a function says what is done, and not only how."""
    return not _ENABLES.search(function) and not _ON_BEHALF.fullmatch(function)


def growing_functions(boots: Sequence[BootRecords]) -> dict[Case, Function]:
    """Return for each case the function whose own time grew most, among those that grow steeply if any do."""
    by_case: dict[Case, dict[int, Stretches]] = {}
    for stretches in collect(boots):
        params = dict(stretches.key)
        by_case.setdefault(case_of(params), {})[int(params["objects"])] = stretches
    return {case: found for case, sizes in by_case.items() if (found := _growing(sizes)) is not None}


def _growing(sizes: dict[int, Stretches]) -> Function | None:
    numbers = sorted(sizes)
    costs = [FunctionCosts(sizes[number]) for number in numbers]
    last = costs[-1]
    before = costs[-2] if len(costs) > 1 else None
    found: list[tuple[bool, float, Function]] = []
    for name in last.functions - {_USER}:
        times = [each.own(name) for each in costs]
        fitted = growth(numbers, times)
        grown = times[-1].ns - (before.own(name).ns if before else 0.0)
        callers = () if _says_what(name) else last.chain_to(name, _says_what)
        function = Function(
            name,
            last.share(name),
            fitted.exponent if fitted else None,
            callers or last.callers(name),
            last.no_interrupts(name),
        )
        found.append((bool(fitted and fitted.exponent >= _STEEP and grown > 0), grown, function))
    steep = [each for each in found if each[0] and each[2].share > 0.1] or found
    return max(steep, key=lambda each: each[1])[2] if steep else None
