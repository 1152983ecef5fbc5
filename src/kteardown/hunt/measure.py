"""Boot the guests of one stage of a hunt, each with one kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from kteardown.hunt.catalogue import Way
from kteardown.hunt.folder import HuntFolder, plan_of
from kteardown.hunt.plan import Case
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import check, file_hash
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Outcome
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import execute
from kteardown.run.executors.port import Bootable, Lab
from kteardown.run.make_plan import rest_of_failed
from kteardown.run.resolve import kernel_of
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm import host

_FAILED: tuple[Outcome, ...] = ("panic", "hang", "oom", "agent-error")


@dataclass(frozen=True)
class HuntKernels:
    """The kernels of a hunt, by source."""

    images: Mapping[str, KernelImage]

    @property
    def bootable(self) -> dict[str, Bootable]:
        """Return the files to boot, by source."""
        return {
            name: Bootable(image.image, image.modules, image.optional_modules)
            for name, image in self.images.items()
        }


def requests_of(
    source: str, against: Sequence[str], config: Sequence[str], modules: Iterable[str] = ()
) -> list[KernelRequest]:
    """Return what the kernels of a hunt are made of; the first is the one that is hunted on.

    Each is a source, or ``SERIES on SOURCE``; one of ``against`` may also be a series on the first one's
    source. ``modules`` are those that some kinds need. Raises InputError.
    """
    on = source.rpartition(" on ")[2]
    check(on)
    base = KernelRequest(on, on, fragments=tuple(config), modules=tuple(sorted(modules)))
    found = [kernel_of(each, base)[0] for each in (source, *against)]
    return [replace(kernel, name=name) for kernel, name in zip(found, (source, *against), strict=True)]


def build_kernels(requests: Sequence[KernelRequest], reporter: Reporter) -> HuntKernels:
    """Return the kernels, built or fetched. Raises BuildError, InputError, LabError."""
    return HuntKernels(build.ensure(list(requests), cache_dir=cache_dir(), reporter=reporter).images)


def measure_stage(
    folder: HuntFolder,
    name: str,
    plan: Plan,
    kernels: HuntKernels,
    lab: Lab,
    reporter: Reporter,
    *,
    further: bool = True,
) -> RunDir:
    """Boot the rest of a stage and return its run directory.

    With ``further``, the trials after one in which a guest failed run in a further boot, without those of the
    way that failed. A stage that is complete boots nothing. Raises LabError, InputError; records that were
    written before are kept.
    """
    run = folder.stage(name, plan, file_hash(lab.agent))
    planned = plan_of(run)
    with open_writer(run, host.facts()) as log:
        execute(planned, kernels.bootable, lab, log, reporter)
        while further and (more := further_boots(planned, run)):
            planned = planned.model_copy(update={"boots": (*planned.boots, *more)})
            run.save(run.plan_file, planned.model_dump_json(indent=1))
            execute(planned, kernels.bootable, lab, log, reporter)
    return run


def further_boots(plan: Plan, run: RunDir) -> tuple[PlannedBoot, ...]:
    """Return boots for the trials that come after one in which a guest failed, and release in another way.

    With more objects, the way that failed would fail as well.
    """
    return rest_of_failed(plan, run.boots(), outcomes=_FAILED, leave_out=_same_way)


def kinds_of_failed(plan: Plan, boots: Iterable[BootRecords]) -> set[str]:
    """Return the names of the kinds in boots in which the guest failed."""
    failed = (plan.boots[boot.boot] for boot in boots if boot.end.outcome in _FAILED)
    return {str(trial.params["kind"]) for boot in failed for trial in boot.trials}


def _same_way(trial: PlannedTrial, failed: PlannedTrial) -> bool:
    return trial.params["way"] == failed.params["way"]


def case_of(params: Mapping[str, int | str]) -> Case:
    """Return the case that a trial with these parameters is of."""
    return Case(str(params["kind"]), cast(Way, params["way"]), str(params["user"]))
