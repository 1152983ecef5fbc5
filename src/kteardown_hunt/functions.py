"""Which function of a release grows."""

import re
from collections.abc import Mapping, Sequence

from kteardown.analysis.profile import FunctionCosts, growth
from kteardown.analysis.stretches import Stretches, collect
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.folder import case_of
from kteardown_hunt.plan import (
    Case,
)
from kteardown_hunt.result import (
    FunctionResult,
)

_STEEP_FUNCTION = 1.5
"""The own time of the function that is looked for grows at least with this exponent."""

_USER = "[user]"
_ENABLES = re.compile(r"unlock|irq_enable|irq_restore|irqrestore")
"""Functions that enable interrupts again; where the compiler inlines them, their caller is
sampled."""
_ON_BEHALF = re.compile(
    r"finish_task_switch|_*schedule(_\w+)?|_*wait_for_com\w+|_*wake_up(_\w+)?|"
    r"generic_exec_single|_*smp_call_function_\w+|"
    r"_*wait_rcu_gp|_*synchronize_s?rcu\w*|"
    r"clear_(high)?pages?(_\w+)?|get_page_from_freelist|_*alloc_pages\w*|allocate_slab|_*slab_alloc\w*|"
    r"_*kv?malloc\w*|kmem_cache_alloc\w*|"
    r"_*k?v?free(_rcu)?|kmem_cache_free\w*|_*slab_free\w*|_*free_(unref_)?(page|folio)\w*"
)
"""Functions that switch tasks, wake them, wait for others, run a function on a CPU, or allocate,
clear and free memory, in a time that does not depend on how much there is: the caller says what
for. The allocator of per-CPU memory is not among them: it searches.
"""


def _says_what(function: str) -> bool:
    """Return whether the name of a function says what is done, and not only how."""
    return not _ENABLES.search(function) and not _ON_BEHALF.fullmatch(function)


def place_of(name: str, callers: tuple[str, ...]) -> str:
    """Return the place of a function's time: itself, or the nearest caller that says what is
    done."""
    return f"{next(filter(_says_what, (name, *callers)), name)}()"


def growing_functions(boots: Sequence[BootRecords]) -> dict[Case, FunctionResult]:
    """Return for each case the function whose own time grew most, among those that grow steeply if
    any do."""
    by_case: dict[Case, dict[int, Stretches]] = {}
    for stretches in collect(boots):
        params = dict(stretches.key)
        by_case.setdefault(case_of(params), {})[int(params["objects"])] = stretches
    return {
        case: function
        for case, sizes in by_case.items()
        if (function := _growing(sizes)) is not None
    }


def _growing(sizes: Mapping[int, Stretches]) -> FunctionResult | None:
    numbers = sorted(sizes)
    costs = [FunctionCosts(sizes[number]) for number in numbers]
    last = costs[-1]
    before = costs[-2] if len(costs) > 1 else None
    candidates: list[tuple[bool, float, FunctionResult]] = []
    for name in last.functions - {_USER}:
        times = [cost.own(name) for cost in costs]
        fitted = growth(numbers, times)
        grown = times[-1].ns - (before.own(name).ns if before else 0.0)
        function = _result(last, name, last.share(name), fitted[0] if fitted else None)
        candidates.append(
            (bool(fitted and fitted[0] >= _STEEP_FUNCTION and grown > 0), grown, function)
        )
    steep = [
        candidate for candidate in candidates if candidate[0] and candidate[2].share > 0.1
    ] or candidates
    return max(steep, key=lambda candidate: candidate[1])[2] if steep else None


def _result(
    costs: FunctionCosts, name: str, share: float, exponent: float | None
) -> FunctionResult:
    chain = () if _says_what(name) else costs.chain_to(name, _says_what)
    callers = chain or costs.callers(name)
    return FunctionResult(
        name=name,
        share=share,
        exponent=exponent,
        callers=callers,
        no_interrupts=costs.no_interrupts(name),
        place=place_of(name, callers),
    )


def paying_function(
    all_there: Stretches, subtracted: Sequence[Stretches], added: Sequence[Stretches] = ()
) -> FunctionResult | None:
    """Return the function whose own time is most of what is paid for residents; None without it.

    What is paid is the time in ``all_there``, minus that in each of ``subtracted``, plus that in
    each of ``added`` (``hunt.stays``). The share is that of all that is paid.
    """
    last = FunctionCosts(all_there)
    less = [FunctionCosts(stretches) for stretches in subtracted]
    more = [FunctionCosts(stretches) for stretches in added]
    extras = {
        name: last.own(name).ns
        - sum(costs.own(name).ns for costs in less)
        + sum(costs.own(name).ns for costs in more)
        for name in last.functions - {_USER}
    }
    paid = sum(extra for extra in extras.values() if extra > 0)
    if paid <= 0:
        return None
    name = max(extras, key=lambda name: extras[name])
    return _result(last, name, extras[name] / paid, None)
