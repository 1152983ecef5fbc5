"""Pin a guest to CPUs of the host if its figures would otherwise depend on the host's scheduling."""

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kteardown.model.record import Placed
from kteardown.paths import read_or_empty
from kteardown.vm import cpu_topology
from kteardown.vm.cpu_topology import Placement
from kteardown.vm.job import HUGE_PAGE_MB, BootJob


@dataclass
class Pinned:
    """How a guest is started: ``prefix`` of QEMU's command, and the ``job`` with memory near its CPUs."""

    job: BootJob
    prefix: tuple[str, ...] = ()
    placed: Placed | None = None
    """Where it runs; None under emulation."""


class CpuPinning:
    """Assigns CPUs of the host to guests.

    On the instruction clock a guest with several virtual CPUs gets one CPU. QEMU's main thread wakes up at
    every timer of the guest. If it runs in parallel with the thread of the virtual CPUs at the moment when
    one of these ends its turn, it may run the next timer before that thread does, and so change which virtual
    CPU runs next. On a host with an idle core, nearly every boot that killed some hundred processes had
    different figures from some trial on; on a busy host, 2 of 30 boots had. On one CPU, the main thread has
    nearly always finished before the virtual CPUs continue; ``main_loop`` makes it wait besides. A guest with
    a single virtual CPU is not pinned, since nothing can change its order. Virtual CPUs that are possible but
    never online count.

    Under KVM each virtual CPU gets a core (``cpu_topology``) if there are enough. Under emulation in real
    time a guest is not pinned.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests = Counter[int]()

    @contextlib.contextmanager
    def pinned(self, job: BootJob) -> Iterator[Pinned]:
        """Yield how to start QEMU. Under KVM, this thread stays off the cores of the guest meanwhile."""
        if job.acceleration == "kvm":
            placement = cpu_topology.choose(cpu_topology.read(), job.cpus)
            anywhere = Pinned(job, (), Placed(memory=memory_words(job.huge_pages)))
            with placed(job, placement) if placement else contextlib.nullcontext(anywhere) as pinned:
                yield pinned
        elif job.acceleration != "icount" or (job.possible_cpus or job.cpus) == 1:
            yield Pinned(job)
        else:
            with self._lock:
                allowed = sorted(os.sched_getaffinity(0))
                # Begin at a CPU that depends on the process: parallel labs do not all use the first one.
                first = os.getpid() % len(allowed)
                cpu = min((*allowed[first:], *allowed[:first]), key=lambda cpu: self._guests[cpu])
                self._guests[cpu] += 1
            try:
                yield Pinned(job, ("taskset", "--cpu-list", str(cpu)))
            finally:
                with self._lock:
                    self._guests[cpu] -= 1


@contextlib.contextmanager
def placed(job: BootJob, placement: Placement) -> Iterator[Pinned]:
    """Yield how to start QEMU so that the guest of ``job`` runs there.

    Its memory is of the same node, since the kernel takes it from that of the CPU which first uses a page.
    """
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
                pinned.placed = Placed(memory=memory_words(large), **asdict(placement))
        if job.on_vcpus:
            job.on_vcpus(threads)

    pinned.job = replace(near, on_vcpus=on_vcpus)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.others)
    try:
        yield pinned
    finally:
        os.sched_setaffinity(0, before)


def huge_pages_reserved(memory_mb: int, node: int, root: Path = Path("/")) -> bool:
    """Return whether enough huge pages are reserved and free on a node of the host for a whole guest."""
    file = root / f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages"
    try:
        free_mb = int(file.read_text()) * HUGE_PAGE_MB
    except (OSError, ValueError):
        return False
    return memory_mb % HUGE_PAGE_MB == 0 and free_mb >= memory_mb


def memory_words(from_reserved: bool, root: Path = Path("/")) -> str:
    """Return what the memory of a guest is made of. QEMU asks for transparent huge pages by itself."""
    if from_reserved:
        return f"reserved pages of {HUGE_PAGE_MB} MB"
    enabled = read_or_empty(root / "sys/kernel/mm/transparent_hugepage/enabled")
    transparent = "[always]" in enabled or "[madvise]" in enabled
    return "transparent huge pages where the host finds some" if transparent else "small pages"
