"""One line that says how the time of a result was made, and what it distorts."""

from collections.abc import Mapping, Sequence

from kteardown.model.record import Placed
from kteardown.model.result import Result
from kteardown.model.timing import LostShares, Made, Timing

_MADE: Mapping[Made, str] = {
    "instruction clock": "the instruction clock: QEMU counts the guest's instructions, one for each "
    "nanosecond, and nothing of the host reaches a figure",
    "kvm": "KVM on {processor}",
    "nested kvm": "nested KVM on {processor}: the host is itself a guest ({hypervisor})",
    "mttcg": "emulated real time (mttcg) on {processor}",
}
_DISTORTED: Mapping[Made, str] = {
    "nested kvm": "nested KVM distorts what leaves the guest: page faults and TLB misses go through a "
    "further page table, and timers, interrupts between CPUs, halts and devices through a further "
    "hypervisor. Time inside the guest's own code is that of the processor; costs of waking, sleeping and "
    "mapping memory are several times those of hardware, and so are their shares in a change",
    "mttcg": "emulated real time distorts everything that is not the number of instructions: there are no "
    "caches, a TLB miss and an atomic instruction have other costs, and an interrupt between CPUs waits for "
    "the end of a translated block",
}


def timing_lines(result: Result) -> list[str]:
    """Return how the time was made as one line, and a warning for each way that distorts it.

    Empty for a result that did not record it.
    """
    return lines_of(result.timing) if result.timing is not None else []


def lines_of(timing: Timing) -> list[str]:
    """Return the same of a timing."""
    names = {
        "processor": timing.processor or "an unknown processor",
        "hypervisor": "unnamed" if timing.hypervisor in (None, "yes") else timing.hypervisor,
    }
    how = "; ".join(_MADE[made].format(**names) for made in timing.made)
    if timing.made == ("instruction clock",):
        return [how]
    places = dict.fromkeys(_place(placed) for placed in timing.placed)
    parts = [how, *_settings(timing), *places, *_load(timing), *_lost(timing)]
    warnings = [f"warning: {_DISTORTED[made]}" for made in timing.made if made in _DISTORTED]
    return ["; ".join(parts), *warnings]


def _settings(timing: Timing) -> list[str]:
    turbo = "unknown" if timing.turbo is None else "on" if timing.turbo else "off"
    known = [
        f"governor {timing.governor or 'unknown'}",
        f"turbo {turbo}",
        f"SMT {timing.smt or 'unknown'}",
        f"isolated CPUs {timing.isolated or 'none'}",
    ]
    if timing.mitigated is not None:
        known.append(f"{timing.mitigated} mitigations, {timing.vulnerable} vulnerabilities without one")
    clocks = [f"clock source of the guests {', '.join(timing.clocksource)}"] if timing.clocksource else []
    return [*known, *clocks]


def _place(placed: Placed) -> str:
    """Return in words where guests ran, and of what their memory was."""
    memory = f"memory of {placed.memory}"
    if not placed.vcpus:
        return f"guests not pinned, for want of cores of one node with one to spare; {memory}"
    free = f", and nothing of the guest on {_cpus(placed.siblings)} of the same cores"
    return (
        f"virtual CPUs pinned to {_cpus(placed.vcpus)} of node {placed.node}"
        f"{free if placed.siblings else ''}; {memory}"
    )


def _cpus(numbers: Sequence[int]) -> str:
    return f"CPU{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _load(timing: Timing) -> list[str]:
    if timing.load is None:
        return []
    least, median, most = timing.load
    return [f"load of the host {least:.1f} to {most:.1f}, median {median:.1f}, of which a guest is about 1"]


def _lost(timing: Timing) -> list[str]:
    if not timing.lost:
        return ["what trials lost to other work of the host is not recorded"]
    count, most = sum(of.trials for of in timing.lost), max(of.most for of in timing.lost)
    medians = [of.median for of in timing.lost]
    span = " to ".join(dict.fromkeys((f"{min(medians):.1%}", f"{max(medians):.1%}")))
    found = [f"of their time {count} trials lost {most:.1%} at most, median by kernel {span}"]
    if timing.lost_limit is not None:
        found.append(_repeated(timing.lost_limit, timing.lost))
    return found


def _repeated(limit: float, lost: Sequence[LostShares]) -> str:
    """Return how many trials lost more than the limit, and how many of them are void."""
    by_kernel = ", ".join(f"{of.kernel} {of.disturbed} of {of.trials}" for of in lost)
    void, count = sum(of.void for of in lost), sum(of.disturbed for of in lost)
    if not count:
        return f"none lost more than {limit * 100:g}%"
    return f"those that lost more than {limit * 100:g}% were repeated ({by_kernel}), and {void} are void"
