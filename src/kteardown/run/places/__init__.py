"""Where guests boot. A place is one module, with ``named`` and ``NAMES``, which an optional package
names."""

import shlex
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from kteardown.errors import InputError, failing
from kteardown.extensions import extensions
from kteardown.run.places.local import LOCAL, LocalPlace
from kteardown.run.places.place import Place
from kteardown.rundir.directory import RunDir, writing
from kteardown.visible import on_one_line

HERE: Place = LocalPlace()


class Where(NamedTuple):
    """Where boots are, how many at once, and whether equal ones are only repeated
    (``run.repeat``)."""

    place: Place = HERE
    jobs: int | None = None
    repeat: bool = False


def _modules() -> Iterator[ModuleType]:
    for extension in extensions():
        yield from map(import_module, extension.places)


def place_of(on: str | None) -> Place:
    """Return the place that ``--on`` names. Raises InputError."""
    if on in (None, LOCAL):
        return HERE
    modules = list(_modules())
    for module in modules:
        place: Place | None = module.named(on)
        if place is not None:
            return place
    names = [LOCAL, *(module.NAMES for module in modules if module.NAMES)]
    raise InputError(
        f"--on {on}: not a place where guests can run", hint=f"the places are {', '.join(names)}."
    )


def _began(kept: str, run: RunDir) -> Place:
    """Return the place where a run began. Raises InputError if it is not known, as then its boots
    are not."""
    try:
        return place_of(kept)
    except InputError as error:
        raise InputError(
            f"{run.name} began on {on_one_line(kept)}, which no installed package of kteardown "
            "knows",
            hint="use the installation of kteardown that began the run.",
        ) from error


def remembered_place(run: RunDir, on: str | None) -> Place:
    """Return where the run at ``run`` is executed, and remember it.

    Raises LabError; InputError if its boots are exported, or if it began elsewhere and ``on`` does
    not say where it goes on: no file of a run sends boots to a machine.
    """
    file = run.folder / "on"
    with failing(f"{file}: cannot be read", hint="restore the run directory from a copy."):
        kept = file.text().strip() if file.exists() else ""
    if kept:
        _began(kept, run).check_resumed(run)
    if on is None and kept:
        raise InputError(
            f"{run.name} began on {on_one_line(kept)}: kteardown sends boots there only if you "
            "name it again",
            hint=(
                f"add --on {shlex.quote(on_one_line(kept))}, or another place; --on {LOCAL} is "
                "this host."
            ),
        )
    place = place_of(on)
    if on is not None:
        with writing(file):
            if place.on:
                file.replace(f"{place.on}\n")
            else:
                file.remove()
    return place
