"""Boot the guests of one stage of a hunt."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from kteardown.hunt.catalogue import Way
from kteardown.hunt.folder import HuntFolder
from kteardown.hunt.plan import Case, alone_plan, kinds_in, shares_boots
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import check, file_hash
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Outcome, TrialStart
from kteardown.progress import Reporter
from kteardown.run.execute import Bootable, Lab, execute
from kteardown.run.make_plan import rest_of_failed
from kteardown.run.resolve import kernel_of
from kteardown.rundir.counting import EXACT, BootRecords, trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load_plan
from kteardown.rundir.writer import open_writer
from kteardown.vm import host

_FAILED: tuple[Outcome, ...] = ("panic", "hang", "oom", "agent-error")
_START = 10
"""On the instruction clock a guest takes as long to start as to make and release objects this many times:
7 to 12 s, and 0.3 to 1 s.
"""


def requests_of(
    source: str,
    against: Sequence[str],
    config: Sequence[str],
    modules: Iterable[str] = (),
    compiler: str = "",
) -> list[KernelRequest]:
    """Return what the kernels of a hunt are made of; the first is the one that is hunted on.

    Each is a source, or ``SERIES on SOURCE``; one of ``against`` may also be a series on the first one's
    source. ``modules`` are those that some kinds need. Raises InputError.
    """
    on = source.rpartition(" on ")[2]
    check(on)
    wanted = tuple(sorted(modules))
    base = KernelRequest(on, on, fragments=tuple(config), modules=wanted, compiler=compiler)
    found = [kernel_of(each, base)[0] for each in (source, *against)]
    return [replace(kernel, name=name) for kernel, name in zip(found, (source, *against), strict=True)]


def measure_stage(
    folder: HuntFolder,
    name: str,
    plan: Plan,
    kernels: Mapping[str, KernelImage],
    lab: Lab,
    reporter: Reporter,
) -> list[BootRecords]:
    """Boot the rest of a stage and return the records of its boots. A stage that is complete boots nothing.

    Where each kind has boots of its own, the trials after one in which a guest failed run in a further boot,
    without those of the way that failed. Where several kinds share a boot, those of a boot that failed, or of
    which a trial gave no figures, are measured again, each in a boot of its own: what one leaves may have
    made another fail. Raises LabError, InputError; records that were written before are kept.
    """
    run = folder.stage(name, plan, file_hash(lab.agent))
    planned = load_plan(run)
    shared = shares_boots(planned)
    # In real time a guest starts in seconds, and a trial that waits until it is quiet can take half a minute.
    start = _START if lab.acceleration == EXACT else 0

    def expected(trial: PlannedTrial) -> float:
        # The number of objects matters little, since the agent leaves out the trials that would take long.
        # Which these are is not known before; all boots have some.
        return trial.warmup + trial.repetitions + (start if trial.index == 0 else 0)

    bootable = {
        name: Bootable(image.image, image.modules, image.optional_modules) for name, image in kernels.items()
    }
    with open_writer(run, host.facts()) as log:
        execute(planned, bootable, lab, log, reporter, expected)
        while not shared and (more := further_boots(planned, run)):
            planned = planned.model_copy(update={"boots": (*planned.boots, *more)})
            run.save(run.plan_file, planned.model_dump_json(indent=1))
            execute(planned, bootable, lab, log, reporter, expected)
    boots = run.boots()
    failed = without_figures(planned, boots) if shared else ()
    if not failed:
        return boots
    names = ", ".join(dict.fromkeys(kind for _, kind in failed))
    reporter.note(f"measuring again, each alone, since their boots did not end well: {names}")
    again = alone_plan(planned, failed)
    return [
        *(without(boot, failed) for boot in boots),
        *measure_stage(folder, f"{name}-alone", again, kernels, lab, reporter),
    ]


def further_boots(plan: Plan, run: RunDir) -> tuple[PlannedBoot, ...]:
    """Return boots for the trials that come after one in which a guest failed, and release in another way."""
    # With more objects, the way that failed would fail as well.
    return rest_of_failed(
        plan,
        run.boots(),
        outcomes=_FAILED,
        leave_out=lambda one, failed: one.params["way"] == failed.params["way"],
    )


def without_figures(plan: Plan, boots: Iterable[BootRecords]) -> list[tuple[int, str]]:
    """Return boots and their kinds: all of a boot that failed, else those of trials that gave no figures."""
    found = []
    for boot in boots:
        failed = {str(trial.params["kind"]) for trial in trials(boot.records) if not trial.usable}
        kinds = kinds_in(plan.boots[boot.boot])
        found += [(boot.boot, kind) for kind in kinds if boot.end.outcome in _FAILED or kind in failed]
    return found


def without(boot: BootRecords, parts: Collection[tuple[int, str]]) -> BootRecords:
    """Return the records of a boot without those of trials of ``parts``, which are boots and their kinds."""
    left_out = {
        record.trial
        for record in boot.records
        if isinstance(record, TrialStart) and (boot.boot, record.params["kind"]) in parts
    }
    kept = (record for record in boot.records if getattr(record, "trial", None) not in left_out)
    return replace(boot, records=tuple(kept))


def case_of(params: Mapping[str, int | str]) -> Case:
    return Case(str(params["kind"]), cast(Way, params["way"]), str(params["user"]))
