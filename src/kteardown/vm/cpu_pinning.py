"""Pin a guest to one CPU of the host if its figures would otherwise depend on the host's scheduling."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator

from kteardown.vm.job import BootJob


class CpuPinning:
    """Assigns one CPU of the host to each guest with several virtual CPUs on the instruction clock.

    QEMU's main thread wakes up at every timer of the guest. If it runs in parallel with the thread of the
    virtual CPUs at the moment when one of these ends its turn, it may run the next timer before that thread
    does, and so change which virtual CPU runs next. On a host with an idle core, nearly every boot that
    killed some hundred processes had different figures from some trial on; on a busy host, 2 of 30 boots had.
    On one CPU, the main thread has nearly always finished before the virtual CPUs continue. A guest with a
    single virtual CPU is not pinned, since nothing can change its order. Virtual CPUs that are possible but
    never online count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests = Counter[int]()

    @contextlib.contextmanager
    def pinned(self, job: BootJob) -> Iterator[tuple[str, ...]]:
        """Yield the command prefix that pins QEMU to the least used CPU; empty if it need not be pinned."""
        if job.acceleration != "icount" or (job.possible_cpus or job.cpus) == 1:
            yield ()
            return
        with self._lock:
            allowed = sorted(os.sched_getaffinity(0))
            # Start at a CPU that depends on the process, so that parallel labs do not all use the first one.
            first = os.getpid() % len(allowed)
            cpu = min((*allowed[first:], *allowed[:first]), key=lambda cpu: self._guests[cpu])
            self._guests[cpu] += 1
        try:
            yield ("taskset", "--cpu-list", str(cpu))
        finally:
            with self._lock:
                self._guests[cpu] -= 1
