"""Count what the changed functions execute, where a kernel's own figures claim more than can be
seen.

One boot of base and one of the variant, of which only the count is used: QEMU makes it outside of
the kernel.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from kteardown.analysis.self_timed import to_count
from kteardown.coverage.attribute import DebugInfo, counts_of
from kteardown.coverage.changed import changed_for_certain, changed_functions
from kteardown.errors import KteardownError
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import MachineSpec
from kteardown.model.judged import Comparison
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import ChangeCost, Result
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run import create
from kteardown.run.boot_once import CountedBoot, boot_counted, boot_together
from kteardown.run.places import HERE
from kteardown.rundir.snapshot import Snapshot, load

_ELSEWHERE = "this host does not boot the guests of this run"


def count_changes(
    snapshot: Snapshot, result: Result, reporter: Reporter, *, here: bool
) -> Snapshot | None:
    """Count what the changed functions execute for each variant and workload that needs it, and
    keep that.

    ``here``: whether this host boots the guests of the run. Return the run with the counts; None if
    none is needed. Where nothing can be counted, the reason is kept: no figure needs a count.
    Raises LabError if that cannot be written.
    """
    counted = {(cost.variant, cost.workload) for cost in snapshot.counted}
    wanted = [
        c for c in to_count(result, snapshot.workloads) if (c.variant, c.workload) not in counted
    ]
    if not wanted:
        return None
    costs = [*snapshot.counted]
    for c in wanted:
        about = {"variant": c.variant, "workload": c.workload, "point": c.point}
        try:
            outcome = _count(snapshot, c, reporter) if here else _ELSEWHERE
        except KteardownError as error:
            outcome = error.message
        values = (
            {"reason": outcome}
            if isinstance(outcome, str)
            else {"base": outcome[0], "changed": outcome[1]}
        )
        costs.append(ChangeCost.model_validate({**about, **values}))
    text = json.dumps([cost.model_dump(mode="json") for cost in costs], indent=1)
    snapshot.run.save(snapshot.run.counted_file, text)
    return load(snapshot.run)


def _count(snapshot: Snapshot, c: Comparison, reporter: Reporter) -> tuple[float, float] | str:
    """Return the instructions in the changed functions of base and the variant, or why they are not
    known."""
    run = snapshot.run
    workload = snapshot.workloads[c.workload]
    base = create.built(run, BASE)
    variant = create.built(run, c.variant)
    if why := _why_not(base, variant):
        return why
    sources = Sources(cache_dir(), reporter)
    source = sources.identify(base[0].source)
    if source.id != base[1].source:
        return "the source of base has changed since it was built"
    tree = sources.tree(source)
    changed = changed_for_certain(changed_functions(variant[0].patches, tree), variant[1])
    functions = {change.id for change in changed if change.kind == "function"}
    if not functions:
        return "the series changes no function"
    points = snapshot.plan.points
    point = next((p for p in points if (p.workload, p.shown) == (c.workload, c.point)), None)
    if point is None:
        return "the plan of the run does not contain the point of this comparison"
    params = {name: point.params[name] for name in workload.parameters}
    swept = {name: point.params[name] for name in snapshot.experiment.machine.swept}
    machine = snapshot.experiment.machine.model_copy(update=swept)
    images = [base[1], variant[1]]
    costs = []
    shares: dict[str, float] = {}
    boots = _boots(snapshot, workload, params, machine, images, reporter)
    for image, booted in zip(images, boots, strict=True):
        trial = booted.trials[-1]
        if not trial.ran:
            return f"{workload.name} did not run in the guest that counts: {trial.detail}"
        info = DebugInfo(image.image.parent)
        counts = counts_of(trial.executed, inside=True)
        costs.append(info.with_callees(counts, functions, shares))
        shares = shares or info.shares_of_callees(counts, functions)
    return costs[0], costs[1]


def _why_not(
    base: tuple[KernelRequest, KernelImage], variant: tuple[KernelRequest, KernelImage]
) -> str:
    """Return why nothing can be counted of a variant; empty if it can."""
    if not variant[0].patches or variant[0].source != base[0].source:
        return "the variant is not a series on the source of base"
    if base[1].arch != DEFAULT_ARCH:
        return f"kteardown counts only on kernels for {DEFAULT_ARCH}"
    return ""


def _boots(
    snapshot: Snapshot,
    workload: Workload,
    params: Mapping[str, ParamValue],
    machine: MachineSpec,
    images: Sequence[KernelImage],
    reporter: Reporter,
) -> list[CountedBoot]:
    """Boot each kernel once. The last trial counts: in the first one a kernel does some things only
    once."""
    # A script finds what it left behind if it runs twice.
    points = [params] * (1 if workload.script else 2)
    booting = HERE.machine("", reporter, repeat=False)
    bootable = create.bootable(snapshot.run)
    boots = [
        partial(
            boot_counted,
            bootable[image.name],
            workload,
            points,
            reporter,
            folder=snapshot.experiment.folder,
            spec=machine,
            machine=booting,
            place=snapshot.run.folder,
        )
        for image in images
    ]
    names = " and ".join(image.name for image in images)
    reporter.note(
        f"{images[-1].name}: the kernel's own figures are better, but the call that contains them "
        "cannot show the gain: kteardown counts from outside what the changed functions execute, "
        "in one more boot of each kernel"
    )
    with reporter.task(f"Counting what {names} execute", total=len(boots)) as task:
        return boot_together(boots, booting, task.update)
