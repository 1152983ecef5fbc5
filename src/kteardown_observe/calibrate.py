"""From instructions to time, for one machine: how long it took to release objects whose
instructions are known."""

from dataclasses import dataclass

from kteardown.catalogue.costs import MeasuredCost
from kteardown.catalogue.laws import measured_costs
from kteardown.catalogue.releases import nearest
from kteardown_observe.counts import MachineCounts

CALIBRATIONS = {
    "eventfds": ("eventfds", "exit"),
    "pipes": ("pipes", "exit"),
    "anonymous_pages": ("pages_dropped", "call"),
}
"""The kind of the hunt and the way of its release, by what the collector releases."""

ARCH = "x86_64"
"""Where all laws were measured."""
_LEAST_KINDS = 2
_FASTEST = 0.02
_SLOWEST = 20
"""ns for an instruction: outside, a time says nothing about instructions."""


@dataclass(frozen=True)
class InstructionRate:
    """How many ns one instruction takes on a machine, from the fastest to the slowest kind of
    object."""

    low_ns: float
    high_ns: float
    kinds: tuple[str, ...]


def rate_of(counts: MachineCounts) -> InstructionRate | None:
    """Return the rate of a machine; None if it was not calibrated, or not well enough.

    Of each kind, two numbers of objects were released: their difference leaves out what does not
    depend on the number. The shortest of several times counts, as others can only make it longer.
    The machine must have the architecture of the laws, two kinds must have a rate, and the rates
    must be possible.
    """
    if counts.host.arch != ARCH:
        return None
    by_kind: dict[str, dict[int, float]] = {}
    for calibration in counts.calibration or ():
        by_kind.setdefault(calibration.kind, {})[calibration.objects] = min(calibration.ns)
    rates = {}
    for kind, times in by_kind.items():
        cost = _cost_of(kind, counts.host.release or "")
        few, many = min(times), max(times)
        if cost is None or few == many or times[many] <= times[few]:
            continue
        instructions = cost.at(many)[1] - cost.at(few)[1]
        rates[kind] = (times[many] - times[few]) / instructions
    possible = {kind: rate for kind, rate in rates.items() if _FASTEST <= rate <= _SLOWEST}
    if len(possible) < _LEAST_KINDS:
        return None
    return InstructionRate(min(possible.values()), max(possible.values()), tuple(sorted(possible)))


def _cost_of(kind: str, release: str) -> MeasuredCost | None:
    """Return what the release of a kind costs on the measured kernel that is nearest."""
    name = CALIBRATIONS.get(kind)
    costs = {
        cost.release: cost
        for cost in measured_costs()
        if (cost.kind, cost.way) == name and not cost.series
    }
    near = nearest(release, costs)
    return costs[near[-1]] if near else None
