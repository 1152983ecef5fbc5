"""Pin a guest to CPUs of the host if its figures would otherwise depend on the host's scheduling.

The processors are those that /sys describes; ``choose`` is pure.
"""

import contextlib
import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.model.record import Placed
from kteardown.paths import read_or_empty
from kteardown.vm.job import HUGE_PAGE_MB, BootJob

_FASTEST = 1024
_lock = threading.Lock()
_guests = Counter[int]()
"""By CPU of the host, how many guests on the instruction clock have it."""


@dataclass(frozen=True)
class Cpu:
    """A CPU that is online and that a guest may use."""

    number: int
    core: tuple[int, ...]
    """The CPUs of its core that are online, itself included: with SMT its siblings, usable or
    not."""
    node: int
    isolated: bool = False
    capacity: int = _FASTEST
    """Its speed compared with that of the fastest CPU, which has 1024."""


def place_guest(cpus: Sequence[Cpu], vcpus: int) -> Placed | None:
    """Return where a guest of ``vcpus`` virtual CPUs runs; None if no node has so many cores and
    one more."""
    # Isolated CPUs come first, then fast ones; the core of CPU 0, to which most interrupts go,
    # comes last.
    placements = []
    for node in sorted({cpu.node for cpu in cpus}):
        of_core: dict[tuple[int, ...], list[Cpu]] = defaultdict(list)
        for cpu in sorted((cpu for cpu in cpus if cpu.node == node), key=_order):
            of_core[cpu.core].append(cpu)
        cores = list(of_core.values())
        if len(cores) > vcpus:
            chosen = [core[0] for core in cores[:vcpus]]
            numbers = tuple(cpu.number for cpu in chosen)
            remaining = [cpu for core in cores[vcpus:] for cpu in core]
            shared = [cpu for cpu in remaining if not cpu.isolated]
            placement = Placed(
                vcpus=numbers,
                siblings=tuple(sorted({n for cpu in chosen for n in cpu.core} - {*numbers})),
                # Tasks are not balanced among isolated CPUs, so they are left out if there are
                # others.
                others=tuple(sorted(cpu.number for cpu in shared or remaining)),
                node=node,
            )
            placements.append(([_order(cpu) for cpu in chosen], placement))
    return min(placements, key=lambda pair: pair[0])[1] if placements else None


def _order(cpu: Cpu) -> tuple[bool, int, bool, int]:
    return (not cpu.isolated, -cpu.capacity, 0 in cpu.core, cpu.number)


def usable(
    affinity: Collection[int],
    online: Collection[int],
    isolated: Collection[int],
    cpuset: Collection[int],
) -> set[int]:
    """Return the CPUs that a guest may use.

    These are the ``affinity`` of this process, and isolated CPUs, which the kernel leaves out of
    every affinity, unless this process was restricted to fewer CPUs than there are.
    """
    restricted = bool({*online} - {*isolated} - {*affinity})
    unlisted = set() if restricted else {*isolated} & {*online} & {*cpuset}
    return {*affinity} | unlisted


def usable_cpus(root: Path = Path("/"), affinity: Collection[int] | None = None) -> list[Cpu]:
    """Return the CPUs that a guest may use on this host, or on that of ``root``; empty if /sys
    lacks them."""
    folder = root / "sys/devices/system"
    online, isolated = (
        cpu_list(read_or_empty(folder / f"cpu/{name}")) for name in ("online", "isolated")
    )
    cpuset = cpu_list(read_or_empty(_cpuset(root))) or online
    allowed = usable(
        os.sched_getaffinity(0) if affinity is None else affinity, online, isolated, cpuset
    )
    nodes = {
        cpu: int(node.name.removeprefix("node"))
        for node in sorted((folder / "node").glob("node[0-9]*"))
        for cpu in cpu_list(read_or_empty(node / "cpulist"))
    }
    cpus = []
    for cpu in sorted(allowed & online):
        cpu_folder = folder / f"cpu/cpu{cpu}"
        names = ("topology/core_cpus_list", "topology/thread_siblings_list")
        core = cpu_list(
            next(filter(None, (read_or_empty(cpu_folder / name) for name in names)), "")
        )
        capacity = int(read_or_empty(cpu_folder / "cpu_capacity").strip() or _FASTEST)
        siblings = tuple(sorted(core & online or {cpu}))
        cpus.append(Cpu(cpu, siblings, nodes.get(cpu, 0), cpu in isolated, capacity))
    return cpus


