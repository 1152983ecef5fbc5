"""The kernels of a run in its directory.

The files of a series or the cache may change before a run is resumed; these files do not. A kernel whose
source or fragments have changed by then is refused.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter

from kteardown.errors import InputError
from kteardown.kernels import apply_patches, build, cache_folder, layout_twin
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import Unavailable
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.executors.port import Bootable
from kteardown.run.resolve import Resolved
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import Snapshot, read_json

_kernel_request = TypeAdapter(KernelRequest)


def save_requests(run: RunDir, resolved: Resolved, left_out: Mapping[str, str], sources: Sources) -> None:
    """Write the sources and patches of the kernels. Raises LabError, BuildError, InputError."""
    requests = {}
    for kernel in resolved.kernels:
        if kernel.name not in left_out:
            settled = kernel
            if kernel.backports:
                settled = apply_patches.choose_backport(kernel, sources.identify(kernel.source), sources)
            requests[kernel.name] = _request_fields(run, settled)
    run.save(run.path / "requests.json", json.dumps(requests, indent=1, default=str))
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
            run.copy(twin.patches[0], _twin_patch(run))


def save_built(run: RunDir, built: Built) -> None:
    """Add kernels that were built, with their configurations. Raises LabError."""
    requests = _json(run.path / "requests.json")
    known = _json(run.kernels_file)
    # Base is built first, maybe in an earlier call.
    base = built.images.get(BASE) or _image(known[BASE])
    for name, image in built.images.items():
        request = requests.get(name, {})
        known[name] = {
            **asdict(image),
            "patch_set": request.get("patch_set"),
            "unchanged": bool(request.get("patches")) and not build.changed_objects(base, image),
        }
        config = image.image.parent / "config"
        if config.is_file():
            run.copy(config, run.path / "config" / f"{_file_name(name)}.config")
    # In the order of the report, whichever was built first.
    ordered = {name: known[name] for name in (*requests, *known) if name in known}
    run.save(run.kernels_file, json.dumps(ordered, indent=1, default=str))


def check_same_source(snapshot: Snapshot, requests: Sequence[KernelRequest], built: Built) -> None:
    """Raise InputError if a kernel of the source of base was built from another state of it than base.

    A variant can be built later than base: a git tree, a distribution or the compiler may have changed.
    """
    base, source = snapshot.kernels[BASE], _base_request(snapshot).source
    for request in requests:
        image = built.images.get(request.name)
        if image is None or request.source != source:
            continue
        if (image.source, image.compiler) != (base.source, base.compiler):
            raise InputError(
                f"{request.name} was built from {image.source} with {image.compiler}, and base from "
                f"{base.source} with {base.compiler}: they cannot be compared",
                hint="start the experiment anew.",
            )


def missing_kernels(run: RunDir) -> list[KernelRequest]:
    """Return the kernels of the plan that are not built yet."""
    known = _json(run.kernels_file)
    return [
        _request(run, name, fields)
        for name, fields in _json(run.path / "requests.json").items()
        if name not in known
    ]


def bootable(run: RunDir) -> dict[str, Bootable]:
    """Return the built kernels by their names in the plan.

    They stay in the cache until this process ends. Raises InputError if an image is no longer there, or is
    damaged.
    """
    kernels: dict[str, Bootable] = {}
    for name, fields in _json(run.kernels_file).items():
        image = Path(fields["image"])
        if image.is_file():
            cache_folder.hold(image.parent)
        if not image.is_file() or file_hash(image) != fields["image_hash"]:
            raise InputError(
                f"the image of {name} is damaged, or no longer in the cache: {image}",
                hint="run the experiment again, which builds the image again.",
            )
        kernels[name] = Bootable(image, tuple(map(Path, fields["modules"])))
    return {**kernels, TWIN: kernels[BASE]}


def add_layout_twin(snapshot: Snapshot, reporter: Reporter) -> None:
    """Build the layout twin from the patch that the run keeps, and add it to the run's kernels.

    Raises InputError if the run has no such patch, BuildError, LabError.
    """
    run = snapshot.run
    patch = _twin_patch(run)
    if not patch.is_file():
        raise InputError(
            "no variant is a series that changes a .c file of base", hint="name such a series with --variant."
        )
    base = _base_request(snapshot)
    twin = replace(base, name=LAYOUT, patches=(patch,), series=LAYOUT)
    images = build.ensure([base, twin], cache_dir=cache_dir(), reporter=reporter).images
    if images[BASE].image_hash != snapshot.kernels[BASE].image_hash:
        raise InputError(
            f"{base.source} is no longer the kernel that the run booted",
            hint="run the experiment again.",
        )
    layout_twin.check(images[BASE], images[LAYOUT])
    save_built(run, Built({LAYOUT: images[LAYOUT]}, {}))


def _base_request(snapshot: Snapshot) -> KernelRequest:
    return _request(snapshot.run, BASE, read_json(snapshot.run.path / "requests.json")[BASE])


def _request_fields(run: RunDir, request: KernelRequest) -> dict[str, Any]:
    folder = run.path / "series" / _file_name(request.name)
    for patch in request.patches:
        run.copy(patch, folder / patch.name)
    patches = tuple(folder.relative_to(run.path) / patch.name for patch in request.patches)
    fragments = run.keep_fragments(request.fragments)
    fields: dict[str, Any] = _kernel_request.dump_python(
        replace(request, patches=patches, fragments=fragments), mode="json", exclude={"name", "backports"}
    )
    return fields


def _request(run: RunDir, name: str, fields: Mapping[str, Any]) -> KernelRequest:
    found = _kernel_request.validate_python({"name": name, **fields})
    patches = tuple(run.path / patch for patch in found.patches)
    return replace(found, patches=patches, fragments=run.kept_fragments(found.fragments))


def _file_name(kernel: str) -> str:
    return quote(kernel, safe="@:.+-")


def _image(fields: Mapping[str, Any]) -> KernelImage:
    """Return a kernel of ``kernels.json``, without its modules."""
    texts = {field.name: fields.get(field.name, "") for field in dataclasses.fields(KernelImage)[:-2]}
    return KernelImage(**{**texts, "image": Path(fields["image"])})


def _json(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}


def _twin_patch(run: RunDir) -> Path:
    return run.path / "layout-twin.patch"
