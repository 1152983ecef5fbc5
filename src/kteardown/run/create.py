"""Create a run: build its kernels, make its plan, write its directory.

The files of a series or the cache may change before a run is resumed; those in its directory do
not. A kernel whose source or fragments have changed by then is refused.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from pydantic import TypeAdapter, ValidationError

from kteardown import version
from kteardown.door import LARGE, Entry
from kteardown.errors import InputError, damaged
from kteardown.kernels import build, build_plan, cache_folder, layout_twin
from kteardown.kernels.prebuilt import is_prebuilt
from kteardown.kernels.request import Building, Built, KernelImage, KernelRequest
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.experiment import Experiment
from kteardown.model.kernel_facts import Unavailable
from kteardown.model.plan import DesignPower, Plan, Spread, controls
from kteardown.model.point import points_of
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import Result
from kteardown.paths import cache_dir, runs_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.run.forecast import Forecast, forecast_of
from kteardown.run.make_plan import make_plan, plan_profile
from kteardown.run.resolve import Resolved
from kteardown.run.setting import Bootable
from kteardown.rundir import snapshot
from kteardown.rundir.directory import RunDir, removed_unless_whole
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import Snapshot, read_json
from kteardown.vm import host

_TWIN_PATCH = "layout-twin.patch"
_RESTORE = "restore the run directory from a copy."
_kernel_request = TypeAdapter(KernelRequest)
_kernel_image = TypeAdapter(KernelImage)
_RUNS = 50
"""How many of the newest runs are read."""


def save_requests(
    run: RunDir, resolved: Resolved, left_out: Mapping[str, str], sources: Sources
) -> None:
    """Write the sources and patches of the kernels. Raises LabError, BuildError, InputError."""
    requests = {}
    for kernel in resolved.kernels:
        if kernel.name not in left_out:
            settled = kernel
            choose = build_plan.choose_backport
            if kernel.backports:
                settled = choose(kernel, sources.identify(kernel.source), sources)
            folder = f"series/{_file_name(settled.name)}"
            for patch in settled.patches:
                run.copy(patch, run.folder / folder / patch.name)
            patches = tuple(Path(folder, patch.name) for patch in settled.patches)
            kept = replace(
                settled, patches=patches, fragments=run.keep_fragments(settled.fragments)
            )
            requests[kernel.name] = _kernel_request.dump_python(
                kept, mode="json", exclude={"name", "backports"}
            )
    run.save(run.folder / "requests.json", json.dumps(requests, indent=1, default=str))
    sets = {kernel.name: kernel.patch_set for kernel in resolved.kernels if kernel.patch_set}
    missing = [
        Unavailable(kernel=name, patch_set=sets[name], reason=why).model_dump()
        for name, why in left_out.items()
    ]
    if missing:
        run.save(run.unavailable_file, json.dumps(missing, indent=1))
    if resolved.experiment.design.clock == "wall" and not resolved.experiment.design.layout_twin:
        twin = layout_twin.request(resolved.base, resolved.series, sources)
        if twin is not None:
            run.copy(twin.patches[0], run.folder / _TWIN_PATCH)


def save_built(run: RunDir, built: Built) -> None:
    """Add kernels that were built, with their configurations. Raises LabError."""
    requests = _json(run.folder / "requests.json")
    kernels = _json(run.kernels_file)
    # Base is built first, maybe in an earlier call.
    base = built.images.get(BASE) or _kernel_image.validate_python(
        {"name": BASE, "series": "", **kernels[BASE]}
    )
    for name, image in built.images.items():
        request = requests.get(name, {})
        kernels[name] = {
            **asdict(image),
            "patch_set": request.get("patch_set"),
            "unchanged": bool(request.get("patches")) and not build.changed_objects(base, image),
            "script_modules": {
                word: [file.stem for file in files]
                for word, files in image.optional_modules.items()
                if files
            },
        }
        config = image.image.parent / "config"
        if config.is_file():
            run.copy(config, run.folder / "config" / f"{_file_name(name)}.config")
    # In the order of the report, whichever was built first.
    ordered = {name: kernels[name] for name in (*requests, *kernels) if name in kernels}
    run.save(run.kernels_file, json.dumps(ordered, indent=1, default=str))


def check_same_source(snapshot: Snapshot, requests: Sequence[KernelRequest], built: Built) -> None:
    """Raise InputError if a kernel of the source of base was built from another state of it than
    base."""
    # A variant can be built later than base: a git tree, a distribution or the compiler may have
    # changed.
    base = snapshot.kernels[BASE]
    source = _base_request(snapshot).source
    for request in requests:
        image = built.images.get(request.name)
        if image is None or request.source != source:
            continue
        if (image.source, image.compiler) != (base.source, base.compiler):
            raise InputError(
                f"{request.name} was built from {image.source} with {image.compiler}, and base "
                f"from {base.source} with {base.compiler}: they cannot be compared",
                hint="start the experiment anew.",
            )


def missing_kernels(run: RunDir) -> list[KernelRequest]:
    """Return the kernels of the plan that are not built yet."""
    kernels = _json(run.kernels_file)
    return [
        _request(run, name, fields)
        for name, fields in _json(run.folder / "requests.json").items()
        if name not in kernels
    ]


def needed_requests(run: RunDir) -> list[KernelRequest]:
    """Return the kernels that may be built for a run when it is resumed. Raises InputError if it is
    damaged.

    They are those that are missing, and base if its layout twin may be added, or if what a series
    changes in its source may be counted.
    """
    requests = _json(run.folder / "requests.json")
    base = requests.get(BASE)
    with damaged(str(run.folder / "requests.json"), hint=_RESTORE):
        is_read = (run.folder / _TWIN_PATCH).exists() or any(
            fields.get("patches") for fields in requests.values()
        )
    return [*missing_kernels(run), *([_request(run, BASE, base)] if base and is_read else [])]


def bootable(run: RunDir) -> dict[str, Bootable]:
    """Return the built kernels by name, held in the cache.

    Raises InputError if an image is not whole, or a file is not in the cache: what is booted, and
    what the guests get, is not chosen by the files of a run.
    """
    with damaged(str(run.kernels_file), hint=_RESTORE):
        kernels = {
            name: _bootable(run, name, fields) for name, fields in _json(run.kernels_file).items()
        }
        return {**kernels, TWIN: kernels[BASE]}


def _bootable(run: RunDir, name: str, fields: Mapping[str, Any]) -> Bootable:
    image = Path(fields["image"])
    modules = tuple(map(Path, fields["modules"]))
    optional = {
        word: tuple(map(Path, files)) for word, files in fields.get("optional_modules", {}).items()
    }
    for file in (image, *modules, *chain(*optional.values())):
        if not file.resolve().is_relative_to(cache_dir().resolve()):
            raise InputError(
                f"{run.kernels_file}: {file}, of {name}, is not in the cache {cache_dir()}",
                hint="run the experiment again; if the run used another cache, set KTEARDOWN_CACHE "
                "to its folder.",
            )
    if image.is_file():
        cache_folder.hold(image.parent)
    if not image.is_file() or file_hash(image) != fields["image_hash"]:
        raise InputError(
            f"the image of {name} is damaged, or no longer in the cache: {image}",
            hint="run the experiment again, which builds the image again.",
        )
    return Bootable(image, modules, optional, tuple(fields.get("builtin", ())))


def built(run: RunDir, name: str) -> tuple[KernelRequest, KernelImage]:
    """Return what a kernel of the run is made of, and its image. Raises InputError."""
    fields = _json(run.folder / "requests.json")
    kernels = _json(run.kernels_file)
    if name not in fields or name not in kernels:
        raise InputError(f"the run does not say what {name} is made of", hint="start the run anew.")
    with damaged(str(run.kernels_file), hint=_RESTORE):
        image = _kernel_image.validate_python({"name": name, "series": "", **kernels[name]})
    return _request(run, name, fields[name]), image


def add_layout_twin(snapshot: Snapshot, reporter: Reporter) -> None:
    """Build the layout twin from the patch that the run keeps. Raises InputError, BuildError,
    LabError."""
    run = snapshot.run
    if not (run.folder / _TWIN_PATCH).exists():
        raise InputError(
            "no variant is a series that changes a .c file of base",
            hint="name such a series with --variant.",
        )
    base = _base_request(snapshot)
    twin = replace(base, name=LAYOUT, patches=(run.plain_file(_TWIN_PATCH),), series=LAYOUT)
    images = build.ensure([base, twin], cache_dir=cache_dir(), reporter=reporter).images
    if images[BASE].image_hash != snapshot.kernels[BASE].image_hash:
        raise InputError(
            f"{base.source} is no longer the kernel that the run booted",
            hint="run the experiment again.",
        )
    layout_twin.check_moved(images[BASE], images[LAYOUT])
    save_built(run, Built({LAYOUT: images[LAYOUT]}, {}))


def _base_request(snapshot: Snapshot) -> KernelRequest:
    return _request(snapshot.run, BASE, read_json(snapshot.run.folder / "requests.json")[BASE])


def _request(run: RunDir, name: str, fields: Mapping[str, Any]) -> KernelRequest:
    with damaged(str(run.folder / "requests.json"), hint=_RESTORE):
        request = _kernel_request.validate_python({"name": name, **fields})
    patches = tuple(run.plain_file(str(patch)) for patch in request.patches)
    fragments = run.kept_fragments(request.fragments)
    return replace(request, patches=patches, backports=(), fragments=fragments)


def _file_name(kernel: str) -> str:
    return quote(kernel, safe="@:.+-")


def _json(file: Entry) -> dict[str, Any]:
    return read_json(file) if file.exists() else {}


def settle(resolved: Resolved, reporter: Reporter) -> Resolved:
    """Return ``resolved`` with kernels that a later build makes of the same. Raises InputError,
    LabError."""
    sources = Sources(cache_dir(), reporter)
    plan_boots(resolved)
    return replace(
        resolved, kernels=tuple(build.settle(kernel, sources) for kernel in resolved.kernels)
    )


def build_kernels(resolved: Resolved, reporter: Reporter) -> Built:
    """Build every kernel that is not cached, the layout twin too. Raises BuildError, InputError,
    LabError."""
    return _build(_requests(resolved, reporter), reporter)


def build_first(resolved: Resolved, reporter: Reporter, *, measured_later: bool = False) -> Built:
    """Build what must be built before the first guest boots.

    On the instruction clock other work on the host cannot change a figure, so base boots while the
    variants are built (``run.measure``). Their patches are applied here, so that a patch that does
    not apply ends the command at once. ``measured_later``: the other clock is measured first and
    builds the variants, so that the wall clock finds them in the cache. Raises BuildError,
    InputError, LabError.
    """
    requests = _requests(resolved, reporter)
    later = [request for request in requests[1:] if request.name != LAYOUT]
    at_once = resolved.experiment.design.clock == "wall" and not measured_later
    if at_once or any(kernel.optional or is_prebuilt(kernel.source) for kernel in later):
        return _build(requests, reporter)
    missing = {request.name for request in build.missing(later, cache_dir=cache_dir())}
    build.check_patches(
        [r for r in later if r.name in missing], cache_dir=cache_dir(), reporter=reporter
    )
    return _build([request for request in requests if request.name not in missing], reporter)


def create_run(
    resolved: Resolved, built: Built, command: str, reporter: Reporter, run: RunDir | None = None
) -> RunDir:
    """Write a run directory, a new one or ``run``, with all that later stages need. Raises
    LabError."""
    run = run or RunDir.create(runs_dir(), resolved.experiment.name)
    with removed_unless_whole(run.path):
        plan = plan_boots(resolved, built.left_out)
        snapshot.write_inputs(run, resolved.workloads, resolved.published, plan)
        save_requests(run, resolved, built.left_out, Sources(cache_dir(), reporter))
        save_built(run, built)
        environment = {"command": command, "kteardown": version(), "machine": host.facts()}
        run.save(run.environment_file, json.dumps(environment, indent=1))
        if resolved.experiment.design.profile:
            run.make_folder(run.profile.console_file(0, 0).parent)
            run.save(
                run.profile.plan_file, plan_profiled_boots(resolved, plan).model_dump_json(indent=1)
            )
        snapshot.mark_whole(run, resolved.experiment)
    return run


def plan_boots(resolved: Resolved, left_out: dict[str, str] | None = None) -> Plan:
    """Return the plan, which is the same for the same experiment and kernels.

    ``left_out``: kernels of an ablation that could not be built, with the reasons. Raises
    InputError if the guests are too large for this host.
    """
    variants = [
        kernel.name for kernel in resolved.kernels[1:] if kernel.name not in (left_out or {})
    ]
    plan = make_plan(resolved.experiment, resolved.workloads, variants)
    if plan.memory_mb > (most := int(psutil.virtual_memory().total) >> 20):
        raise InputError(
            f"a guest of {plan.memory_mb:,} MB does not fit into this host, which has {most:,} MB",
            hint="choose less memory with --memory-mb.",
        )
    return plan


def plan_profiled_boots(resolved: Resolved, plan: Plan) -> Plan:
    """Return the plan of the profiled boots; empty unless the experiment has a profile."""
    kernels = [kernel.name for kernel in resolved.kernels if not kernel.optional]
    profiled = kernels if resolved.experiment.design.profile else []
    return plan_profile(plan, resolved.experiment, resolved.workloads, profiled)


def forecast_cost(resolved: Resolved, plan: Plan, *, jobs: int | None) -> tuple[Building, Forecast]:
    """Return the expected cost of building and of booting ``plan``, from earlier builds and
    runs."""
    # Builds, boots and downloads nothing.
    requests = list(resolved.kernels)
    if LAYOUT in controls(resolved.experiment.design):
        sources = Sources(cache_dir(), SilentReporter())
        twin = layout_twin.request(resolved.base, resolved.series, sources, unpack=False)
        requests.append(twin or replace(resolved.series[0], name=LAYOUT))
    measuring = forecast_of(resolved.experiment, resolved.workloads, plan, jobs)
    return build.cost(requests, cache_dir=cache_dir()), measuring


def design_power(resolved: Resolved) -> DesignPower:
    """Return what the design can decide, with the spreads of earlier runs on this host."""
    # Imported here: it loads numpy and scipy.
    from kteardown.analysis.decidable import decidable

    experiment = resolved.experiment
    points = points_of(experiment, resolved.workloads)
    spreads_by_metric = spreads(experiment, all_runs())
    return decidable(
        experiment, resolved.workloads, len(experiment.variants), points, spreads_by_metric
    )


def _requests(resolved: Resolved, reporter: Reporter) -> list[KernelRequest]:
    requests = list(resolved.kernels)
    if LAYOUT in controls(resolved.experiment.design):
        twin = layout_twin.request(resolved.base, resolved.series, Sources(cache_dir(), reporter))
        if twin is None:
            raise InputError(
                "--layout-twin: there is no layout twin, because no series changes a .c file of "
                "base",
                hint="remove --layout-twin.",
            )
        requests.append(twin)
    return requests


def _build(requests: list[KernelRequest], reporter: Reporter) -> Built:
    built = build.ensure(requests, cache_dir=cache_dir(), reporter=reporter)
    if LAYOUT in built.images:
        layout_twin.check_moved(built.images[BASE], built.images[LAYOUT])
    for name, reason in built.left_out.items():
        reporter.note(f"{name} is left out: {reason.splitlines()[0]}")
    return built


def spreads(experiment: Experiment, runs: Iterable[RunDir]) -> dict[tuple[str, str], Spread]:
    """Return the spreads of the newest of ``runs`` with the clock of ``experiment``, by workload
    and metric.

    The largest of a run's variants is used. ``runs`` are oldest first. A run without a result, or
    with one that does not have them, is ignored.
    """
    newest: dict[tuple[str, str], Spread] = {}
    for run in list(runs)[: -_RUNS - 1 : -1]:
        try:
            result = Result.model_validate_json(run.result_file.content(LARGE))
        except (OSError, ValidationError):
            continue
        of_run: dict[tuple[str, str], Spread] = {}
        for m in result.metric_verdicts if result.clock == experiment.design.clock else ():
            if m.statistic == "median" and m.spread is not None and m.point_spread is not None:
                name = (m.workload, m.metric)
                if name not in of_run or of_run[name].metric < m.spread:
                    of_run[name] = Spread(m.spread, m.point_spread, run.name)
        newest = {**of_run, **newest}
    return newest
