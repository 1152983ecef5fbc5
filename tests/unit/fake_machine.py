"""A machine that boots nothing: it plays a script, so that what uses machines can be tested alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kteardown.model.record import Outcome
from kteardown.vm.job import BootJob, BootResult


@dataclass(frozen=True)
class FakeBoot:
    """What one boot does: the lines that its agent writes, and how it ends."""

    lines: tuple[bytes, ...] = ()
    outcome: Outcome = "ok"
    detail: str = ""
    console: bytes = b""
    duration_s: float = 1.0
    first_record_s: float | None = 0.5
    raises: BaseException | None = None
    """Raised after the lines, in place of an end: the lab's own failure, or an interrupt."""
    pause_s: float = 0.0
    """Before each line: long enough for a lab to be killed between two."""


class FakeMachine:
    """Boots by asking ``script`` what each job does. May be used from several threads at once."""

    def __init__(self, script: Callable[[BootJob], FakeBoot]) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._stopped = False
        self.jobs: list[BootJob] = []
        """Every job booted, in the order in which they began."""

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        """Play the script's boot for ``job``. Raises KeyboardInterrupt after ``stop``."""
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            self.jobs.append(job)
        boot = self._script(job)
        job.console.write_bytes(boot.console)
        for line in boot.lines:
            time.sleep(boot.pause_s)
            on_line(line)
        if boot.raises is not None:
            raise boot.raises
        return BootResult(boot.outcome, boot.detail, boot.duration_s, boot.first_record_s, ("fake",))

    def stop(self) -> None:
        """Let no further boot begin."""
        with self._lock:
            self._stopped = True
