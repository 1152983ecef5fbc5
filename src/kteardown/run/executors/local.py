"""Run boots on this machine. Records are written as they arrive."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from kteardown.errors import LabError
from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import BootEnd
from kteardown.run.executors.boot import attempt_boot
from kteardown.run.executors.port import Ended, Executor, Lab, Piece, Setting
from kteardown.rundir.counting import EXACT
from kteardown.rundir.writer import RecordWriter
from kteardown.vm.job import BootResult

_ATTEMPTS = 3


class LocalBackend:
    """This machine, with the machine and the jobs of a lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    @property
    def words(self) -> str:
        """Return how many guests run at a time, if it is more than one."""
        return f", {self._lab.jobs} at a time" if self._lab.jobs > 1 else ""

    def unsettled(self, log: RecordWriter) -> bool:
        """Return False: guests end with their process."""
        return False

    @contextmanager
    def open(self, setting: Setting) -> Iterator[Executor]:
        """Yield the executor. No guest is left running afterwards."""
        with ThreadPoolExecutor(setting.lab.jobs) as pool:
            try:
                yield _Local(setting, pool)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End every boot in progress."""
        self._lab.machine.stop()


class _Local:
    ahead = False

    def __init__(self, setting: Setting, pool: ThreadPoolExecutor) -> None:
        self._setting = setting
        self._pool = pool
        self._running: dict[Future[list[BootResult]], Piece] = {}

    def pieces(self, plan: Plan, finished: Mapping[int, BootEnd]) -> Sequence[Piece]:
        """Return each boot by itself; a block that was begun on a node of a cluster whole."""
        elsewhere = self._setting.log.of_jobs() if self._setting.lab.acceleration != EXACT else frozenset()
        left = {boot.block for boot in plan.boots if boot.index not in finished}
        torn = left & {boot.block for boot in plan.boots if boot.index in elsewhere}
        blocks: dict[int, list[PlannedBoot]] = {}
        for boot in plan.boots:
            if boot.block in torn or boot.index not in finished:
                blocks.setdefault(boot.block if boot.block in torn else -1 - boot.index, []).append(boot)
        return [tuple(boots) for boots in blocks.values()]

    def room(self) -> bool:
        """Return whether fewer guests run than may run at the same time."""
        return len(self._running) < self._setting.lab.jobs

    def submit(self, piece: Piece) -> None:
        """Begin to run boots, one after another."""
        self._running[self._pool.submit(self._run, piece)] = piece

    def wait(self) -> Sequence[Ended]:
        """Wait for the next boots to end. Raises LabError if one failed three times because of the host."""
        ended: list[Ended] = []
        for future in wait(self._running, return_when=FIRST_COMPLETED).done:
            piece = self._running.pop(future)
            for boot, result in zip(piece, future.result(), strict=True):
                ended.append(Ended(boot, result.outcome, result.detail))
        return ended

    def _run(self, piece: Piece) -> list[BootResult]:
        results = []
        for boot in piece:
            self._setting.watch.boot(boot)
            try:
                results.append(run_boot(boot, self._setting))
            finally:
                self._setting.watch.ended(boot)
        return results


def run_boot(boot: PlannedBoot, setting: Setting) -> BootResult:
    """Run a boot, and what of it was disturbed again. Raises LabError if three attempts fail by the host."""
    while True:
        first = setting.log.next_attempt(boot.index)
        for attempt in range(first, first + _ATTEMPTS):
            result = attempt_boot(boot, attempt, setting)
            if result.outcome != "infrastructure-error":
                break
        else:
            raise LabError(
                f"boot {boot.index} of {boot.kernel} failed {_ATTEMPTS} times because of the host: "
                f"{result.detail}",
                hint="check this host with `kteardown doctor`, then resume the run.",
            )
        again = setting.log.to_repeat(boot.index) if result.outcome == "ok" else frozenset()
        if not again:
            return result
        setting.reporter.note(
            f"boot {boot.index} of {boot.kernel}: other work of the host disturbed {len(again)} of "
            f"{len(boot.trials)} trials, which run again"
        )
