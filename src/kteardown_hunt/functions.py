"""Which function of a release grows, and how several processes scale."""

import math
import re
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from kteardown.analysis.profile import FunctionCosts, growth
from kteardown.analysis.stretches import Stretches, collect
from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import (
    STEEP,
    half_width,
)
from kteardown_hunt.plan import (
    Case,
)
from kteardown_hunt.result import (
    FunctionResult,
    OwnersResult,
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
_CONFIDENCE = 0.975
"""Of each one-sided bound of the times of several processes: the interval has 95%."""


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


def scalings(boots: Sequence[BootRecords], alone: Mapping[Case, str]) -> tuple[OwnersResult, ...]:
    """Return how each case scales to each number of owners, from the boots of one stage; the
    slowest first.

    ``alone``: by case, the verdict on the release by one process on the instruction clock. One CPU
    has no contention: a release whose instructions are linear can still take a lock of the whole
    machine. So the same boot measures on the wall clock the release by one process and by P
    processes, each on a CPU of its own and with as many objects of its own. The ratio of the two
    times is 1 if they do not hinder each other, and P if they release one after another. More than
    P is a convoy: each object costs more than if the processes had taken turns.
    """
    times: dict[tuple[Case, int], dict[tuple[int, int], float]] = {}
    for boot in boots:
        for trial in trials(boot.records):
            if trial.usable and trial.samples.get("elapsed_ns"):
                key = case_of(trial.params), int(trial.params["owners"])
                at = boot.boot, int(trial.params["objects"])
                times.setdefault(key, {})[at] = median(trial.samples["elapsed_ns"])
    results = [
        result.model_copy(update={"alone": alone.get(case, "")})
        for (case, owners), together in sorted(times.items())
        if owners > 1 and (result := scaling(case, owners, times.get((case, 1), {}), together))
    ]
    return tuple(sorted(results, key=lambda result: result.ratio / result.owners, reverse=True))


def scaling(
    case: Case,
    owners: int,
    alone: Mapping[tuple[int, int], float],
    together: Mapping[tuple[int, int], float],
) -> OwnersResult | None:
    """Return the scaling, from times by boot and number of objects; None with fewer than two boots.

    The ratio is the geometric mean over boots, with its interval by Student's t of the logarithms.
    Closer to one than to ``owners`` is parallel.
    """
    both = [at for at in together if alone.get(at, 0) > 0 and together[at] > 0]
    if len(both) < 2:
        return None
    logs = np.log([together[at] / alone[at] for at in both])
    middle = float(logs.mean())
    width = float(half_width(logs, _CONFIDENCE))
    low = math.exp(middle - width)
    high = math.exp(middle + width)
    between = (1 + owners) / 2
    verdict = "parallel" if high < between else "serial" if low > between else "unknown"
    return OwnersResult(
        **vars(case),
        owners=owners,
        objects=max(at[1] for at in both),
        boots=len(both),
        ratio=math.exp(middle),
        ci=(low, high),
        verdict="convoy" if low > STEEP * owners else verdict,
    )
