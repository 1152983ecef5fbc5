"""Execute a plan: which boots run, in which order, and which of them count."""

from collections import deque
from collections.abc import Callable, Mapping

from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Outcome
from kteardown.progress import Reporter
from kteardown.run.executors.boot import LocalBackend
from kteardown.run.executors.port import Bootable, Ended, Executor, Lab, Piece, Setting, Watch
from kteardown.rundir.completeness import GivenUp
from kteardown.rundir.writer import RecordWriter


def execute(
    plan: Plan,
    kernels: Mapping[str, Bootable],
    lab: Lab,
    log: RecordWriter,
    reporter: Reporter,
    weight: Callable[[PlannedTrial], float] = lambda trial: 1.0,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Run every boot of ``plan`` that ``log`` does not have yet.

    ``weight``: the expected time of a trial, in any unit; it only scales the displayed progress.
    ``between`` is called after a boot has ended and before the next begins: with one job, no guest runs then.
    A boot whose guest fails is recorded, and the plan continues. A boot that fails because of the host is
    attempted again a few times. Raises LabError if it fails each time. Records that were written before an
    error or a KeyboardInterrupt are kept.
    """
    done = log.finished()
    todo = [boot for boot in plan.boots if boot.index not in done]
    backend = lab.backend or LocalBackend(lab)
    if not todo and not backend.unsettled(log):
        return
    total = sum(weight(trial) for boot in todo for trial in boot.trials)
    with reporter.task(f"booting {len(todo)} guests{backend.words}", total=total) as task:
        setting = Setting(plan, kernels, lab, log, Watch(task.update, weight), reporter)
        with backend.open(setting) as executor:
            _Course(plan, executor, log, reporter).run(between)


class _Course:
    """The course of a plan: what is left, what runs, and what has ended."""

    def __init__(self, plan: Plan, executor: Executor, log: RecordWriter, reporter: Reporter) -> None:
        self._given_up = GivenUp(plan)
        self._executor = executor
        self._reporter = reporter
        finished = self._finished = log.finished()
        self._counted: dict[int, Outcome] = {index: end.outcome for index, end in finished.items()}
        self._todo = deque(executor.pieces(plan, finished))
        self._running = 0
        self._undecided: dict[int, Ended] = {}
        """Boots that have ended, of which it is not known yet whether they count."""

    def run(self, between: Callable[[], None]) -> None:
        """Run every piece."""
        while self._submit() or self._running:
            for ended in self._executor.wait():
                self._running -= 1
                self._undecided[ended.boot.index] = ended
            self._decide()
            if self._todo:
                between()
        assert not self._todo and not self._undecided

    def _submit(self) -> bool:
        """Submit what may run now; return whether anything runs."""
        while self._todo and self._executor.room():
            piece = self._wanted(self._todo[0])
            if piece is None:
                break
            self._todo.popleft()
            if piece:
                self._executor.submit(piece)
                self._running += len(piece)
        return self._running > 0

    def _wanted(self, piece: Piece) -> Piece | None:
        """Return the boots of ``piece`` that are not given up; None if it must wait until that is known."""
        given_up = {boot.index: self._given_up.decide(boot, self._counted) for boot in piece}
        if None in given_up.values() and not self._executor.ahead:
            return None
        for boot in piece:
            if given_up[boot.index]:
                self._skipped(boot)
        left = tuple(boot for boot in piece if not given_up[boot.index])
        return left if any(boot.index not in self._finished for boot in left) else ()

    def _decide(self) -> None:
        """Of the boots that have ended, count those that are not given up, in the order of the plan."""
        for index in sorted(self._undecided):
            boot = self._undecided[index].boot
            given_up = self._given_up.decide(boot, self._counted)
            if given_up is None:
                continue
            ended = self._undecided.pop(index)
            if given_up:
                self._skipped(boot)
                continue
            ended.keep()
            self._counted[index] = ended.outcome
            if ended.outcome != "ok":
                self._reporter.note(f"boot {index} of {boot.kernel}: {ended.outcome}: {ended.detail}")

    def _skipped(self, boot: PlannedBoot) -> None:
        self._reporter.note(f"boot {boot.index} of {boot.kernel} is skipped: earlier boots of it failed")