def cpu_list(text: str) -> set[int]:
    """Return the numbers of a list such as ``0-3,8``; empty if it is not one."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if span:
            numbers.update(range(int(span[1]), int(span[2] or span[1]) + 1))
    return numbers


def _cpuset(root: Path) -> Path:
    """Return the file with the CPUs that the control group of this process may use."""
    for line in read_or_empty(root / "proc/self/cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        group = path.strip("/")
        if controllers == "cpuset":
            return root / "sys/fs/cgroup/cpuset" / group / "cpuset.effective_cpus"
        if (
            number == "0"
            and (file := root / "sys/fs/cgroup" / group / "cpuset.cpus.effective").is_file()
        ):
            return file
    return root / "sys/fs/cgroup/cpuset.cpus.effective"


@dataclass
class Pinned:
    """How a guest is started: ``prefix`` of QEMU's command, and the ``job`` with memory near its
    CPUs."""

    job: BootJob
    prefix: tuple[str, ...] = ()
    placed: Placed | None = None
    """Where it runs; None under emulation."""


@contextlib.contextmanager
def pinned(job: BootJob) -> Iterator[Pinned]:
    """Yield how to start QEMU. Under KVM, this thread stays off the cores of the guest meanwhile.

    On the instruction clock a guest with several virtual CPUs gets one CPU. QEMU's main thread
    wakes up at every timer of the guest. If it runs in parallel with the thread of the virtual CPUs
    at the moment when one of these ends its turn, it may run the next timer before that thread
    does, and so change which virtual CPU runs next. On a host with an idle core, nearly every boot
    that killed some hundred processes had different figures from some trial on; on a busy host, 2
    of 30 boots had. On one CPU, the main thread has nearly always finished before the virtual CPUs
    continue; ``main_loop`` makes it wait besides. A guest with a single virtual CPU is not pinned,
    since nothing can change its order. Virtual CPUs that are possible but never online count.

    Under KVM each virtual CPU gets a core (``choose``) if there are enough. Under emulation in real
    time a guest is not pinned.
    """
    if job.acceleration == "kvm":
        placement = place_guest(usable_cpus(), job.cpus)
        anywhere = Pinned(job, (), Placed(memory=memory_words(job.huge_pages)))
        with placed(job, placement) if placement else contextlib.nullcontext(anywhere) as where:
            yield where
    elif job.acceleration != "icount" or (job.possible_cpus or job.cpus) == 1:
        yield Pinned(job)
    else:
        with _lock:
            allowed = sorted(os.sched_getaffinity(0))
            # Begin at a CPU that depends on the process: parallel labs do not all use the first
            # one.
            first = os.getpid() % len(allowed)
            cpu = min((*allowed[first:], *allowed[:first]), key=lambda cpu: _guests[cpu])
            _guests[cpu] += 1
        try:
            yield Pinned(job, ("taskset", "--cpu-list", str(cpu)))
        finally:
            with _lock:
                _guests[cpu] -= 1


@contextlib.contextmanager
def placed(job: BootJob, placement: Placed) -> Iterator[Pinned]:
    """Yield how to start QEMU so that the guest of ``job`` runs there."""
    # Its memory is of the same node, since the kernel takes it from that of the CPU which first
    # uses a page.
    large = not job.numa_nodes and huge_pages_reserved(job.memory_mb, placement.node)
    near = replace(job, huge_pages=large)
    prefix = ("taskset", "--cpu-list", ",".join(map(str, placement.others)))
    pinned = Pinned(near, prefix, Placed(memory=memory_words(large)))

    def on_vcpus(threads: Sequence[int]) -> None:
        # The first threads are those of the virtual CPUs that come online.
        with contextlib.suppress(OSError):
            for thread, cpu in zip(threads, placement.vcpus, strict=False):
                os.sched_setaffinity(thread, {cpu})
            if len(threads) >= len(placement.vcpus):
                pinned.placed = placement.model_copy(update={"memory": memory_words(large)})
        if job.on_vcpus:
            job.on_vcpus(threads)

    pinned.job = replace(near, on_vcpus=on_vcpus)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.others)
    try:
        yield pinned
    finally:
        os.sched_setaffinity(0, before)


def huge_pages_reserved(memory_mb: int, node: int | None, root: Path = Path("/")) -> bool:
    """Return whether enough huge pages are reserved and free on a node of the host for a whole
    guest."""
    file = root / f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages"
    return (
        memory_mb % HUGE_PAGE_MB == 0
        and int(read_or_empty(file).strip() or 0) * HUGE_PAGE_MB >= memory_mb
    )


def memory_words(from_reserved: bool, root: Path = Path("/")) -> str:
    """Return what the memory of a guest is made of. QEMU asks for transparent huge pages by
    itself."""
    if from_reserved:
        return f"reserved pages of {HUGE_PAGE_MB} MB"
    enabled = read_or_empty(root / "sys/kernel/mm/transparent_hugepage/enabled")
    transparent = "[always]" in enabled or "[madvise]" in enabled
    return "transparent huge pages where the host finds some" if transparent else "small pages"
