"""An executor that boots nothing: every piece ends at once, in an order that the test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import BootEnd, BootStart, Outcome
from kteardown.run.execute import Executor, Piece
from kteardown.run.setting import Ended, Setting
from kteardown.rundir.writer import RecordWriter


class FakeExecutor(Executor):
    """``outcome`` says how each boot ends; ``choose`` picks, of so many that run, which one ends
    next."""

    def __init__(
        self,
        outcome: Callable[[PlannedBoot], Outcome],
        choose: Callable[[int], int] = lambda running: 0,
        room: int = 1000,
    ) -> None:
        self.outcome = outcome
        self.choose = choose
        self.most = room
        self.stopped = False
        self.submitted: list[int] = []
        self._waiting: list[Piece] = []

    ahead = True
    words = " on a fake cluster"

    def unsettled(self, log: RecordWriter) -> bool:
        return False

    @contextmanager
    def open(self, setting: Setting) -> Iterator[None]:
        self._log = setting.log
        yield

    def stop(self) -> None:
        self.stopped = True

    def pieces(self, plan: Plan, finished: Mapping[int, BootEnd]) -> Sequence[Piece]:
        return [(boot,) for boot in plan.boots if boot.index not in finished]

    def room(self) -> bool:
        return len(self._waiting) < self.most

    def submit(self, piece: Piece) -> None:
        self.submitted += [boot.index for boot in piece]
        self._waiting.append(piece)

    def wait(self) -> Sequence[Ended]:
        piece = self._waiting.pop(self.choose(len(self._waiting)))
        return [self._ended(boot) for boot in piece]

    def _ended(self, boot: PlannedBoot) -> Ended:
        outcome = self.outcome(boot)

        def keep() -> None:
            start = BootStart(
                kernel=boot.kernel,
                block=boot.block,
                seed=1,
                acceleration="icount",
                host_load=0,
                started_at="",
            )
            end = BootEnd(
                outcome=outcome, duration_s=1, first_record_s=0.5, command=[], host_load=0
            )
            attempt = self._log.next_attempt(boot.index)
            self._log.append(start, boot=boot.index, attempt=attempt)
            self._log.append(end, boot=boot.index, attempt=attempt)

        return Ended(boot, outcome, "", keep)
