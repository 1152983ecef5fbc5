"""Execute a plan: which boots run, in which order, and which of them count.

An executor runs what it is given: that of this host, or that of a place (``run.places``).
Everything above ``execute`` is the same for every executor.
"""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from kteardown.errors import LabError
from kteardown.kernels.source_lines import SourceLines
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import BootEnd, BootStart, Outcome, Record, TrialEnd, TrialStart
from kteardown.progress import Reporter
from kteardown.run.boot_job import boot_job
from kteardown.run.contention import counting
from kteardown.run.guest_records import ForgedError, GuestRecords
from kteardown.run.setting import Bootable, Ended, Lab, Setting, Watch
from kteardown.rundir.completeness import GivenUp
from kteardown.rundir.counting import EXACT
from kteardown.rundir.writer import RecordWriter
from kteardown.script.left_behind import LeftBehind
from kteardown.vm.host_watch import HostWatch

Piece = tuple[PlannedBoot, ...]
"""Boots that run one after another on one machine."""


_ATTEMPTS = 3


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
    ``between`` is called after a boot has ended and before the next begins: with one job, no guest
    runs then. A boot whose guest fails is recorded, and the plan continues. A boot that fails
    because of the host is attempted again a few times. Raises LabError if it fails each time.
    Records that were written before an error or a KeyboardInterrupt are kept.
    """
    finished = log.finished()
    todo = [boot for boot in plan.boots if boot.index not in finished]
    executor = lab.executor or Executor(lab)
    if not todo and not executor.unsettled(log):
        return
    total = sum(weight(trial) for boot in todo for trial in boot.trials)
    with reporter.task(f"booting {len(todo)} guests{executor.words}", total=total) as task:
        setting = Setting(plan, kernels, lab, log, Watch(task.update, weight), reporter)
        with executor.open(setting):
            _Course(plan, executor, log, reporter).run(between)


class _Course:
    """The course of a plan: what is left, what runs, and what has ended."""

    def __init__(
        self, plan: Plan, executor: "Executor", log: RecordWriter, reporter: Reporter
    ) -> None:
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
        while self._submit() or self._running:
            for ended in self._executor.wait():
                self._running -= 1
                self._undecided[ended.boot.index] = ended
            self._decide()
            if self._todo:
                between()
        assert not self._todo and not self._undecided

    def _submit(self) -> bool:
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
        """Return the boots of ``piece`` that are not given up; None if it must wait until that is
        known."""
        given_up = {boot.index: self._given_up.decide(boot, self._counted) for boot in piece}
        if None in given_up.values() and not self._executor.ahead:
            return None
        for boot in piece:
            if given_up[boot.index]:
                self._skipped(boot)
        left = tuple(boot for boot in piece if not given_up[boot.index])
        return left if any(boot.index not in self._finished for boot in left) else ()

    def _decide(self) -> None:
        """Of the boots that have ended, count those that are not given up, in the order of the
        plan."""
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
                self._reporter.note(
                    f"boot {index} of {boot.kernel}: {ended.outcome}: {ended.detail}"
                )

    def _skipped(self, boot: PlannedBoot) -> None:
        self._reporter.note(
            f"boot {boot.index} of {boot.kernel} is skipped: earlier boots of this kernel failed"
        )


def attempt_boot(boot: PlannedBoot, attempt: int, setting: Setting) -> BootEnd:
    """Run one attempt at ``boot`` and write its records to the log. Raises InputError, LabError."""
    lab = setting.lab
    log = setting.log
    watch = setting.watch
    kernel = setting.kernels[boot.kernel]

    left_behind = LeftBehind(boot.trials)
    completed = log.completed(boot.index)
    left = boot.model_copy(
        update={"trials": tuple(t for t in boot.trials if t.index not in completed)}
    )
    guest = GuestRecords(left, lab.reports)

    def keep(*records: Record) -> None:
        log.append(*records, boot=boot.index, attempt=attempt)

    # On the instruction clock and on another machine nothing that the host does reaches a figure.
    host = HostWatch() if lab.is_watched and lab.acceleration != EXACT else None

    def on_line(raw: bytes) -> None:
        record = completed_record(guest.next(raw), boot, host, at_start, lab.lost_limit)
        if isinstance(record, TrialEnd):
            watch.done(boot, record.trial)
        elif isinstance(record, TrialStart):
            watch.trial(boot, record.trial)
        keep(*(line for counted in counts.add(record) for line in left_behind.add(counted)))

    # The initramfs is beside it, in the run directory: a killed kteardown leaves no file elsewhere.
    console = log.run.console_file(boot.index, attempt)
    try:
        with counting(left, lab, kernel) as counts:
            job = counts.job(boot_job(left, setting.plan, lab, kernel, console, host))
            keep(_start_of(boot, lab, lab.lost_limit if host else None))
            began = time.monotonic()
            at_start = began if lab.streams else None
            result = lab.machine.boot(job, on_line)
    except ForgedError as error:
        result = forged_end(error, time.monotonic() - began, os.getloadavg()[0])
    finally:
        console.with_suffix(".cpio").remove()
    result = _with_source_lines(result, SourceLines(kernel.lines or kernel.image.parent, lab.arch))
    keep(result)
    return result


def _start_of(boot: PlannedBoot, lab: Lab, lost_limit: float | None) -> BootStart:
    return BootStart(
        kernel=boot.kernel,
        block=boot.block,
        seed=boot.seed,
        acceleration=lab.acceleration,
        host_load=os.getloadavg()[0],
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        machine=boot.machine,
        lost_limit=lost_limit,
    )


def forged_end(error: ForgedError, duration_s: float = 0.0, host_load: float = 0.0) -> BootEnd:
    """Return the end of a boot whose guest sent what the agent would not have sent."""
    return BootEnd(
        outcome="agent-error",
        detail=f"forged record: {error}",
        forged=True,
        duration_s=duration_s,
        first_record_s=None,
        command=[],
        host_load=host_load,
    )


def completed_record(
    record: Record,
    boot: PlannedBoot,
    host: HostWatch | None,
    began: float | None,
    limit: float | None,
) -> Record:
    """Return a record of the agent with what the lab adds.

    ``began``: when the machine was started, of ``time.monotonic``; None if records only come at its
    end.
    """
    # The host is watched from start to end of a trial.
    if isinstance(record, TrialStart):
        if host:
            host.begin()
        planned = next(trial for trial in boot.trials if trial.index == record.trial)
        name = record.workload
        params = record.params
        if planned.script is not None:
            name = planned.workload
            params = planned.params
        return record.model_copy(update={"workload": name, "params": {**boot.machine, **params}})
    if isinstance(record, TrialEnd):
        lost = host.end() if host else None
        disturbed = ""
        if record.status == "ok" and lost is not None and limit is not None and lost.share > limit:
            disturbed = f"other work of the host took more than {limit * 100:g}% of its time"
        at_s = None if began is None else round(time.monotonic() - began, 3)
        return record.model_copy(update={"at_s": at_s, "lost": lost, "disturbed": disturbed})
    return record


def _with_source_lines(result: BootEnd, source: SourceLines) -> BootEnd:
    texts = [(result.detail,), result.last_lines, *(problem.excerpt for problem in result.problems)]
    flat = source.annotate([line for text in texts for line in text])
    annotated = iter(flat)
    (detail,), last, *excerpts = (tuple(itertools.islice(annotated, len(text))) for text in texts)
    problems = tuple(
        problem.model_copy(update={"excerpt": excerpt})
        for problem, excerpt in zip(result.problems, excerpts, strict=True)
    )
    return result.model_copy(update={"detail": detail, "last_lines": last, "problems": problems})


class Executor:
    """Runs pieces of a plan on this host, with the machine and the jobs of a lab; others replace
    methods."""

    ahead = False
    """Whether boots run before it is known whether they count. Their records are not in the log
    before ``Ended.keep`` is called, which is not done for a boot that turns out not to count."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.words = f", {lab.jobs} at a time" if lab.jobs > 1 else ""
        """Where and how many boots run at a time, to follow ``booting 12 guests``; may be empty."""
        self._running: dict[Future[list[BootEnd]], Piece] = {}

    def unsettled(self, log: RecordWriter) -> bool:
        """Return whether an interrupted run left something to do, even if every boot has ended."""
        return False  # Guests end with their process.

    @contextmanager
    def open(self, setting: Setting) -> Iterator[None]:
        """Run pieces of this plan in the block. Nothing of it is left running on this machine
        afterwards."""
        self._setting = setting
        with ExitStack() as last, ThreadPoolExecutor(self._lab.jobs) as self._pool:
            last.callback(self._lab.machine.release)
            try:
                yield
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End every boot: ``wait`` raises KeyboardInterrupt. May be called from any thread."""
        self._lab.machine.stop()

    def pieces(self, plan: Plan, finished: Mapping[int, BootEnd]) -> Sequence[Piece]:
        """Divide the boots of ``plan`` that have to run into pieces, in the order of the plan.

        Here, each boot by itself; a block that was begun on a node of a cluster whole.
        """
        elsewhere = self._setting.log.of_jobs() if self._lab.acceleration != EXACT else frozenset()
        left = {boot.block for boot in plan.boots if boot.index not in finished}
        torn = left & {boot.block for boot in plan.boots if boot.index in elsewhere}
        blocks: dict[int, list[PlannedBoot]] = {}
        for boot in plan.boots:
            if boot.block in torn or boot.index not in finished:
                blocks.setdefault(boot.block if boot.block in torn else -1 - boot.index, []).append(
                    boot
                )
        return [tuple(boots) for boots in blocks.values()]

    def room(self) -> bool:
        """Return whether another piece may be submitted now."""
        return len(self._running) < self._lab.jobs

    def submit(self, piece: Piece) -> None:
        """Begin to run ``piece``. Raises LabError, InputError."""
        self._running[self._pool.submit(self._run, piece)] = piece

    def wait(self) -> Sequence[Ended]:
        """Wait until boots have ended, and return them; each boot of each piece is returned once.

        Raises LabError if one failed three times because of the host, KeyboardInterrupt after
        ``stop``.
        """
        ended: list[Ended] = []
        for future in wait(self._running, return_when=FIRST_COMPLETED).done:
            piece = self._running.pop(future)
            for boot, result in zip(piece, future.result(), strict=True):
                ended.append(Ended(boot, result.outcome, result.detail))
        return ended

    def _run(self, piece: Piece) -> list[BootEnd]:
        results = []
        for boot in piece:
            self._setting.watch.boot(boot)
            try:
                results.append(run_boot(boot, self._setting))
            finally:
                self._setting.watch.ended(boot)
        return results


def run_boot(boot: PlannedBoot, setting: Setting) -> BootEnd:
    """Run a boot, and what of it was disturbed again. Raises LabError if three attempts fail by the
    host."""
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
        to_repeat = setting.log.to_repeat(boot.index) if result.outcome == "ok" else frozenset()
        if not to_repeat:
            return result
        setting.reporter.note(
            f"boot {boot.index} of {boot.kernel}: other work of the host disturbed "
            f"{len(to_repeat)} of {len(boot.trials)} trials; kteardown runs these trials again"
        )
