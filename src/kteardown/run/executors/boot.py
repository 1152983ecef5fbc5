"""Run boots on this machine: attempt each, and write every record as it arrives."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from kteardown.errors import LabError
from kteardown.kernels.source_lines import SourceLines
from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import AgentError, BootEnd, BootStart, Record, TrialEnd, TrialStart, parse
from kteardown.run.executors.port import Ended, Executor, Lab, Piece, Setting
from kteardown.rundir.counting import EXACT
from kteardown.rundir.writer import RecordWriter
from kteardown.vm.host import load_average
from kteardown.vm.host_watch import HostWatch
from kteardown.vm.initramfs import pack
from kteardown.vm.job import Acceleration, BootJob, BootResult
from kteardown.vm.kernel_log import plain_line

# How much longer than on hardware a guest may be silent under each acceleration before its outcome is
# `hang`. Workloads write a record every few seconds even with mttcg; the factor is for a loaded host, which
# does not matter to icount: its limit is on the guest's own clock.
SILENCE_FACTOR: Mapping[Acceleration, float] = {"kvm": 1.0, "mttcg": 5.0, "icount": 0.5}


def attempt_boot(boot: PlannedBoot, attempt: int, setting: Setting) -> BootResult:
    """Run one attempt at ``boot`` and write its records to the log. Raises InputError, LabError."""
    lab, log, watch = setting.lab, setting.log, setting.watch
    kernel = setting.kernels[boot.kernel]

    def keep(record: Record) -> None:
        log.append(record, boot=boot.index, attempt=attempt)

    # On the instruction clock nothing that the host does reaches a figure.
    host = None if lab.acceleration == EXACT else HostWatch()

    def on_line(raw: bytes) -> None:
        record = _completed(raw, boot, host, began, lab.lost_limit)
        if isinstance(record, TrialEnd):
            watch.done(boot, record.trial)
        elif isinstance(record, TrialStart):
            watch.trial(boot, record.trial)
        keep(record)

    console = log.console_path(boot.index, attempt)
    # In the run directory, so that a killed kteardown leaves no file elsewhere.
    initramfs = console.with_suffix(".cpio")
    modules = kernel.modules_of(boot)
    done = log.completed(boot.index)
    left = boot.model_copy(update={"trials": tuple(t for t in boot.trials if t.index not in done)})
    try:
        pack(
            initramfs,
            agent=lab.agent,
            plan=guest_plan(left, [f"/modules/{path.name}" for path in modules]),
            modules=modules,
            programs=lab.programs,
        )
        keep(
            BootStart(
                kernel=boot.kernel,
                block=boot.block,
                seed=boot.seed,
                acceleration=lab.acceleration,
                host_load=load_average(),
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                machine=boot.machine,
                lost_limit=lab.lost_limit if host else None,
            )
        )
        began = time.monotonic()
        result = lab.machine.boot(_job(boot, setting, console, initramfs, host), on_line)
    finally:
        initramfs.unlink(missing_ok=True)
    result = _with_source_lines(result, kernel.source_lines(lab.arch))
    keep(_end(result))
    return result


def guest_plan(boot: PlannedBoot, modules: Sequence[str] = ()) -> str:
    """Return the plan of one boot as the agent reads it; docs/formats.md has the format."""
    lines = ["kteardown-plan 1", f"seed {boot.seed}"]
    lines += [f"module {path}" for path in modules]
    profile_ns = 0
    for trial in boot.trials:
        if trial.profile_ns != profile_ns:
            profile_ns = trial.profile_ns
            lines.append(f"profile {profile_ns}")
        params = "".join(f" {name}={value}" for name, value in trial.params.items())
        lines.append(f"trial {trial.index} {trial.workload} {trial.warmup} {trial.repetitions}{params}")
    return "\n".join(lines) + "\n"


def _completed(
    raw: bytes, boot: PlannedBoot, host: HostWatch | None, began: float, limit: float | None
) -> Record:
    """Return a line of the agent as a record with what the lab adds; an unparsable one is an AgentError.

    The host is watched from start to end of a trial.
    """
    try:
        record: Record = parse(raw)
    except ValidationError:
        _, text = plain_line(raw[:200].decode(errors="backslashreplace"))
        return AgentError(detail=f"not a record: {text}")
    if isinstance(record, TrialStart):
        if host:
            host.begin()
        return record.model_copy(update={"params": {**boot.machine, **record.params}})
    if isinstance(record, TrialEnd):
        lost = host.end() if host else None
        disturbed = ""
        if record.status == "ok" and lost is not None and limit is not None and lost.share > limit:
            disturbed = f"other work of the host took more than {limit * 100:g}% of its time"
        at_s = round(time.monotonic() - began, 3)
        return record.model_copy(update={"at_s": at_s, "lost": lost, "disturbed": disturbed})
    return record


def _end(result: BootResult) -> BootEnd:
    return BootEnd(
        outcome=result.outcome,
        detail=result.detail,
        duration_s=result.duration_s,
        first_record_s=result.first_record_s,
        command=list(result.command),
        host_load=load_average(),
        peak_rss_kb=result.peak_rss_kb,
        problems=result.problems,
        last_lines=result.last_lines,
        placed=result.placed,
    )


def _with_source_lines(result: BootResult, source: SourceLines) -> BootResult:
    """Return ``result`` with the source lines of what the kernel printed."""
    texts = [(result.detail,), result.last_lines, *(problem.excerpt for problem in result.problems)]
    flat = source.annotate([line for text in texts for line in text])
    found = iter(flat)
    (detail,), last, *excerpts = (tuple(itertools.islice(found, len(text))) for text in texts)
    return replace(
        result,
        detail=detail,
        last_lines=last,
        problems=tuple(
            problem.model_copy(update={"excerpt": excerpt})
            for problem, excerpt in zip(result.problems, excerpts, strict=True)
        ),
    )


def _job(
    boot: PlannedBoot, setting: Setting, console: Path, initramfs: Path, host: HostWatch | None
) -> BootJob:
    plan, lab = setting.plan, setting.lab
    return BootJob(
        image=setting.kernels[boot.kernel].image,
        initramfs=initramfs,
        arch=lab.arch,
        acceleration=lab.acceleration,
        cpus=boot.machine.get("cpus", plan.cpus),
        memory_mb=plan.memory_mb,
        seed=boot.seed,
        console=console,
        silence_s=plan.silence_s * SILENCE_FACTOR[lab.acceleration],
        kernel_args=lab.kernel_args,
        possible_cpus=boot.machine.get("possible_cpus", plan.possible_cpus),
        numa_nodes=boot.machine.get("numa_nodes", plan.numa_nodes),
        on_vcpus=host.vcpus if host else None,
    )


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
