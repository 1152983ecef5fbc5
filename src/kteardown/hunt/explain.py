"""Why a cost grows: the function whose own time grows, from a profile at several sizes."""

import re
from collections.abc import Sequence

from kteardown.analysis.profile import FunctionCosts, Stretches, collect, growth
from kteardown.hunt.measure import case_of
from kteardown.hunt.plan import Case
from kteardown.hunt.result import FunctionResult
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


def _says_what(function: str) -> bool:
    """Return whether the name of a function says what is done, and not only how."""
    return not _ENABLES.search(function) and not _ON_BEHALF.fullmatch(function)


def function_of(
    name: str, share: float, exponent: float | None, callers: tuple[str, ...], no_interrupts: float
) -> FunctionResult:
    """Return a function with the place of its time: itself, or the nearest caller that says what is done."""
    place = f"{next(filter(_says_what, (name, *callers)), name)}()"
    return FunctionResult(
        name=name, share=share, exponent=exponent, callers=callers, no_interrupts=no_interrupts, place=place
    )


def growing_functions(boots: Sequence[BootRecords]) -> dict[Case, FunctionResult]:
    """Return for each case the function whose own time grew most, among those that grow steeply if any do."""
    by_case: dict[Case, dict[int, Stretches]] = {}
    for stretches in collect(boots):
        params = dict(stretches.key)
        by_case.setdefault(case_of(params), {})[int(params["objects"])] = stretches
    return {case: found for case, sizes in by_case.items() if (found := _growing(sizes)) is not None}


def _growing(sizes: dict[int, Stretches]) -> FunctionResult | None:
    numbers = sorted(sizes)
    costs = [FunctionCosts(sizes[number]) for number in numbers]
    last = costs[-1]
    before = costs[-2] if len(costs) > 1 else None
    found: list[tuple[bool, float, FunctionResult]] = []
    for name in last.functions - {_USER}:
        times = [each.own(name) for each in costs]
        fitted = growth(numbers, times)
        grown = times[-1].ns - (before.own(name).ns if before else 0.0)
        callers = () if _says_what(name) else last.chain_to(name, _says_what)
        function = function_of(
            name,
            last.share(name),
            fitted.exponent if fitted else None,
            callers or last.callers(name),
            last.no_interrupts(name),
        )
        found.append((bool(fitted and fitted.exponent >= _STEEP and grown > 0), grown, function))
    steep = [each for each in found if each[0] and each[2].share > 0.1] or found
    return max(steep, key=lambda each: each[1])[2] if steep else None
