"""Run boots as jobs of a cluster. Nothing that the scheduler says or forgets can change a result.

A scheduler executes a job at least once, sometimes twice, and can lose one that it accepted. So
what was executed is what the ``journal`` of the run has. The scheduler is only asked what became of
jobs that have not published anything: one that ended, or that it does not know, is submitted again,
so often and not more. A run that is resumed finds the results and the jobs of the process before
it.

On the instruction clock a job is one boot; one boot in ten is executed again on another node, and
must be the same. On the wall clock a job is one block, on a node of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kteardown.errors import LabError
from kteardown.model.plan import Plan, PlannedBoot, rests
from kteardown.model.record import BootEnd, TrialEnd
from kteardown.run.execute import Executor, Piece
from kteardown.run.setting import Ended, Setting
from kteardown.rundir.counting import where
from kteardown.rundir.directory import RunDir, writing
from kteardown.rundir.writer import RecordWriter
from kteardown_cluster.journal import Journal, Kind, Published, compare
from kteardown_cluster.nodes import Nodes
from kteardown_cluster.queue import Queue, jobs_text
from kteardown_cluster.slurm import WORDS, Job, Slurm, SlurmConfig, Submission
from kteardown_cluster.survey import QEMU_MB, text
from kteardown_cluster.work import Work, key_of, order_of

CHECKED = 10
"""Of so many boots on the instruction clock, one is executed on two nodes."""
_LOOK_S = 0.1
_LOOK_EACH_S = 5e-5
"""The pause between two looks at the results; they take longer, the more there are."""
_UNKNOWN_S = 5.0
"""How long after it was submitted a job must be unknown before it is taken for lost."""


@dataclass
class Cluster(Executor):
    """The nodes of a cluster. ``sleep`` and ``now`` are those of a clock, for tests."""

    scheduler: Slurm
    config: SlurmConfig
    qemu: str
    """The SHA-256 of the QEMU of the run."""
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    ahead: bool = True
    stopped: bool = False
    hashes: dict[Path, str] = field(default_factory=dict)
    """The SHA-256 of each file that jobs were given."""

    def __post_init__(self) -> None:
        self.words = f" on {self.scheduler.words}"

    def unsettled(self, log: RecordWriter) -> bool:
        return Journal(log.run).unsettled

    def stop(self) -> None:
        self.stopped = True

    @contextmanager
    def open(self, setting: Setting) -> Iterator[None]:
        """Jobs of a run that is interrupted go on; its next session finds them. Raises LabError."""
        self._log = setting.log
        self._setting = setting
        self._note = setting.reporter.note
        self._exact = setting.lab.acceleration == "icount"
        self._journal = Journal(setting.log.run)
        self._work: dict[tuple[Kind, str], Work] = {}
        self._adopted: dict[str, Job] = {}
        """Live jobs of a session before this one, by their comment."""
        self._homes: dict[int, str] = {}
        """By index of a boot, the only node on which it may run."""
        self._polled = self._progress = self.now()
        self._pause_s = _LOOK_S
        try:
            self._begin_session()
            yield
            self._finish()
        except BaseException:
            jobs = [
                *self._adopted.values(),
                *(work.job for work in self._work.values() if work.job),
            ]
            if jobs:
                self._note(
                    f"{jobs_text(len(jobs))} of this run may still wait or run; a resumed run "
                    "collects their results. To end these jobs: "
                    f"scancel --name={self._queue.name}"
                )
            raise

    def _begin_session(self) -> None:
        """Look at the cluster, and at what sessions before this one left there."""
        self._journal.create()
        self._journal.mark(unsettled=True)
        self._queue = Queue(
            self.scheduler,
            f"kt-{self._journal.token()}",
            self._note,
            self.sleep,
            self.now,
            lambda: self.stopped,
        )
        # The pieces that were executed on two nodes and compared.
        self._compared = {
            comparison.key
            for comparison in self._journal.compared()
            if len(set(comparison.nodes)) == 2
        }
        nodes = self._queue.nodes()
        if not nodes:
            raise LabError(
                f"{self.scheduler.words} has no nodes",
                hint="name another partition with --on; `sinfo` lists them.",
            )
        self._nodes = Nodes(self.scheduler.words, tuple(node.name for node in nodes))
        if not any(node.usable for node in nodes):
            states = Counter(node.state for node in nodes)
            words = ", ".join(f"{count} {state}" for state, count in states.items())
            self._note(
                f"no node of {self.scheduler.words} is up ({words}); the jobs wait until one is"
            )
        self._adopted = {job.comment: job for job in self._queue.live()}
        if self._adopted:
            left = jobs_text(len(self._adopted))
            self._note(f"{left} of an earlier session may still wait or run")

    def pieces(self, plan: Plan, finished: Mapping[int, BootEnd]) -> Sequence[Piece]:
        """Return single boots; on the wall clock whole blocks, those with boots that ended as
        well."""
        if self._exact:
            return [(boot,) for boot in plan.boots if boot.index not in finished]
        blocks: dict[tuple[int, int], list[PlannedBoot]] = {}
        later = rests(plan)
        if later:
            nodes = {boot.start.block: boot.start.node for boot in self._log.run.boots()}
            self._homes = {b.index: nodes.get(b.block, "") for b in plan.boots if b.index in later}
        for boot in plan.boots:
            # The rest of a boot that failed is measured by itself, after its block, and on the same
            # node.
            alone = boot.index if boot.index in later else -1
            blocks.setdefault((boot.block, alone), []).append(boot)
        return [
            tuple(block) for block in blocks.values() if any(b.index not in finished for b in block)
        ]

    def room(self) -> bool:
        """Return whether fewer jobs wait and run than may; second executions must not keep out
        first ones."""
        return sum(kind == "done" for kind, _ in self._work) < self.config.max_jobs

    def submit(self, piece: Piece) -> None:
        """Submit a job, unless an earlier session had the piece executed, or has a job for it."""
        self._begin(Work(key_of(piece, exact=self._exact), "done", piece, self.config.minutes))

    def wait(self) -> Sequence[Ended]:
        while True:
            self._collect("check")
            if ended := self._collect("done"):
                return ended
            self._look()

    def _finish(self) -> None:
        """Wait for the second executions, compare, and leave nothing in the queue."""
        if self._exact:
            done = self._journal.published("done")
            finished = self._log.finished()
            for boot in self._setting.plan.boots:
                # What sessions before this one did not check.
                key = key_of((boot,), exact=True)
                wanted = boot.index % CHECKED == 0 and ("check", key) not in self._work
                if (
                    wanted
                    and key in done
                    and boot.index in finished
                    and (first := self._first(key))
                ):
                    self._check(key, (boot,), first)
            while any(kind == "check" for kind, _ in self._work):
                self._collect("check")
                self._look()
                self._drop_hopeless_checks()
        self._queue.leave(min(1.0, self.config.poll_s))
        self._journal.mark(unsettled=False)

    # What has a result.

    def _collect(self, kind: Kind) -> list[Ended]:
        waiting = [key for of, key in self._work if of == kind]
        if not waiting:
            return []
        published = self._journal.published(kind)
        self._pause_s = _LOOK_S + len(published) * _LOOK_EACH_S
        ended: list[Ended] = []
        for key in waiting:
            if key in published:
                ended += self._take(self._work[kind, key])
        return ended

    def _take(self, work: Work) -> list[Ended]:
        try:
            published = self._journal.read(work.kind, work.key)
            missing = [boot.index for boot in work.piece if boot.index not in published.boots]
            if missing:
                raise ValueError(f"boot {missing[0]} is missing")
        except ValueError as error:
            self._journal.put_aside(work.kind, work.key)
            self._again(work, f"its result is damaged: {str(error).splitlines()[0]}")
            return []
        del self._work[work.kind, work.key]
        self._nodes.worked, self._progress = True, self.now()
        for boot in work.piece:
            self._setting.watch.ended(boot)
        if work.kind == "check":
            if first := self._first(work.key):
                self._compare(first, published)
            return []
        self._log.add_node(published.receipt.node, published.receipt.machine)
        if self._exact and work.piece[0].index % CHECKED == 0:
            self._check(work.key, work.piece, published)
        return [self._ended(boot, published) for boot in work.piece]

    def _ended(self, boot: PlannedBoot, published: Published) -> Ended:
        records = published.boots[boot.index]
        end = records[-1]
        assert isinstance(end, BootEnd)
        for record in records:
            if isinstance(record, TrialEnd):
                self._setting.watch.done(boot, record.trial)

        def keep() -> None:
            attempts = published.attempts(boot.index)
            first = self._log.adopt(attempts, boot=boot.index)
            for number, attempt in enumerate(attempts):
                console = RunDir(published.folder).console_file(boot.index, attempt[0].attempt)
                # A console that is gone is no reason to lose a boot.
                with suppress(OSError):
                    console.link_to(self._log.run.console_file(boot.index, first + number))

        return Ended(boot, end.outcome, end.detail, keep)

    # Second executions.

    def _check(self, key: str, piece: Piece, first: Published) -> None:
        """Execute a piece again, on another node than the first time."""
        if key in self._compared:
            return
        if len(self._nodes.names) < 2:
            self._queue.say_once("no boot is executed on two nodes: there is only one node")
            return
        work = Work(key, "check", piece, self.config.minutes, avoid=(first.receipt.node,))
        try:
            self._begin(work)
        except LabError as error:
            # A constraint that only one node has, for example. Every figure is there without it.
            del self._work[work.kind, key]
            self._queue.say_once(f"{work.words}: {error.message}; it is not compared")

    def _drop_hopeless_checks(self) -> None:
        """Do not wait for a second node if none is up: every figure is there."""
        if self.now() - self._progress < self.config.patience_s:
            return
        self._progress = self.now()
        up = {node.name for node in self._queue.nodes() if node.usable}
        for work in [
            work for work in self._work.values() if work.job and work.job.state == "PENDING"
        ]:
            if up <= set(work.avoid):
                del self._work[work.kind, work.key]
                self._note(f"{work.words}: no other node is up; it is not compared")

    def _compare(self, first: Published, second: Published) -> None:
        comparisons = compare(first, second)
        self._journal.add_compared(comparisons)
        if first.receipt.node != second.receipt.node:
            self._compared.add(first.receipt.key)
        for comparison in comparisons:
            if not comparison.same:
                self._note(
                    f"boot {comparison.boot} of {comparison.kernel} differed "
                    f"{where(comparison.trial)} between {' and '.join(comparison.nodes)}: one of "
                    "these nodes is at fault, or this guest is not deterministic"
                )

    def _first(self, key: str) -> Published | None:
        with suppress(ValueError):
            return self._journal.read("done", key)
        return None

    # Jobs.

    def _begin(self, work: Work) -> None:
        self._work[work.kind, work.key] = work
        if self._journal.has(work.kind, work.key):
            return
        comments = [c for c in self._adopted if c.startswith(f"{work.kind}.{work.key}.")]
        if comments:
            comment = max(comments, key=lambda c: int(c.rpartition(".")[2]))
            work.attempt, work.job = int(comment.rpartition(".")[2]), self._adopted.pop(comment)
            work.submitted = self.now()
            return
        self._order(work)

    def _order(self, work: Work) -> None:
        work.attempt, folder = self._journal.new_attempt(work.key)
        order = order_of(work, self._setting, self._journal, self.config, self.qemu, self.hashes)
        file = folder / "order.json"
        # Not synced: without its order a job fails, and is submitted again.
        with writing(file):
            file.replace(order.model_dump_json(indent=1), synced=False)
        home = self._homes.get(work.piece[0].index, "")
        names = self._nodes.names
        submission = Submission(
            name=self._queue.name,
            comment=work.comment,
            command=("kteardown_cluster.node_job", str(file)),
            output=str(folder / "output.log"),
            exclusive=order.exclusive,
            memory_mb=self._setting.plan.memory_mb + QEMU_MB,
            minutes=work.minutes,
            qemu=order.qemu,
            avoid=() if home in names else self._nodes.to_avoid(work.avoid),
            node=home if home in names else "",
        )
        number = self._queue.submit(submission)
        work.job = Job(number, "PENDING", "", work.comment, "")
        work.submitted, work.over = self.now(), None

    def _look(self) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.sleep(self._pause_s)
        failures = self._journal.failures(
            {(work.key, work.attempt) for work in self._work.values()}
        )
        for work in list(self._work.values()):
            failure = failures.get((work.key, work.attempt))
            if failure is None or self._journal.has(work.kind, work.key):
                continue
            if failure.host:
                self._nodes.refused(failure.node, failure.reason)
            self._again(work, f"{failure.node}: {failure.reason}")
        if self.now() - self._polled >= self.config.poll_s:
            self._polled = self.now()
            self._poll()

    def _poll(self) -> None:
        jobs = self._queue.poll()
        if jobs is None:
            return
        now = self.now()
        for work in list(self._work.values()):
            job = jobs.get(work.comment)
            if job is not None and job.live:
                work.job, work.over = job, None
                if job.state == "RUNNING":
                    self._setting.watch.boot(work.piece[0], f"job {job.id} on {job.node}")
            elif job is None and now - work.submitted < _UNKNOWN_S:
                continue
            elif work.over is None:
                work.over = now
            elif now - work.over >= self.config.grace_s:
                self._lost(work, job)
        patient = now - self._progress < self.config.patience_s
        waiting = [work.job for work in self._work.values() if work.job]
        self._queue.say_what_waits(waiting, patient=patient)

    def _lost(self, work: Work, job: Job | None) -> None:
        if self._journal.has(work.kind, work.key):
            return
        if job is None:
            number = work.job.id if work.job else "?"
            self._again(work, f"{self.scheduler.words} does not know job {number} any more")
            return
        why = f"job {job.id} {WORDS['ended'].get(job.state, f'ended as {job.state}')}"
        if job.state == "TIMEOUT":
            why += f" of {work.minutes} minutes"
            work.minutes *= 2
        if job.state in ("NODE_FAIL", "BOOT_FAIL"):
            self._nodes.avoided.add(job.node)
        where = f" on {job.node}" if job.node and job.node != "(null)" else ""
        output = self._journal.attempt(work.key, work.attempt) / "output.log"
        last_line = (text(output).strip().splitlines() or [""])[-1][:200]
        if where and job.state in ("COMPLETED", "FAILED") and not output.exists():
            last_line = (
                f"it does not see {self._journal.path}, which must be on a file system that all "
                "nodes share"
            )
            self._nodes.refused(job.node, last_line)
        self._again(work, why + where + (f": {last_line}" if last_line else ""))

    def _again(self, work: Work, why: str) -> None:
        """Submit a piece again. Raises LabError if that was done too often."""
        work.lost += 1
        most = self.config.attempts
        self._setting.watch.ended(work.piece[0])
        if work.lost < most:
            self._note(f"{work.words}: {why}; submitting it again ({work.lost + 1} of {most})")
            self._nodes.forgive()
            self._order(work)
        elif work.kind == "check":
            del self._work[work.kind, work.key]
            self._note(f"{work.words}: {why}; it is not compared")
        else:
            raise LabError(
                f"{work.words} was lost {most} times on {self.scheduler.words}, the last time: "
                f"{why}",
                hint="check the nodes with `kteardown doctor --on slurm`, then resume the run.",
            )
