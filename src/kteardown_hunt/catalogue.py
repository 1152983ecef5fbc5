"""The catalogue of kinds: what the C files of ``agent/hunt/kinds`` and of the user declare.

A program that is made of all of them prints it. With kinds of the user's, it is compiled and run in
the sandbox: their constructors run, too.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kteardown import sandbox, spawn
from kteardown.errors import InputError, did_you_mean
from kteardown.limits import Limits
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.vm.agent import build_kinds_program

Way = Literal["exit", "call", "oldest", "youngest", "random"]
Cost = Literal["sync", "deferred", "make", "held"]
KindName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,80}$")]
"""Also the name of its C file."""
_LIMITS = Limits(total_s=60, output_mb=4)


class Kind(StrictModel):
    """A way to make many objects, and the ways in which they can be released."""

    name: KindName
    part: str
    """The part of the catalogue."""
    object: str
    """What one object is."""
    shape: Literal["of one", "on one", "owners"]
    """One owner has all objects; all are attached to one other object; as many owners as
    objects."""
    privileged: bool
    """Whether an ordinary user cannot do it."""
    limit: str
    """What limits the number of objects: a name in ``limits``, or empty."""
    needs: str
    """The symbol of the configuration without which it fails."""
    modules: tuple[str, ...]
    """The modules that a distribution's kernel needs for it."""
    call: str
    """What the way ``call`` calls."""
    most: int
    """The largest number of objects that the kind itself allows; 0: any."""
    resident: str = ""
    """What one of the objects is that stay while the others are released; empty if the kind
    declares none."""
    residents_limit: str = ""
    """What limits their number: a name in ``limits``, or empty."""
    most_residents: int = 0
    """With how many of them a release is measured at most; 0: as many as usual."""
    ways: tuple[Way, ...]


_kinds = TypeAdapter(tuple[Kind, ...])


def own_kinds(folder: Path | None) -> list[Path]:
    """Return the files in the folder ``kinds`` of ``folder``: the user's own kinds, and what they
    share.

    Only from a folder that the user names. Raises InputError.
    """
    if folder and not (folder / "kinds").is_dir():
        raise InputError(
            f"--own {folder}: there is no folder {folder / 'kinds'}",
            hint="create that folder, and put the C files of your kinds there.",
        )
    return sorted((folder / "kinds").glob("*.[ch]")) if folder else []


def load_kinds(user_kinds: Sequence[Path], reporter: Reporter) -> tuple[Kind, ...]:
    """Return all kinds, ordered by part and name.

    Raises BuildError if one does not compile, InputError if one declares what cannot be, LabError.
    """
    program = build_kinds_program(cache=cache_dir(), reporter=reporter, kinds=user_kinds)
    if user_kinds:
        listed = sandbox.capture([str(program)], [program], limits=_LIMITS)
    else:
        listed = spawn.run([str(program)], capture_output=True, text=True, check=True).stdout
    try:
        kinds = _kinds.validate_json(f"[{','.join(listed.splitlines())}]")
    except ValidationError as error:
        raise InputError(
            f"a kind declares something invalid: {error.errors()[0]['msg']}",
            hint="correct its KIND(): the texts must not have quotation marks or backslashes.",
        ) from error
    return tuple(sorted(kinds, key=lambda kind: (kind.part, kind.name)))


def choose_kinds(kinds: Sequence[Kind], wanted: Iterable[str]) -> tuple[Kind, ...]:
    """Return the kinds that are wanted; all if nothing is. Raises InputError.

    A word is the name of a kind or of a part of the catalogue, or else what the names of some kinds
    contain.
    """
    words = list(wanted)
    names = {kind.name for kind in kinds} | {kind.part for kind in kinds}
    chosen = set()
    for word in words:
        matches = {kind.name for kind in kinds if word in (kind.name, kind.part)}
        matches = matches or {kind.name for kind in kinds if word and word in kind.name}
        chosen |= matches
        if not matches:
            raise InputError(
                f"--kinds: there is no kind and no part of the catalogue called {word!r}"
                f"{did_you_mean(word, names)}",
                hint="choose from `kteardown list kinds`.",
            )
    return tuple(kind for kind in kinds if not words or kind.name in chosen)


def possible(kinds: Sequence[Kind], user: str) -> tuple[Kind, ...]:
    """Return the kinds whose objects ``user`` can make. Raises InputError if there is none."""
    allowed = tuple(kind for kind in kinds if user == "root" or not kind.privileged)
    if not allowed:
        raise InputError(
            "--unprivileged: only root can make the objects of "
            f"{', '.join(kind.name for kind in kinds)}",
            hint="leave --unprivileged out, or choose others from `kteardown list kinds`.",
        )
    return allowed
