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
from kteardown.kernels.source import file_hash
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import TrialEnd, TrialStart
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Bootable, Lab, execute
from kteardown.run.resolve import kernel_of
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm import host

_ROUNDS = 4
"""A boot that fails is followed by one without the trial in which it failed; at most so many times."""


@dataclass(frozen=True)
class Kernels:
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
    base = KernelRequest(on, on, fragments=tuple(config), modules=tuple(sorted(modules)))
    found = [kernel_of(each, base)[0] for each in (source, *against)]
    return [replace(kernel, name=name) for kernel, name in zip(found, (source, *against), strict=True)]


def build_kernels(requests: Sequence[KernelRequest], reporter: Reporter) -> Kernels:
    """Return the kernels, built or fetched. Raises BuildError, InputError, LabError."""
    return Kernels(build.ensure(list(requests), cache_dir=cache_dir(), reporter=reporter).images)


def measure_stage(
    folder: HuntFolder, name: str, plan: Plan, kernels: Kernels, lab: Lab, reporter: Reporter
) -> RunDir:
    """Boot the rest of a stage and return its run directory.

    Trials that come after one in which a guest failed are run in another boot. A stage that is complete
    boots nothing. Raises LabError, InputError; records that were written before are kept.
    """
    run = folder.stage(name, plan, file_hash(lab.agent))
    planned = plan_of(run)
    with open_writer(run, host.facts()) as log:
        for _ in range(_ROUNDS):
            execute(planned, kernels.bootable, lab, log, reporter)
            left = left_over(planned, run)
            if not left:
                break
            planned = planned.model_copy(update={"boots": (*planned.boots, *left)})
            run.save(run.plan_file, planned.model_dump_json(indent=1))
    return run


def left_over(plan: Plan, run: RunDir) -> list[PlannedBoot]:
    """Return boots for the trials that came after one in which the guest failed, and are not larger.

    Trials of the same way that have more objects would fail as well.
    """
    planned = {boot.index: boot for boot in plan.boots}
    last = {_subject(boot): boot.index for boot in plan.boots}
    left: list[PlannedBoot] = []
    for boot in run.boots():
        before = planned[boot.boot]
        if boot.end.outcome == "ok" or last[_subject(before)] != boot.boot:
            continue
        begun = [record for record in boot.records if isinstance(record, TrialStart)]
        done = {record.trial for record in boot.records if isinstance(record, TrialEnd)}
        failed = next((record for record in begun if record.trial not in done), None)
        trials = [t for t in before.trials if t.index not in done and failed and _other(t, failed)]
        if trials:
            index = len(plan.boots) + len(left)
            left.append(before.model_copy(update={"index": index, "trials": tuple(trials)}))
    return left


def _subject(boot: PlannedBoot) -> tuple[str, int, str]:
    """Return what a boot is about; one that goes on where another failed is about the same."""
    return boot.kernel, boot.seed, str(boot.trials[0].params["kind"])


def _other(trial: PlannedTrial, failed: TrialStart) -> bool:
    return trial.params["way"] != failed.params["way"]


def case_of(params: Mapping[str, int | str]) -> Case:
    """Return the case that a trial with these parameters is of."""
    return Case(str(params["kind"]), cast(Way, params["way"]), str(params["user"]))
