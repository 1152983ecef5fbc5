"""Which locks are held during a release, on a kernel with lock statistics."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kteardown.errors import InputError
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source_name import split
from kteardown.paths import cache_dir
from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.catalogue import Cost
from kteardown_hunt.folder import Request, case_of, requests_of
from kteardown_hunt.plan import Case
from kteardown_hunt.result import Find, LockResult

FRAGMENT = "lockstat"
LOCK_COSTS: Final[dict[Cost, tuple[str, str]]] = {
    "sync": ("locks_release", "elapsed_ns"),
    "deferred": ("locks_deferred", "deferred_ns"),
    "make": ("locks_making", "make_ns"),
}
"""By cost, the invariant whose detail has the locks (``agent/hunt/hunt.c``), and the metric of
their time."""
MOST = 3
_MOSTLY = 0.5
"""Locks besides the first are named if they are held for more than this share of the time."""


def advice(name: str, finds: Sequence[Find], request: Request) -> str:
    """Return the sentence that says how hunt ``name`` can name the locks; empty if it has no find
    for it."""
    if all(find.cost not in LOCK_COSTS for find in finds):
        return ""
    # What Debian builds, it has the source of.
    source = request.source.replace("debian-image:", "debian:")
    command = f"kteardown hunt --resume {name} --locks "
    if not _is_built(source):
        return f"to see which locks are held: {command}SOURCE"
    cost = build.cost([request_of(source, request.config, request.compiler)], cache_dir=cache_dir())
    minutes = f"about {max(1, round(cost.seconds / 60))}" if cost.seconds else "6 to 12"
    takes = (
        f"; building its kernel with lock statistics takes {minutes} min" if cost.kernels else ""
    )
    return f"to see which locks are held: {command}{shlex.quote(source)}{takes}"


def check_locks(locks: str) -> None:
    """Check that ``locks`` is empty or can be built with lock statistics. Raises InputError."""
    if locks and not _is_built(locks):
        raise InputError(
            f"--locks {locks}: a prebuilt kernel does not count how long locks are held",
            hint=(
                "name the same version as a source that kteardown builds: debian:X.Y, git:PATH@REV "
                "or tar:FILE."
            ),
        )


def request_of(source: str, config: Sequence[str], compiler: str = "") -> KernelRequest:
    """Return the request for ``source`` with lock statistics, under its own name. Raises
    InputError."""
    plain = requests_of(source, (), (*config, FRAGMENT), compiler=compiler)[0]
    return replace(plain, name=f"{source} with lock statistics")


def held_locks(boots: Iterable[BootRecords]) -> dict[tuple[Case, Cost], tuple[LockResult, ...]]:
    """Return the locks of each case and cost: the one held for longest, then others held for most
    of it."""
    locks_by_cost: dict[tuple[Case, Cost], tuple[LockResult, ...]] = {}
    for trial in (trial for boot in boots for trial in trials(boot.records) if trial.usable):
        for cost, (invariant, metric) in LOCK_COSTS.items():
            # Of the repetition that counts, which comes after a warm-up.
            text, (*_, time_ns) = trial.details.get(invariant, ""), trial.samples.get(metric, [0.0])
            if locks := _locks(text, time_ns):
                locks_by_cost[case_of(trial.params), cost] = locks
    return locks_by_cost


def _locks(text: str, of_ns: float) -> tuple[LockResult, ...]:
    """Return the locks of the detail of an invariant; their shares are of ``of_ns``."""
    if not text or of_ns <= 0:
        return ()
    locks = []
    for line in text.splitlines():
        held, longest, how, name = line.split(" ", 3)
        # Several locks of one class can be held at once, and counting begins a little earlier.
        share = min(1.0, int(held) / of_ns)
        locks.append(
            LockResult(name=name, reading=how == "reading", share=share, longest_ns=int(longest))
        )
    return tuple(
        lock for number, lock in enumerate(locks[:MOST]) if not number or lock.share > _MOSTLY
    )


def _is_built(source: str) -> bool:
    return split(source.rpartition(" on ")[2])[0] in ("debian", "git", "tar")
