"""The jobs of one run in the queue of a scheduler, which may not answer for a while."""

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from kteardown_cluster.slurm import WORDS, Job, Node, Slurm, Submission, UnreachableError

_T = TypeVar("_T")
_BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_LEAVE_S = 60.0
_SAY_AGAIN_S = 3600.0


@dataclass
class Queue:
    """What ``scheduler`` has of the jobs of a run. It is asked until it answers, or until
    ``stopped``."""

    scheduler: Slurm
    name: str
    """That of each of these jobs."""
    note: Callable[[str], None]
    sleep: Callable[[float], None]
    now: Callable[[], float]
    stopped: Callable[[], bool]
    _said: set[str] = field(default_factory=set)
    _reasons: dict[str, float] = field(default_factory=dict)
    """When it was last said that jobs wait, by the scheduler's reason."""

    def nodes(self) -> list[Node]:
        return self._patiently(self.scheduler.nodes)

    def live(self) -> list[Job]:
        """Return the jobs that wait or run."""
        jobs = self._patiently(lambda: self.scheduler.jobs(self.name))
        return [job for job in jobs if job.live]

    def submit(self, submission: Submission) -> str:
        """Submit a job, and return its number. Raises LabError if the scheduler refuses it."""
        return self._patiently(lambda: self.scheduler.submit(submission))

    def poll(self) -> dict[str, Job] | None:
        """Return the jobs by their comment, or None if the scheduler does not answer now."""
        try:
            jobs = self.scheduler.jobs(self.name)
        except UnreachableError as error:
            self._say_unreachable(error)
            return None
        self._said = {said for said in self._said if "does not answer" not in said}
        by_comment: dict[str, Job] = {}
        for job in jobs:
            # Of two jobs of one attempt, one that is live.
            if job.comment not in by_comment or job.live:
                by_comment[job.comment] = job
        return by_comment

    def leave(self, pause_s: float) -> None:
        """Cancel what is left of attempts that were given up."""
        until = self.now() + _LEAVE_S
        while left := self.live():
            if self.now() >= until:
                jobs = f"Slurm did not cancel {jobs_text(len(left))} of the run"
                self.note(f"{jobs}; look at `squeue --name={self.name}`")
                break
            self._patiently(lambda: self.scheduler.cancel(self.name))
            self.sleep(pause_s)

    def say_what_waits(self, jobs: Collection[Job], *, patient: bool) -> None:
        """Note why ``jobs`` wait: if they would for ever, and otherwise unless ``patient`` or one
        runs."""
        waiting = Counter(job.reason for job in jobs if job.state == "PENDING")
        running = waiting.total() < len(jobs)
        now = self.now()
        words = ", ".join(f"{reason} ({count})" for reason, count in waiting.most_common())
        unsaid = any(
            now - self._reasons.get(reason, -math.inf) > _SAY_AGAIN_S for reason in waiting
        )
        stuck = any(reason in WORDS["never"] or "held" in reason.lower() for reason in waiting)
        if unsaid and (stuck or not (running or patient)):
            self._reasons |= dict.fromkeys(waiting, now)
            said = jobs_text(waiting.total(), "wait")
            self.note(f"{said} in the queue of {self.scheduler.words}: {words}")

    def say_once(self, text: str) -> None:
        """Note ``text`` unless that was done."""
        if text not in self._said:
            self._said.add(text)
            self.note(text)

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        pauses = iter(_BACKOFF_S)
        while True:
            try:
                return ask()
            except UnreachableError as error:
                self._say_unreachable(error)
                if self.stopped():
                    raise KeyboardInterrupt from None
                self.sleep(next(pauses, _BACKOFF_S[-1]))

    def _say_unreachable(self, error: UnreachableError) -> None:
        self.say_once(f"{self.scheduler.words} does not answer: {error}; asking again")


def jobs_text(count: int, verb: str = "") -> str:
    """Return a number of jobs in words, with what they do."""
    return (
        f"{count} job {verb}s"
        if verb and count == 1
        else f"{count} job{'s' * (count != 1)} {verb}".rstrip()
    )
