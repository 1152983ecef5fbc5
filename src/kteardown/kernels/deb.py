"""Files of Debian packages, read with ``ar`` and ``tar``: the host needs no dpkg."""

import subprocess
from pathlib import Path

from kteardown.errors import LabError, MissingError
from kteardown.kernels import cache_folder, toolchain

_DECOMPRESS = {"xz": ["--xz"], "zst": ["--zstd"], "gz": ["--gzip"], "tar": []}
_MOST_BYTES = 16 << 20
"""The largest file that is read into memory."""


def stages(deb: Path, *arguments: str) -> list[list[str]]:
    """Return the pipeline that hands the files of a package to ``tar -x`` with ``arguments``.

    Raises LabError if it is no package, MissingError if the host has no ``ar``.
    """
    try:
        listed = toolchain.capture(["ar", "t", str(deb)]).stdout.split()
    except FileNotFoundError as error:
        raise MissingError("ar is not installed", ["binutils"]) from error
    data = next((name for name in listed if name.startswith("data.tar")), "")
    decompress = _DECOMPRESS.get(data.rpartition(".")[2])
    if decompress is None:
        raise _damaged(deb, "it has no data.tar")
    return [["ar", "p", str(deb), data], ["tar", "-x", *decompress, *arguments]]


def unpack(deb: Path, folder: Path) -> None:
    """Unpack a package into ``folder``. Raises LabError if it is damaged or the disk is full."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second = stages(deb, "-C", str(folder), "--no-same-owner")
    with subprocess.Popen(first, stdout=subprocess.PIPE) as source:
        done = subprocess.run(second, stdin=source.stdout, capture_output=True, check=False)
    said = done.stderr.decode(errors="replace").strip()
    if "No space left" in said:
        raise cache_folder.disk_full(deb.parent)
    if done.returncode or source.returncode:
        raise _damaged(deb, said)


def member(deb: Path, name: str) -> bytes:
    """Return the content of the file ``name``, in which ``*`` may stand for folders. Raises LabError."""
    first, second = stages(deb, "-O", "--wildcards", name)
    with (
        subprocess.Popen(first, stdout=subprocess.PIPE) as source,
        subprocess.Popen(
            second, stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as unpacking,
    ):
        assert unpacking.stdout is not None
        content = unpacking.stdout.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            unpacking.kill()
            source.kill()
    if unpacking.returncode or len(content) > _MOST_BYTES:
        raise _damaged(deb, f"it has no {name}, or that is larger than {_MOST_BYTES >> 20} MB")
    return content


def _damaged(deb: Path, said: str) -> LabError:
    return LabError(f"cannot unpack {deb}: {said}", hint="remove the file and run this again.")
