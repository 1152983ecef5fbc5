"""Where guests boot. A place is one module, with ``named`` and ``NAMES``, and a word in ``_MODULES``."""

import shlex
from importlib import import_module
from typing import NamedTuple

from kteardown.errors import InputError, failing
from kteardown.run.places import exported
from kteardown.run.places.local import LOCAL, LocalPlace
from kteardown.run.places.place import Place
from kteardown.rundir.directory import RunDir, writing
from kteardown.visible import on_one_line

_MODULES = ("cluster", "ssh")
"""Those that ``--on`` can name, besides this host."""
HERE: Place = LocalPlace()


class Where(NamedTuple):
    """Where boots are, how many at once, and whether equal ones are only repeated (``run.repeat``)."""

    place: Place = HERE
    jobs: int | None = None
    repeat: bool = False


def place_of(on: str | None) -> Place:
    """Return the place that ``--on`` names. Raises InputError."""
    if on in (None, LOCAL):
        return HERE
    for name in _MODULES:
        # A place is imported when it is used.
        place: Place | None = import_module(f"kteardown.run.places.{name}").named(on)
        if place is not None:
            return place
    names = [import_module(f"kteardown.run.places.{name}").NAMES for name in _MODULES]
    raise InputError(
        f"--on {on}: not a place where guests can run",
        hint=f"the places are {', '.join([LOCAL, *names[:-1]])} and {names[-1]}.",
    )


def remembered_place(run: RunDir, on: str | None) -> Place:
    """Return where the run at ``run`` is executed, and remember it.

    Raises LabError; InputError if its boots are exported, or if it began elsewhere and ``on`` does not say
    where it goes on: no file of a run sends boots to a machine.
    """
    file = run.folder / "on"
    with failing(f"{file}: cannot be read", hint="restore the run directory from a copy."):
        kept = file.text().strip() if file.exists() else ""
    if exported.named(kept):
        raise InputError(
            f"the boots of {run.name} are exported: they run on a machine that is not of this lab",
            hint="import the logs of that machine: kteardown import LOG...",
        )
    if on is None and kept:
        raise InputError(
            f"{run.name} began on {on_one_line(kept)}: kteardown sends boots there only if you name it again",
            hint=f"add --on {shlex.quote(on_one_line(kept))}, or another place; --on {LOCAL} is this host.",
        )
    place = place_of(on)
    if on is not None:
        with writing(file):
            if place.on:
                file.replace(f"{place.on}\n")
            else:
                file.remove()
    return place
