"""The kernels of a run, as its directory keeps them.

- ``kernels.json``: every kernel that is booted, by name, with the patches that it has;
- ``unavailable.json``: the parts of an ablation that there are not, and why;
- ``layout-twin.patch``: what makes base its layout twin, for the case that the result needs one: the
  files of the series may have changed by then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kteardown.errors import InputError
from kteardown.kernels import build, layout_twin
from kteardown.kernels.request import Built, KernelImage
from kteardown.kernels.source import Sources
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import KernelFacts, PatchSet, Unavailable
from kteardown.progress import Reporter
from kteardown.run.execute import Bootable
from kteardown.run.resolve import Study, base_of
from kteardown.rundir.directory import RunDir


def keep(run: RunDir, study: Study, built: Built, sources: Sources) -> None:
    """Write the three files. Raises LabError."""
    sets = {kernel.name: kernel.patch_set for kernel in study.kernels if kernel.patch_set}
    _save(run, {name: _fields(image, sets.get(name)) for name, image in built.images.items()})
    missing = [
        Unavailable(kernel=name, patch_set=sets[name], reason=why).model_dump()
        for name, why in built.left_out.items()
    ]
    if missing:
        run.save(_unavailable_file(run), json.dumps(missing, indent=1))
    if study.experiment.design.clock == "wall" and LAYOUT not in built.images:
        twin = layout_twin.request(study.base, study.series, sources)
        if twin is not None:
            run.save(_patch_file(run), twin.patches[0].read_text(encoding="latin-1"))


def bootable(run: RunDir) -> dict[str, Bootable]:
    """What to boot, by the plan's name. Raises InputError where an image is gone."""
    kernels: dict[str, Bootable] = {}
    for name, image in _read(run).items():
        if not Path(image["image"]).is_file():
            raise InputError(
                f"the image of {name} is gone from the cache: {image['image']}",
                hint="start the experiment anew: the image is then built again.",
            )
        kernels[name] = Bootable(Path(image["image"]), tuple(map(Path, image["modules"])))
    return {**kernels, TWIN: kernels[BASE]}


def facts(run: RunDir) -> dict[str, KernelFacts]:
    """What a result says of the kernels, by name."""
    known = KernelFacts.model_fields
    return {
        name: KernelFacts.model_validate({key: value for key, value in image.items() if key in known})
        for name, image in _read(run).items()
    }


def unavailable(run: RunDir) -> list[Unavailable]:
    """The parts of an ablation that there are not."""
    file = _unavailable_file(run)
    return [Unavailable.model_validate(u) for u in json.loads(file.read_bytes())] if file.is_file() else []


def add_layout_twin(run: RunDir, experiment: Experiment, cache_dir: Path, reporter: Reporter) -> None:
    """Build the layout twin from the patch that the run keeps, and keep it among the run's kernels.

    Raises InputError where there is none to be had, BuildError, LabError.
    """
    patch = _patch_file(run)
    if not patch.is_file():
        raise InputError(
            "no variant is a series that changes a .c file of the base", hint="name one with --variant."
        )
    base = base_of(experiment)
    twin = replace(base, name=LAYOUT, patches=(patch,), series=LAYOUT)
    images = build.ensure([base, twin], cache_dir=cache_dir, reporter=reporter).images
    kept = _read(run)
    if images[BASE].image_hash != kept[BASE]["image_hash"]:
        raise InputError(
            f"{experiment.source} is another kernel now than the one that the run booted",
            hint="start the experiment anew.",
        )
    layout_twin.check(images[BASE], images[LAYOUT])
    _save(run, {**kept, LAYOUT: _fields(images[LAYOUT], None)})


def _fields(image: KernelImage, patch_set: PatchSet | None) -> dict[str, Any]:
    return {**asdict(image), "patch_set": patch_set.model_dump() if patch_set else None}


def _save(run: RunDir, kernels: Mapping[str, Any]) -> None:
    run.save(run.kernels_file, json.dumps(kernels, indent=1, default=str))


def _read(run: RunDir) -> dict[str, dict[str, Any]]:
    kernels: dict[str, dict[str, Any]] = json.loads(run.kernels_file.read_bytes())
    return kernels


def _unavailable_file(run: RunDir) -> Path:
    return run.path / "unavailable.json"


def _patch_file(run: RunDir) -> Path:
    return run.path / "layout-twin.patch"
