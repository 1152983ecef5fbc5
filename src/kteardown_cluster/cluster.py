"""Run boots as jobs of a cluster. Nothing that the scheduler says or forgets can change a result.

A scheduler executes a job at least once, sometimes twice, and can lose one that it accepted. So
what was executed is what the ``journal`` of the run has. The scheduler is only asked what became of
jobs that have not published anything: one that ended, or that it does not know, is submitted again,
so often and not more. A run that is resumed finds the results and the jobs of the process before
it.

On the instruction clock a job is one boot; one boot in ten is executed again on another node, and
must be the same. On the wall clock a job is one block, on a node of its own.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeVar

from kteardown.errors import LabError
from kteardown.kernels.source import file_hash
from kteardown.model.plan import Plan, PlannedBoot, rests
from kteardown.model.record import BootEnd, TrialEnd
from kteardown.run.execute import Executor, Piece
from kteardown.run.setting import Ended, Setting
from kteardown.rundir.counting import where
from kteardown.rundir.directory import RunDir, writing
from kteardown.rundir.writer import RecordWriter
from kteardown_cluster.journal import Journal, Kind, Published, compare
from kteardown_cluster.node_job import Order
from kteardown_cluster.slurm import WORDS, Job, Slurm, SlurmConfig, Submission, UnreachableError
from kteardown_cluster.survey import QEMU_MB, text

_T = TypeVar("_T")
CHECKED = 10
"""Of so many boots on the instruction clock, one is executed on two nodes."""
_LOOK_S = 0.1
_LOOK_EACH_S = 5e-5
"""The pause between two looks at the results; they take longer, the more there are."""
_UNKNOWN_S = 5.0
"""How long after it was submitted a job must be unknown before it is taken for lost."""
_BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_LEAVE_S = 60.0
_SAY_AGAIN_S = 3600.0


@dataclass
class _Work:
    """A piece that was submitted and has no result yet."""

    key: str
    kind: Kind
    piece: Piece
    minutes: int
    attempt: int = -1
    lost: int = 0
    submitted: float = 0.0
    job: Job | None = None
    over: float | None = None
    """When it was first seen that its job has ended, or is unknown."""
    avoid: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        return f"{self.kind}.{self.key}.{self.attempt}"

    @property
    def words(self) -> str:
        boots = ", ".join(f"{boot.index} of {boot.kernel}" for boot in self.piece[:2])
        more = f" and {len(self.piece) - 2} more" if len(self.piece) > 2 else ""
        return f"boot {boots}{more}" + (" on a second node" if self.kind == "check" else "")


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
        self._work: dict[tuple[Kind, str], _Work] = {}
        self._adopted: dict[str, Job] = {}
        """Live jobs of a session before this one, by their comment."""
        self._avoid: set[str] = set()
        """Nodes that could not run a job, as long as there are others."""
        self._worked = False
        """Whether a job has had a result in this session."""
        self._homes: dict[int, str] = {}
        """By index of a boot, the only node on which it may run."""
        self._polled = self._progress = self.now()
        self._pause_s = _LOOK_S
        self._said: set[str] = set()
        self._reasons: dict[str, float] = {}
        """When it was last said that jobs wait, by the scheduler's reason."""
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
                    f"{_jobs(len(jobs))} of this run may still wait or run; when the run is "
                    f"resumed it collects their results. To end them: scancel --name={self._name}"
                )
            raise

    def _begin_session(self) -> None:
        """Look at the cluster, and at what sessions before this one left there."""
        self._journal.create()
        self._journal.mark(unsettled=True)
        self._name = f"kt-{self._journal.token()}"
        # The pieces that were executed on two nodes and compared.
        self._compared = {
            each.key for each in self._journal.compared() if len(set(each.nodes)) == 2
        }
        nodes = self._patiently(self.scheduler.nodes)
        if not nodes:
            raise LabError(
                f"{self.scheduler.words} has no nodes",
                hint="name another partition with --on; `sinfo` lists them.",
            )
        self._nodes = tuple(node.name for node in nodes)
        if not any(node.usable for node in nodes):
            states = Counter(node.state for node in nodes)
            words = ", ".join(f"{count} {state}" for state, count in states.items())
            self._note(
                f"no node of {self.scheduler.words} is up ({words}); the jobs wait until one is"
            )
        left = self._patiently(lambda: self.scheduler.jobs(self._name))
        self._adopted = {job.comment: job for job in left if job.live}
        if self._adopted:
            self._note(f"{_jobs(len(self._adopted))} of an earlier session may still wait or run")

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
        self._begin(_Work(key_of(piece, exact=self._exact), "done", piece, self.config.minutes))

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
        # What is left of attempts that were given up.
        until = self.now() + _LEAVE_S
        while left := [
            job for job in self._patiently(lambda: self.scheduler.jobs(self._name)) if job.live
        ]:
            if self.now() >= until:
                jobs = f"{_jobs(len(left))} of the run could not be cancelled"
                self._note(f"{jobs}: see `squeue --name={self._name}`")
                break
            self._patiently(lambda: self.scheduler.cancel(self._name))
            self.sleep(min(1.0, self.config.poll_s))
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

    def _take(self, work: _Work) -> list[Ended]:
        try:
            found = self._journal.read(work.kind, work.key)
            missing = [boot.index for boot in work.piece if boot.index not in found.boots]
            if missing:
                raise ValueError(f"boot {missing[0]} is missing")
        except ValueError as error:
            self._journal.put_aside(work.kind, work.key)
            self._again(work, f"its result is damaged: {str(error).splitlines()[0]}")
            return []
        del self._work[work.kind, work.key]
        self._worked, self._progress = True, self.now()
        for boot in work.piece:
            self._setting.watch.ended(boot)
        if work.kind == "check":
            if first := self._first(work.key):
                self._compare(first, found)
            return []
        self._log.add_node(found.receipt.node, found.receipt.machine)
        if self._exact and work.piece[0].index % CHECKED == 0:
            self._check(work.key, work.piece, found)
        return [self._ended(boot, found) for boot in work.piece]

    def _ended(self, boot: PlannedBoot, found: Published) -> Ended:
        records = found.boots[boot.index]
        end = records[-1]
        assert isinstance(end, BootEnd)
        for record in records:
            if isinstance(record, TrialEnd):
                self._setting.watch.done(boot, record.trial)

        def keep() -> None:
            attempts = found.attempts(boot.index)
            first = self._log.adopt(attempts, boot=boot.index)
            for number, attempt in enumerate(attempts):
                console = RunDir(found.folder).console_file(boot.index, attempt[0].attempt)
                # A console that is gone is no reason to lose a boot.
                with suppress(OSError):
                    console.link_to(self._log.run.console_file(boot.index, first + number))

        return Ended(boot, end.outcome, end.detail, keep)

    # Second executions.

    def _check(self, key: str, piece: Piece, first: Published) -> None:
        """Execute a piece again, on another node than the first time."""
        if key in self._compared:
            return
        if len(self._nodes) < 2:
            self._once("no boot is executed on two nodes: there is only one")
            return
        work = _Work(key, "check", piece, self.config.minutes, avoid=(first.receipt.node,))
        try:
            self._begin(work)
        except LabError as error:
            # A constraint that only one node has, for example. Every figure is there without it.
            del self._work[work.kind, key]
            self._once(f"{work.words}: {error.message}; it is not compared")

    def _drop_hopeless_checks(self) -> None:
        """Do not wait for a second node if none is up: every figure is there."""
        if self.now() - self._progress < self.config.patience_s:
            return
        self._progress = self.now()
        up = {node.name for node in self._patiently(self.scheduler.nodes) if node.usable}
        for work in [
            work for work in self._work.values() if work.job and work.job.state == "PENDING"
        ]:
            if up <= set(work.avoid):
                del self._work[work.kind, work.key]
                self._note(f"{work.words}: no other node is up; it is not compared")

    def _compare(self, first: Published, second: Published) -> None:
        found = compare(first, second)
        self._journal.add_compared(found)
        if first.receipt.node != second.receipt.node:
            self._compared.add(first.receipt.key)
        for each in found:
            if not each.same:
                self._note(
                    f"boot {each.boot} of {each.kernel} differed {where(each.trial)} between "
                    f"{' and '.join(each.nodes)}: one of these nodes is at fault, or this guest is "
                    "not deterministic"
                )

    def _first(self, key: str) -> Published | None:
        with suppress(ValueError):
            return self._journal.read("done", key)
        return None

    # Jobs.

    def _begin(self, work: _Work) -> None:
        self._work[work.kind, work.key] = work
        if self._journal.has(work.kind, work.key):
            return
        mine = [c for c in self._adopted if c.startswith(f"{work.kind}.{work.key}.")]
        if mine:
            comment = max(mine, key=lambda c: int(c.rpartition(".")[2]))
            work.attempt, work.job = int(comment.rpartition(".")[2]), self._adopted.pop(comment)
            work.submitted = self.now()
            return
        self._order(work)

    def _order(self, work: _Work) -> None:
        work.attempt, folder = self._journal.new_attempt(work.key)
        hashes = self.hashes
        setting = self._setting
        setup = self._setting.lab.placed(Path.absolute)
        kernels = {}
        used = [setup.agent, *setup.programs, *setup.archives]
        for name in dict.fromkeys(boot.kernel for boot in work.piece):
            kernels[name] = files = setting.kernels[name].placed(Path.absolute)
            used += [files.image, *files.modules, *chain(*files.optional_modules.values())]
        hashes |= {path: file_hash(path) for path in used if path not in hashes}
        order = Order(
            key=work.key,
            attempt=work.attempt,
            kind=work.kind,
            journal=self._journal.path,
            plan=setting.plan.model_copy(update={"boots": work.piece, "points": ()}),
            kernels=kernels,
            setup=setup,
            hashes={str(path): hashes[path] for path in used},
            qemu=self.qemu,
            exclusive=not self._exact,
            config=self.config,
        )
        file = folder / "order.json"
        # Not synced: without its order a job fails, and is submitted again.
        with writing(file):
            file.replace(order.model_dump_json(indent=1), synced=False)
        home = self._homes.get(work.piece[0].index, "")
        usable = set(self._nodes) - self._avoid - set(work.avoid)
        # Slurm refuses the name of a node that it does not have, as after a move to another
        # cluster.
        avoid = {*work.avoid, *(self._avoid if usable else ())} & set(self._nodes)
        submission = Submission(
            name=self._name,
            comment=work.comment,
            command=("kteardown_cluster.node_job", str(file)),
            output=str(folder / "output.log"),
            exclusive=order.exclusive,
            memory_mb=setting.plan.memory_mb + QEMU_MB,
            minutes=work.minutes,
            qemu=order.qemu,
            avoid=() if home in self._nodes else tuple(sorted(avoid)),
            node=home if home in self._nodes else "",
        )
        number = self._patiently(lambda: self.scheduler.submit(submission))
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
                self._refused(failure.node, failure.reason)
            self._again(work, f"{failure.node}: {failure.reason}")
        if self.now() - self._polled >= self.config.poll_s:
            self._polled = self.now()
            self._poll()

    def _refused(self, node: str, why: str) -> None:
        """Avoid a node that cannot run the jobs. Raises LabError if none could since the session
        began."""
        self._avoid.add(node)
        if not self._worked and self._avoid >= set(self._nodes):
            raise LabError(
                f"no node of {self.scheduler.words} can run the jobs; the last one, {node}: {why}",
                hint="check the nodes with `kteardown doctor --on slurm`, then resume the run.",
            )

    def _poll(self) -> None:
        try:
            jobs = self.scheduler.jobs(self._name)
        except UnreachableError as error:
            self._once(f"{self.scheduler.words} does not answer: {error}; asking again")
            return
        self._said = {said for said in self._said if "does not answer" not in said}
        by_comment: dict[str, Job] = {}
        for job in jobs:
            # Of two jobs of one attempt, one that is live.
            if job.comment not in by_comment or job.live:
                by_comment[job.comment] = job
        now = self.now()
        for work in list(self._work.values()):
            found = by_comment.get(work.comment)
            if found is not None and found.live:
                work.job, work.over = found, None
                if found.state == "RUNNING":
                    self._setting.watch.boot(work.piece[0], f"job {found.id} on {found.node}")
            elif found is None and now - work.submitted < _UNKNOWN_S:
                continue
            elif work.over is None:
                work.over = now
            elif now - work.over >= self.config.grace_s:
                self._lost(work, found)
        self._say_what_waits()

    def _lost(self, work: _Work, job: Job | None) -> None:
        if self._journal.has(work.kind, work.key):
            return
        if job is None:
            number = work.job.id if work.job else "?"
            self._again(work, f"job {number} is not known to {self.scheduler.words} any more")
            return
        why = f"job {job.id} {WORDS['ended'].get(job.state, f'ended as {job.state}')}"
        if job.state == "TIMEOUT":
            why += f" of {work.minutes} minutes"
            work.minutes *= 2
        if job.state in ("NODE_FAIL", "BOOT_FAIL"):
            self._avoid.add(job.node)
        where = f" on {job.node}" if job.node and job.node != "(null)" else ""
        output = self._journal.attempt(work.key, work.attempt) / "output.log"
        said = (text(output).strip().splitlines() or [""])[-1][:200]
        if where and job.state in ("COMPLETED", "FAILED") and not output.exists():
            said = (
                f"it does not see {self._journal.path}, which must be on a file system that all "
                "nodes share"
            )
            self._refused(job.node, said)
        self._again(work, why + where + (f": {said}" if said else ""))

    def _again(self, work: _Work, why: str) -> None:
        """Submit a piece again. Raises LabError if that was done too often."""
        work.lost += 1
        most = self.config.attempts
        self._setting.watch.ended(work.piece[0])
        if work.lost < most:
            self._note(f"{work.words}: {why}; submitting it again ({work.lost + 1} of {most})")
            if self._avoid >= set(self._nodes):
                self._avoid.clear()
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

    def _say_what_waits(self) -> None:
        waiting = Counter(
            w.job.reason for w in self._work.values() if w.job and w.job.state == "PENDING"
        )
        running = any(w.job and w.job.state != "PENDING" for w in self._work.values())
        now = self.now()
        words = ", ".join(f"{reason} ({count})" for reason, count in waiting.most_common())
        unsaid = any(
            now - self._reasons.get(reason, -math.inf) > _SAY_AGAIN_S for reason in waiting
        )
        stuck = any(reason in WORDS["never"] or "held" in reason.lower() for reason in waiting)
        patient = running or now - self._progress < self.config.patience_s
        if unsaid and (stuck or not patient):
            self._reasons |= dict.fromkeys(waiting, now)
            self._note(
                f"{_jobs(waiting.total(), 'wait')} in the queue of {self.scheduler.words}: {words}"
            )

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        pauses = iter(_BACKOFF_S)
        while True:
            try:
                return ask()
            except UnreachableError as error:
                self._once(f"{self.scheduler.words} does not answer: {error}; asking again")
                if self.stopped:
                    raise KeyboardInterrupt from None
                self.sleep(next(pauses, _BACKOFF_S[-1]))

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._note(text)


def key_of(piece: Piece, *, exact: bool) -> str:
    first = piece[0]
    return f"boot-{first.index:04d}" if exact else f"block-{first.block:04d}-{first.index:04d}"


def _jobs(count: int, verb: str = "") -> str:
    return (
        f"{count} job {verb}s"
        if verb and count == 1
        else f"{count} job{'s' * (count != 1)} {verb}".rstrip()
    )
