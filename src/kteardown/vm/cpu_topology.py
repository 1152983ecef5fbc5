"""The processors of a host as /sys describes them, and which of them a guest gets. The choice is pure."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.paths import read_or_empty

_FASTEST = 1024


@dataclass(frozen=True)
class Cpu:
    """A CPU that is online and that a guest may use."""

    number: int
    core: tuple[int, ...]
    """The CPUs of its core that are online, itself included: with SMT its siblings, usable or not."""
    node: int
    isolated: bool = False
    capacity: int = _FASTEST
    """Its speed compared with that of the fastest CPU, which has 1024."""


@dataclass(frozen=True)
class Placement:
    """The CPUs of a host for one guest, all of one node.

    ``vcpus`` has one for each virtual CPU, each of another core; ``siblings`` are the other CPUs of these
    cores, on which nothing of the guest runs. ``others`` are for QEMU's other threads and for the lab.
    """

    vcpus: tuple[int, ...]
    siblings: tuple[int, ...]
    others: tuple[int, ...]
    node: int


def choose(cpus: Sequence[Cpu], vcpus: int) -> Placement | None:
    """Return where a guest of ``vcpus`` virtual CPUs runs; None if no node has so many cores and one more.

    Isolated CPUs come first, then fast ones; the core of CPU 0, to which most interrupts go, comes last.
    """
    found = []
    for node in sorted({cpu.node for cpu in cpus}):
        of_core: dict[tuple[int, ...], list[Cpu]] = defaultdict(list)
        for cpu in sorted((cpu for cpu in cpus if cpu.node == node), key=_order):
            of_core[cpu.core].append(cpu)
        cores = list(of_core.values())
        if len(cores) > vcpus:
            chosen = [core[0] for core in cores[:vcpus]]
            numbers = tuple(cpu.number for cpu in chosen)
            rest = [cpu for core in cores[vcpus:] for cpu in core]
            shared = [cpu for cpu in rest if not cpu.isolated]
            placement = Placement(
                vcpus=numbers,
                siblings=tuple(sorted({n for cpu in chosen for n in cpu.core} - {*numbers})),
                # Tasks are not balanced among isolated CPUs, so they are left out if there are others.
                others=tuple(sorted(cpu.number for cpu in shared or rest)),
                node=node,
            )
            found.append(([_order(cpu) for cpu in chosen], placement))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _order(cpu: Cpu) -> tuple[bool, int, bool, int]:
    return (not cpu.isolated, -cpu.capacity, 0 in cpu.core, cpu.number)


def usable(
    affinity: Collection[int], online: Collection[int], isolated: Collection[int], cpuset: Collection[int]
) -> set[int]:
    """Return the CPUs that a guest may use.

    These are the ``affinity`` of this process, and isolated CPUs, which the kernel leaves out of every
    affinity, unless this process was restricted to fewer CPUs than there are.
    """
    restricted = bool({*online} - {*isolated} - {*affinity})
    more = set() if restricted else {*isolated} & {*online} & {*cpuset}
    return {*affinity} | more


def read(root: Path = Path("/"), affinity: Collection[int] | None = None) -> list[Cpu]:
    """Return the CPUs that a guest may use on this host, or on that of ``root``; empty if /sys lacks them.

    ``affinity`` is that of this process by default.
    """
    folder = root / "sys/devices/system"
    online, isolated = (cpu_list(read_or_empty(folder / f"cpu/{name}")) for name in ("online", "isolated"))
    cpuset = cpu_list(read_or_empty(_cpuset(root))) or online
    allowed = usable(os.sched_getaffinity(0) if affinity is None else affinity, online, isolated, cpuset)
    nodes = {
        cpu: int(node.name.removeprefix("node"))
        for node in sorted((folder / "node").glob("node[0-9]*"))
        for cpu in cpu_list(read_or_empty(node / "cpulist"))
    }
    return [
        Cpu(
            number=cpu,
            core=tuple(sorted(_core(folder, cpu) & online or {cpu})),
            node=nodes.get(cpu, 0),
            isolated=cpu in isolated,
            capacity=int(read_or_empty(folder / f"cpu/cpu{cpu}/cpu_capacity").strip() or _FASTEST),
        )
        for cpu in sorted(allowed & online)
    ]


def cpu_list(text: str) -> set[int]:
    """Return the numbers of a list such as ``0-3,8``; empty if it is not one."""
    found: set[int] = set()
    for part in text.strip().split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if span:
            found.update(range(int(span[1]), int(span[2] or span[1]) + 1))
    return found


def _core(folder: Path, cpu: int) -> set[int]:
    topology = folder / f"cpu/cpu{cpu}/topology"
    return cpu_list(
        read_or_empty(topology / "core_cpus_list") or read_or_empty(topology / "thread_siblings_list")
    )


def _cpuset(root: Path) -> Path:
    """Return the file with the CPUs that the control group of this process may use."""
    for line in read_or_empty(root / "proc/self/cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        own = path.strip("/")
        if controllers == "cpuset":
            return root / "sys/fs/cgroup/cpuset" / own / "cpuset.effective_cpus"
        if number == "0" and (file := root / "sys/fs/cgroup" / own / "cpuset.cpus.effective").is_file():
            return file
    return root / "sys/fs/cgroup/cpuset.cpus.effective"
