"""Collect the coverage map of a kernel: boot it once for each workload, with the plugin."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from kteardown.coverage.attribute import DebugInfo, FunctionId, addresses_of, attribute
from kteardown.coverage.boots import CountedBoot, boot_counted
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage, read_map, write_map
from kteardown.coverage.points import points_of, words
from kteardown.errors import GuestError, InputError
from kteardown.inputs.load import load_workload, own_sources
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import file_hash
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Bootable
from kteardown.vm.agent import build_agent
from kteardown.vm.qemu_library import build_plugin

_RULES = 1
"""To be increased when the same boot gives another map."""


def collect(names: Sequence[str], source: str, reporter: Reporter) -> CoverageMap:
    """Return what the workloads ``names`` execute on the base kernel of ``source``.

    A workload that was counted on this kernel before is read from the cache. The kernel has the base
    configuration: workloads that ask for more of it (``config``) are counted without. Raises InputError,
    BuildError, LabError; a workload whose guest fails is noted and has no points.
    """
    request = KernelRequest(name="base", source=source)
    image = build.ensure([request], cache_dir=cache_dir(), reporter=reporter).images["base"]
    found: dict[str, WorkloadCoverage] = {}
    with reporter.task(f"counting what {len(names)} workloads execute", total=len(names)) as task:
        info: list[DebugInfo] = []
        for done, name in enumerate(names):
            task.update(done, name)
            found[name] = _cached(load_workload(name), image, info, reporter)
    return CoverageMap(image.source, found)


def content_id(workload: Workload, image: KernelImage, reporter: Reporter) -> str:
    """Return the id of what ``workload`` executes on this kernel: of all that it depends on."""
    own = own_sources([workload.name])
    agent = build_agent(DEFAULT_ARCH, cache=cache_dir(), reporter=reporter, own=own)
    plugin = build_plugin(DEFAULT_ARCH, cache=cache_dir(), reporter=reporter)
    facts = [_RULES, image.image_hash, file_hash(agent), plugin.name, workload.cpus, workload.memory_mb]
    text = json.dumps([*facts, workload.name, points_of(workload)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cached(
    workload: Workload, image: KernelImage, info: list[DebugInfo], reporter: Reporter
) -> WorkloadCoverage:
    known = content_id(workload, image, reporter)
    path = cache_dir() / "coverage" / f"{workload.name}-{known}.json.xz"
    try:
        return read_map(path).workloads[workload.name]
    except InputError:
        pass  # It was not counted yet.
    if not info:
        info.append(DebugInfo(image.image.parent))
    kernel, points = Bootable(image.image, image.modules), points_of(workload)
    failed: tuple[str, ...] = ()
    # A point at which this kernel hangs or panics must not take the others with it.
    for chosen in (points, points[:1]):
        try:
            booted = boot_counted(kernel, workload, chosen, reporter, own=own_sources([workload.name]))
        except GuestError as error:
            failed = (*failed, f"{len(chosen)} points: {error.message}")
            continue
        counted = coverage_of(workload, booted, info[0])
        counted = replace(counted, failed=(*failed, *counted.failed), content_id=known)
        write_map(path, CoverageMap(image.source, {workload.name: counted}))
        return counted
    reporter.note(f"{workload.name} is not in the map: {failed[-1]}")
    return WorkloadCoverage(workload.name, (), frozenset(), failed=failed, content_id=known)


def coverage_of(workload: Workload, booted: CountedBoot, info: DebugInfo) -> WorkloadCoverage:
    """Return the functions of what was counted in a boot of ``workload``."""
    info.learn(addresses_of(trial.executed for trial in booted.trials))
    points: list[PointCoverage] = []
    failed: list[str] = []
    outside: set[FunctionId] = set()
    for trial in booted.trials:
        inside, elsewhere = attribute(trial.executed, info)
        outside |= elsewhere.functions.keys()
        # A void trial ran, though at so small a size an invariant of its figures may not hold.
        if trial.status in ("ok", "void") and trial.executed.stretches:
            points.append(PointCoverage(trial.params, inside.instructions, inside.functions))
        else:
            outside |= inside.functions.keys()
            why = trial.detail or ("no stretch was seen" if trial.status else "it did not end")
            failed.append(f"{words(trial.params, workload)}: {why}")
    seen = {function for point in points for function in point.inside}
    return WorkloadCoverage(
        workload.name, tuple(points), frozenset(outside - seen), booted.seconds, tuple(failed)
    )
