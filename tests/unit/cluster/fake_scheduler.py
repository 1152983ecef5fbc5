"""A cluster on paper: jobs that publish what the test decides, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.door import Entry
from kteardown.model.record import BootEnd, BootStart, Outcome, Record, Sample, TrialEnd, TrialStart
from kteardown_cluster.journal import Failure, Receipt, publish, write_failure
from kteardown_cluster.node_job import Order
from kteardown_cluster.slurm import Job, Node, Slurm, Submission, UnreachableError


def records_of(
    order: Order, node: str, name: str, outcome: Outcome = "ok", value: int = 0
) -> list[Record]:
    """Return what a job writes: one trial for each boot, with a figure of the boot alone."""
    found: list[Record] = []
    for boot in order.plan.boots:
        start = BootStart(
            kernel=boot.kernel,
            block=boot.block,
            seed=boot.seed,
            acceleration=order.setup.acceleration,
            host_load=0,
            started_at="2026-01-01T00:00:00+00:00",
            node=node,
            job=name,
        )
        end = BootEnd(outcome=outcome, duration_s=1, first_record_s=0.5, command=[], host_load=0)
        trial: list[Record] = [
            TrialStart(trial=0, workload="zombies", params={"zombies": 3}),
            Sample(trial=0, repetition=0, metric="freeze_user_ns", value=1000 + boot.index + value),
            TrialEnd(trial=0, status="ok"),
        ]
        for record in (start, *trial, end):
            found.append(record.model_copy(update={"boot": boot.index}))
    return found


class FakeScheduler(Slurm):
    """``step`` is called whenever the driver pauses; it may end, lose or repeat jobs."""

    def __init__(self, nodes: Sequence[str] = ("n1", "n2")) -> None:
        self.words = "the cluster"
        self.names = list(nodes)
        self.queue: list[tuple[Job, Order]] = []
        self.submissions: list[Submission] = []
        self.executed: list[str] = []
        self.time = 0.0
        self.step: Callable[[], None] = self.run_all
        self.outcome: Callable[[int], Outcome] = lambda boot: "ok"
        self.unreachable = 0
        self.down: set[str] = set()

    def submit(self, job: Submission) -> str:
        self._answer()
        number = str(len(self.submissions) + 1)
        self.submissions.append(job)
        order = Order.model_validate_json(Path(job.command[-1]).read_bytes())
        self.queue.append((Job(number, "PENDING", "", job.comment, "Priority"), order))
        return number

    def jobs(self, name: str) -> list[Job]:
        self._answer()
        return [job for job, _ in self.queue]

    def cancel(self, name: str) -> None:
        self.queue = [
            (self._as(job, "CANCELLED") if job.live else job, order) for job, order in self.queue
        ]

    def nodes(self) -> list[Node]:
        self._answer()
        return [Node(name, "down*" if name in self.down else "idle") for name in self.names]

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.step()

    def now(self) -> float:
        return self.time

    def run_all(self) -> None:
        """Let every job that waits publish its result."""
        for number, (job, _) in enumerate(self.queue):
            if job.live:
                self.execute(number)

    def execute(self, number: int, *, state: str = "COMPLETED", value: int = 0) -> bool:
        """Execute a job, perhaps once more; return whether it was the first to publish."""
        job, order = self.queue[number]
        submission = self.submissions[int(job.id) - 1]
        wanted = [submission.node] if submission.node else self.names
        node = next((name for name in wanted if name not in submission.avoid), self.names[0])
        name = f"{job.id}-{len(self.executed)}-{node}"
        self.executed.append(job.comment)
        journal = Entry(order.journal)
        own = journal / "attempts" / order.key / str(order.attempt) / name
        own.make_new_folder()
        first = min(boot.index for boot in order.plan.boots)
        records = records_of(order, node, name, self.outcome(first), value)
        receipt = Receipt(
            key=order.key,
            attempt=order.attempt,
            name=name,
            node=node,
            job=job.id,
            qemu="",
            machine={"kernel": "6"},
            records=len(records),
        )
        self.queue[number] = (replace(self._as(job, state), node=node), order)
        return publish(journal, order.kind, own, receipt, records)

    def lose(
        self, number: int, state: str | None, *, node: str = "", output: str | None = ""
    ) -> None:
        """End a job without a result; None: forget it. ``output``: what it printed, None if
        nowhere."""
        if state is None:
            del self.queue[number]
        else:
            job, order = self.queue[number]
            if output is not None:
                Path(self.submissions[int(job.id) - 1].output).write_text(output)
            self.queue[number] = (replace(self._as(job, state), node=node), order)

    def fail(self, number: int, reason: str, node: str, *, host: bool) -> None:
        """Let a job say why it has no result."""
        job, order = self.queue[number]
        failure = Failure(key=order.key, attempt=order.attempt, node=node, reason=reason, host=host)
        write_failure(Entry(order.journal), failure, f"{job.id}-{node}")
        self.lose(number, "FAILED")

    def _as(self, job: Job, state: str) -> Job:
        return replace(job, state=state)

    def _answer(self) -> None:
        if self.unreachable:
            self.unreachable -= 1
            raise UnreachableError("Unable to contact slurm controller")
