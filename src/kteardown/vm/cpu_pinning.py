"""On which CPU of the host a guest runs, where that decides whether its figures are exact."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator

from kteardown.vm.job import BootJob


class Cores:
    """Gives each guest of several virtual CPUs on the instruction clock one CPU of the host.

    QEMU's main thread wakes up at every timer of the guest. Where it runs beside the thread of the virtual
    CPUs while one of these is just done with its turn, it may run the next timer before that thread does,
    and so change which virtual CPU goes on: on a host with an idle core nearly every boot that killed some
    hundred processes had other figures from some trial on; on a busy one 2 of 30. On one CPU the main thread
    has nearly always done its work before the virtual CPUs go on. One virtual CPU alone leaves nothing to
    choose; one that is only possible, and never online, is one of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests = Counter[int]()

    @contextlib.contextmanager
    def place(self, job: BootJob) -> Iterator[tuple[str, ...]]:
        """The words in front of QEMU's command that put it on the least used CPU; none where it may roam."""
        if job.acceleration != "icount" or (job.possible_cpus or job.cpus) == 1:
            yield ()
            return
        with self._lock:
            allowed = sorted(os.sched_getaffinity(0))
            # Labs that run side by side do not all begin with the first CPU.
            begin = os.getpid() % len(allowed)
            cpu = min((*allowed[begin:], *allowed[:begin]), key=lambda cpu: self._guests[cpu])
            self._guests[cpu] += 1
        try:
            yield ("taskset", "--cpu-list", str(cpu))
        finally:
            with self._lock:
                self._guests[cpu] -= 1
