"""Count, after a run with ``--profile``, what the variants do to waits and broadcasts.

One boot of each kernel at two sizes, whose other figures are not used: QEMU counts outside of the
kernel.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from kteardown.coverage.attribute import DebugInfo, counts_of
from kteardown.coverage.events import Counted, compare_events, happened
from kteardown.coverage.maps import small, two_sizes
from kteardown.errors import GuestError, InputError, KteardownError
from kteardown.kernels.request import KernelImage
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.events import EventCounts, EventFigure
from kteardown.model.point import size_of
from kteardown.model.record import BASE, NOT_VARIANTS
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Workload
from kteardown.progress import Reporter
from kteardown.run import create
from kteardown.run.boot_once import CountedTrial, boot_counted, boot_together
from kteardown.run.places import HERE
from kteardown.rundir.snapshot import Snapshot

_ELSEWHERE = "this host does not boot the guests of this run"
_Params = dict[str, ParamValue]


def count_events(snapshot: Snapshot, reporter: Reporter, *, here: bool) -> bool:
    """Count the events of each variant and workload, and keep them; return whether that was done.

    ``here``: whether this host boots the guests of the run. Nothing is counted without a profile,
    a second time, or of kernels without debug information. What goes wrong is kept as the reason:
    no figure needs a count. Raises LabError if that cannot be written.
    """
    run = snapshot.run
    is_second = run.name.endswith("/wall")
    if not snapshot.experiment.design.profile or is_second or run.events_file.exists():
        return False
    images = _images(snapshot)
    if len(images) < 2:
        return False
    counts: list[EventCounts] = []
    for name in dict.fromkeys(sweep.workload for sweep in snapshot.experiment.workloads):
        workload = snapshot.workloads[name]
        point = _point(snapshot, workload)
        about = {"workload": name, "point": point}
        try:
            outcome = _count(snapshot, workload, point, images, reporter) if here else _ELSEWHERE
        except KteardownError as error:
            outcome = error.message
        for variant in list(images)[1:]:
            values = (
                {"reason": outcome} if isinstance(outcome, str) else {"figures": outcome[variant]}
            )
            counts.append(EventCounts.model_validate({"variant": variant, **about, **values}))
    run.save(run.events_file, json.dumps([c.model_dump(mode="json") for c in counts], indent=1))
    return True


def _images(snapshot: Snapshot) -> dict[str, KernelImage]:
    """Return base and the requested variants that have debug information, base first."""
    images = {}
    for name in (BASE, *(name for name in snapshot.kernels if name not in NOT_VARIANTS)):
        facts = snapshot.kernels.get(name)
        if facts is None or facts.for_ablation or facts.unchanged or facts.arch != DEFAULT_ARCH:
            continue
        try:
            _, image = create.built(snapshot.run, name)
            DebugInfo(image.image.parent)
        except InputError:
            continue
        images[name] = image
    return images if BASE in images else {}


def _point(snapshot: Snapshot, workload: Workload) -> _Params:
    """Return a small point: what one object more adds there is what it adds at a large one."""
    points = [point.params for point in snapshot.plan.points if point.workload == workload.name]
    smallest = min(points, key=lambda params: size_of(params, workload.law))
    if workload.script:  # It may need this size.
        return {name: smallest[name] for name in workload.parameters}
    return {name: small(name, smallest[name], workload) for name in workload.parameters}


def _count(
    snapshot: Snapshot,
    workload: Workload,
    point: Mapping[str, ParamValue],
    images: Mapping[str, KernelImage],
    reporter: Reporter,
) -> dict[str, list[EventFigure]]:
    """Return the figures of each variant."""
    sizes = two_sizes(workload, point)
    first, last = (size_of(size, workload.law) for size in (sizes[0], sizes[-1]))
    boots = _booted(snapshot, workload, [sizes[0], *sizes], images, reporter)
    sides: dict[str, list[list[Counted]]] = {}
    later: dict[str, list[list[Counted]]] = {}
    for name, trials in boots.items():
        info = DebugInfo(images[name].image.parent)
        ends = (trials[1], trials[-1])
        sides[name] = [[happened(counts_of(t.executed, inside=True), info)] for t in ends]
        later[name] = [[happened(counts_of(t.afterwards, inside=False), info)] for t in ends]
    figures = {}
    for name in list(images)[1:]:
        about = workload.law, last - first
        figures[name] = [
            *compare_events([*sides[BASE], *sides[name]], *about),
            *compare_events([*later[BASE], *later[name]], *about, afterwards=True),
        ]
    return figures


def _booted(
    snapshot: Snapshot,
    workload: Workload,
    points: Sequence[Mapping[str, ParamValue]],
    images: Mapping[str, KernelImage],
    reporter: Reporter,
) -> dict[str, Sequence[CountedTrial]]:
    """Boot each kernel once; return its trials. In the first a kernel does some things only once.

    Raises GuestError if one did not run.
    """
    planned = next(p.params for p in snapshot.plan.points if p.workload == workload.name)
    machine = snapshot.experiment.machine
    swept = {name: planned[name] for name in machine.swept}
    booting = HERE.machine("", reporter, repeat=False)
    bootable = create.bootable(snapshot.run)
    boots = [
        partial(
            boot_counted,
            bootable[name],
            workload,
            points,
            reporter,
            folder=snapshot.experiment.folder,
            spec=machine.model_copy(update=swept),
            machine=booting,
            also="later",
            place=snapshot.run.folder,
        )
        for name in images
    ]
    title = f"Counting waits and broadcasts of {workload.name}"
    with reporter.task(title, total=len(boots)) as task:
        booted = dict(zip(images, boot_together(boots, booting, task.update), strict=True))
    for name, boot in booted.items():
        for trial in boot.trials:
            if not trial.ran:
                raise GuestError(
                    f"{workload.name} did not run in the guest of {name} that counts: "
                    f"{trial.detail}",
                    hint="run it alone.",
                )
    return {name: boot.trials for name, boot in booted.items()}
