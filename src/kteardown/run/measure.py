"""Measure a run: the boots up to the next look, the layout twin if a claim needs it, the profiled
boots.

Every decision is made from the run directory, so a run that was killed continues as an unbroken
one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from kteardown.errors import BuildError, InputError, NotBuiltError
from kteardown.kernels import build
from kteardown.kernels.request import Built, KernelRequest
from kteardown.model.kernel_facts import not_built
from kteardown.model.plan import Plan, blocks_of
from kteardown.model.record import LAYOUT, TWIN
from kteardown.model.result import Result
from kteardown.paths import cache_dir
from kteardown.progress import InterimResult, Reporter, Task
from kteardown.run import create
from kteardown.run import lab as labs
from kteardown.run.execute import execute
from kteardown.run.forecast import Forecast, forecast_of
from kteardown.run.make_plan import rest_of_failed, with_layout_twin
from kteardown.run.places import Where
from kteardown.run.setting import Lab
from kteardown.rundir.completeness import measurable, up_to
from kteardown.rundir.snapshot import Snapshot, load, load_kernels
from kteardown.rundir.writer import RecordWriter, open_writer


def measure(
    snapshot: Snapshot,
    log: RecordWriter,
    reporter: Reporter,
    expected: Forecast,
    where: Where,
    *,
    after: Result | None = None,
    interim: Callable[[], Sequence[InterimResult]] = tuple,
    of_base: Callable[[], Sequence[str]] = tuple,
) -> Snapshot:
    """Boot the rest of the plan, with ``--until`` only up to the next look, and return the run as
    it is then.

    ``after`` is the result of the last look; ``interim`` returns the comparisons so far;
    ``of_base`` returns the lines about base that are shown if it boots while the variants are
    built. Raises LabError, BuildError; records that were written before are kept.
    """
    due = measurable(_due(snapshot, after), snapshot.kernels)
    run = snapshot.run

    def boot(plan: Plan) -> None:
        show = partial(reporter.interim_results, interim)
        execute(plan, create.bootable(run), lab, log, reporter, expected.weight, show)

    def boot_base(plan: Plan) -> None:
        boot(plan)
        for line in of_base() if plan.boots else ():
            reporter.note(line)

    while True:
        finished = log.finished()
        if where.place.unsettled(run) or not all(boot.index in finished for boot in due.boots):
            lab = labs.make_lab(snapshot, reporter, where)
            log.agent_hash = lab.agent_hash
            with suppress(NotBuiltError):
                if missing := create.missing_kernels(run):
                    _build_meanwhile(snapshot, due, missing, boot_base, lab, reporter)
                boot(measurable(due, load_kernels(run)))
        snapshot = load(run)
        due = _plan_rest_of_hung(snapshot, log, reporter)
        if not due.boots:
            return snapshot


def _build_meanwhile(
    snapshot: Snapshot,
    due: Plan,
    missing: Sequence[KernelRequest],
    boot: Callable[[Plan], None],
    lab: Lab,
    reporter: Reporter,
) -> None:
    """Build ``missing`` while the kernels of ``due`` that are already built boot."""
    # On the wall clock a build would disturb them.
    exact = snapshot.experiment.design.clock != "wall"
    not_yet = {TWIN, *(request.name for request in missing)}
    now = tuple(boot for boot in due.boots if exact and boot.kernel not in not_yet)
    with ThreadPoolExecutor(1) as pool:
        booting = pool.submit(boot, due.model_copy(update={"boots": now}))
        try:
            build_beside(booting, partial(_build, snapshot, missing), reporter)
        except BaseException:
            # If no kernel differs from base, the boots of base are of no use.
            lab.stop()
            raise


def _plan_rest_of_hung(snapshot: Snapshot, log: RecordWriter, reporter: Reporter) -> Plan:
    """Add boots with the trials that boots which hung did not reach to the plan, and return these
    boots."""
    plan = snapshot.plan
    run = snapshot.run
    hung = any(end.outcome == "hang" for end in log.finished().values())
    more = rest_of_failed(plan, snapshot.boots) if hung else ()
    if more:
        trials = sum(len(boot.trials) for boot in more)
        reporter.note(
            f"running the {trials} trials that hung guests did not reach, in further guests"
        )
        extended = plan.model_copy(update={"boots": (*plan.boots, *more)})
        run.save(run.plan_file, extended.model_dump_json(indent=1))
    return plan.model_copy(update={"boots": more})


def measure_profile(snapshot: Snapshot, reporter: Reporter, where: Where) -> bool:
    """Boot the rest of the profiled boots; return whether anything was booted. Raises LabError."""
    if snapshot.profile_plan is None:
        return False
    planned = measurable(snapshot.profile_plan, snapshot.kernels)
    with open_writer(snapshot.run.profile) as log:
        finished = log.finished()
        unsettled = where.place.unsettled(log.run)
        if not unsettled and all(boot.index in finished for boot in planned.boots):
            return False
        reporter.note("sampling kernel stacks for the profile, in boots that are not compared")
        # Where the time goes is a share as well, and the host's part of it is not the kernel's.
        lab: Lab = replace(labs.make_lab(snapshot, reporter, where, counts=False), lost_limit=None)
        execute(planned, create.bootable(snapshot.run), lab, log, reporter)
    return True


def forecast_rest(snapshot: Snapshot, log: RecordWriter, jobs: int | None) -> tuple[Forecast, int]:
    """Return the forecast for the rest of the boots, and their number."""
    finished = log.finished()
    planned = measurable(snapshot.plan, snapshot.kernels)
    left = tuple(boot for boot in planned.boots if boot.index not in finished)
    rest = snapshot.plan.model_copy(update={"boots": left})
    return forecast_of(snapshot.experiment, snapshot.workloads, rest, jobs), len(left)


def add_layout_twin(snapshot: Snapshot, result: Result, reporter: Reporter) -> Snapshot | None:
    """Build the layout twin and plan its blocks, if the result claims a change that code layout can
    cause.

    Return the run with them; None if there is nothing to boot: the twin is not needed, is already
    planned, or cannot be built.
    """
    from kteardown.analysis.conclude import needs_layout_twin

    planned = snapshot.plan
    run = snapshot.run
    if not needs_layout_twin(result, snapshot.workloads) or any(
        b.kernel == LAYOUT for b in planned.boots
    ):
        return None
    try:
        create.add_layout_twin(snapshot, reporter)
    except (BuildError, InputError) as error:
        reporter.note(
            "a claimed change of less than 10% needs a layout twin, which cannot be built: "
            f"{error.message}"
        )
        return None
    design = snapshot.experiment.design
    blocks = result.stopping.stopped_at if result.stopping else blocks_of(design)
    reporter.note(
        "code layout alone can cause a claimed change of less than 10%: booting "
        f"{blocks} more blocks of base and its layout twin"
    )
    extended = with_layout_twin(planned, snapshot.experiment, snapshot.workloads, blocks)
    run.save(run.plan_file, extended.model_dump_json(indent=1))
    return load(run)


def _due(snapshot: Snapshot, after: Result | None) -> Plan:
    """Return the part of the plan to boot before the next analysis."""
    design = snapshot.experiment.design
    planned = snapshot.plan
    if not design.until:
        return planned
    from kteardown.analysis.conclude import next_look

    added = [boot for boot in planned.boots if boot.block >= blocks_of(design)]
    due = up_to(planned, next_look(design, after)).boots
    return planned.model_copy(update={"boots": (*due, *added)})


def _build(snapshot: Snapshot, missing: Sequence[KernelRequest], reporter: Reporter) -> None:
    """Build the missing kernels, and add them. Raises NotBuiltError if nothing is left to
    measure."""
    try:
        built: Built = build.ensure(missing, cache_dir=cache_dir(), reporter=reporter)
    except BuildError as error:
        name = snapshot.run.name
        raise BuildError(
            error.message,
            hint=(
                f"{error.hint} The run {name} keeps the patches that it began with. If you change "
                "a patch, start the experiment anew; kteardown does not build base again. If this "
                "host was the cause, fix the host and resume the run: kteardown run --resume "
                f"{name}"
            ),
        ) from error
    create.check_same_source(snapshot, missing, built)
    create.save_built(snapshot.run, built)
    kernels = load_kernels(snapshot.run)
    if not measurable(snapshot.plan, kernels).boots:
        raise NotBuiltError.of(", ".join(not_built(kernels)))


class _BootsFailed(BaseException):
    """Ends a build. Not an Exception: a step of a build that handles its errors must not handle
    this one."""


def build_beside(
    booting: Future[None], build: Callable[[Reporter], None], reporter: Reporter
) -> None:
    """Call ``build``, then wait for ``booting``. Raises what either of them raises, whichever is
    first."""
    with suppress(_BootsFailed):
        build(_Watching(reporter, booting))
    booting.result()


@dataclass(frozen=True)
class _Watching(Reporter):
    """A reporter for ``build``, which reports every step."""

    reporter: Reporter
    booting: Future[None]

    def check(self) -> None:
        if self.booting.done() and self.booting.exception() is not None:
            raise _BootsFailed

    def note(self, text: str) -> None:
        self.reporter.note(text)

    def command(self, argv: list[str]) -> None:
        self.check()
        self.reporter.command(argv)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        self.check()
        with self.reporter.task(title, total) as task:
            yield _WatchedTask(task, self.check)


@dataclass(frozen=True)
class _WatchedTask(Task):
    task: Task
    check: Callable[[], None]

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        self.check()
        self.task.update(completed, detail, total=total)
