"""A machine that boots nothing: it replays a script, so that its users can be tested without
guests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kteardown.inputs.load import load_workload
from kteardown.model.record import BootEnd, Outcome
from kteardown.run.guest_records import reports_of
from kteardown.vm.job import BootJob

REPORTS = reports_of({"zombies": load_workload("zombies")})
HELLO = json.dumps(
    {
        **{"type": "hello", "protocol": 1, "release": "6.12", "version": "#1", "machine": "x86_64"},
        **{"banner": "Linux", "cpus_online": 1, "cpus_possible": 1, "memory_kb": 1, "cmdline": ""},
    }
).encode()


@dataclass(frozen=True)
class FakeBoot:
    """The behaviour of one boot: the lines that its agent writes after its hello, and its
    outcome."""

    lines: tuple[bytes, ...] = ()
    outcome: Outcome = "ok"
    detail: str = ""
    console: bytes = b""
    duration_s: float = 1.0
    first_record_s: float | None = 0.5
    raises: BaseException | None = None
    """Raised after the lines, instead of an outcome: a failure of the host, or an interrupt."""
    pause_s: float = 0.0
    """The pause before each line, long enough to kill the process between two lines."""


class FakeMachine:
    """Replays the boot that ``script`` returns for each job. Safe to call from several threads."""

    def __init__(self, script: Callable[[BootJob], FakeBoot]) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._stopped = False
        self.jobs: list[BootJob] = []
        """Every booted job, in the order in which they began."""

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Replay the script's boot for ``job``. Raises KeyboardInterrupt after ``stop``."""
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            self.jobs.append(job)
        boot = self._script(job)
        with job.console.create() as console:
            console.write(boot.console)
        for line in (HELLO, *boot.lines) if boot.lines else ():
            time.sleep(boot.pause_s)
            on_line(line)
        if boot.raises is not None:
            raise boot.raises
        return BootEnd(
            outcome=boot.outcome,
            detail=boot.detail,
            duration_s=boot.duration_s,
            first_record_s=boot.first_record_s,
            command=["fake"],
            host_load=0,
        )

    def release(self) -> None:
        """Nothing is held between boots."""

    def stop(self) -> None:
        """Start no further boot."""
        with self._lock:
            self._stopped = True
