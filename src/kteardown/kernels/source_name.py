"""How a kernel source is named: ``KIND:REST``, such as ``debian:6.12`` or ``git:PATH@REV``."""

import re
from pathlib import Path

from kteardown.errors import InputError
from kteardown.kernels.series import patches_in

_KINDS = ("debian", "kernel.org", "git", "tar", "image", "debian-image", "patched")
_FORMS = "debian:X.Y, kernel.org:X.Y.Z, git:PATH@REV, tar:FILE, image:FILE or debian-image:X.Y"
_PATCHED = re.compile(r"patched:(.+)@((?:debian|kernel\.org|git|tar):.+)")


def with_short_commit(source: str) -> str:
    """Return an id, or a specification, in which a commit is abbreviated to 12 digits."""
    return re.sub(r"@([0-9a-f]{12})[0-9a-f]{28}$", r"@\1", source)


def split(spec: str) -> tuple[str, str]:
    """Split ``KIND:REST``. Raises InputError if ``spec`` is malformed or its kind is unknown."""
    kind, colon, rest = spec.partition(":")
    if not colon or not rest or kind not in _KINDS:
        raise InputError(f"{spec!r} is not a kernel source", hint=f"write {_FORMS}.")
    return kind, rest


def patched(folder: Path, spec: str) -> str:
    """Return the source ``spec`` with the patches of ``folder`` applied, as
    ``patched:FOLDER@SPEC``."""
    return f"patched:{folder.absolute()}@{spec}"


def parts_of_patched(spec: str) -> tuple[Path, str, tuple[Path, ...]]:
    """Return the folder, the source and the patches of ``patched:FOLDER@SPEC``. Raises
    InputError."""
    match = _PATCHED.fullmatch(spec)
    folder = Path(match[1]).expanduser().absolute() if match else Path()
    patches = patches_in(folder) if match and folder.is_dir() else ()
    if match is None or not patches:
        raise InputError(
            f"{spec} names no folder of patches, or no source after the folder",
            hint="write patched:FOLDER@SPEC, such as patched:./their-series@debian:7.3.",
        )
    return folder, match[2], patches


def paths_of(spec: str) -> list[str]:
    """Return the paths of this host that a source names, as they are written. Raises InputError."""
    kind, rest = split(spec)
    if kind == "git":
        path, at, _ = rest.rpartition("@")
        return [path if at else rest]
    if kind == "patched":
        match = _PATCHED.fullmatch(spec)
        return [match[1], *paths_of(match[2])] if match else [rest]
    return [rest] if kind in ("tar", "image") else []


def is_source(text: str) -> bool:
    """Return whether ``text`` is a kernel source or a prebuilt image, and not a series or a
    file."""
    return text.partition(":")[0] in _KINDS and ":" in text


def file_of(spec: str) -> Path:
    """Return the file of ``tar:FILE`` or ``image:FILE``.

    Raises InputError unless it is a file that can be read and is not empty.
    """
    path = Path(split(spec)[1]).expanduser().absolute()
    problem = ""
    try:
        if not path.is_file():
            problem = "is a folder, not a file" if path.is_dir() else "there is no such file"
        else:
            with path.open("rb") as stream:
                problem = "" if stream.read(1) else "is empty"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem:
        kernel = (
            "a tarball of a kernel tree"
            if spec.startswith("tar:")
            else "a bzImage, an Image or a .deb"
        )
        raise InputError(f"{spec}: {problem}", hint=f"give the path of {kernel}.")
    return path
