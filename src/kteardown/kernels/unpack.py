"""Unpack packages, tarballs and compressed files, in pieces and up to a limit.

A file of a few megabytes can unpack to something without an end. It then takes neither all memory
nor the whole disk, and a signal ends the command at once.
"""

import bz2
import gzip
import io
import lzma
import os
import signal
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from kteardown import spawn
from kteardown.errors import LabError, MissingError
from kteardown.kernels import cache_folder, toolchain

MOST_UNPACKED = 8 << 30
"""Of a tarball or a package: the source of 6.16 has 1.6 GB, and the modules of a kernel for Debian
0.5 GB."""
_PIECE = 1 << 20
_MOST_IN_MEMORY = 16 << 20
"""The largest member of a package that is read into memory."""
_MOST_SAID = 4096
_REMOVE = "remove the file and run this again."
# More memory is needed only for a dictionary that no tarball of a kernel has.
_XZ = ["xz", "-dc", "--memlimit-decompress=512MiB"]
_DECOMPRESS = {
    b"\xfd7zXZ": _XZ,
    b"\x1f\x8b": ["gzip", "-dc"],
    b"BZh": ["bzip2", "-dc"],
    b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"],
}
"""The program by the first bytes of what it decompresses."""
_OF_ENDING = {"xz": b"\xfd7zXZ", "zst": b"\x28\xb5\x2f\xfd", "gz": b"\x1f\x8b"}
_OPENERS: dict[bytes, Callable[[IO[bytes]], object]] = {
    b"\xfd7zXZ": lzma.open,
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
}
_PACKAGES = {"ar": "binutils", "xz": "xz-utils", "head": "coreutils"}
"""By the program; the package of any other has its name."""


class UnpackError(LabError):
    """An archive could not be unpacked."""


def unpacked(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file, decompressed if it begins like a file of gzip, xz, bzip2 or
    zstd.

    Raises ValueError if it is damaged or has more than ``most_bytes``, OSError if it cannot be
    opened, MissingError without the program for zstd.
    """
    content = io.BytesIO()
    with path.open("rb") as file, _decompressed(file) as stream:
        # One piece at a time: between them Python sees signals.
        while piece := _piece(stream):
            content.write(piece)
            if content.tell() > most_bytes:  # words: quote
                raise ValueError(f"it has more than {most_bytes >> 20} MB")
    return content.getvalue()


def _piece(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(_PIECE)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"its compressed contents are damaged: {error}") from error


@contextmanager
def _decompressed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = file.read(8)
    file.seek(0)
    for start, opener in _OPENERS.items():
        if magic.startswith(start):
            yield cast(IO[bytes], opener(file))
            return
    if not magic.startswith(_OF_ENDING["zst"]):
        yield file
        return
    # What the file has in its buffer, zstd would not see.
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    with _running([_program(magic)], stdin=file) as (zstd,):
        assert zstd.stdout is not None
        yield zstd.stdout
        # Where the block has read everything, it has ended by itself.
        if zstd.stdout.read(1) == b"" and zstd.wait():
            raise ValueError("its compressed contents are damaged")


def _program(magic: bytes) -> list[str]:
    return next((argv for start, argv in _DECOMPRESS.items() if magic.startswith(start)), ["cat"])


def untar(magic: bytes, *arguments: str) -> list[list[str]]:
    """Return the stages that unpack a tarball that begins with ``magic`` by ``tar -x`` with
    ``arguments``."""
    limit = ["head", "-c", str(MOST_UNPACKED)]
    return [
        _program(magic),
        limit,
        ["tar", "-x", "--no-same-owner", "--no-same-permissions", *arguments],
    ]


def pipe(
    stages: Sequence[list[str]], folder: Path, what: str, hint: str, most_bytes: int = 0
) -> bytes:
    """Run a pipeline that unpacks ``what`` into ``folder``, a scratch folder of the cache.

    Return what it prints. Raises UnpackError with the error output of the stages that failed, or if
    it prints more than ``most_bytes``; LabError if the disk is full, MissingError if a program is
    not installed.
    """
    with ExitStack() as stack:
        error_files = [stack.enter_context(tempfile.TemporaryFile()) for _ in stages]
        running = stack.enter_context(_running(stages, errors=error_files))
        stdout = running[-1].stdout
        assert stdout is not None
        printed = stdout.read(most_bytes + 1)
        if len(printed) > most_bytes:
            raise UnpackError(
                f"cannot unpack {what}: the file in it is larger than {most_bytes >> 20} MB",
                hint=hint,
            )
        failures: list[str] = []
        for process, errors in reversed(list(zip(running, error_files, strict=True))):
            # Whose reader has ended is no failure of its own.
            if process.wait() not in (0, -signal.SIGPIPE):
                errors.seek(0)
                lines = errors.read(_MOST_SAID).decode(errors="replace").strip().splitlines()
                program = cast(list[str], process.args)[0]
                failures += lines or [f"{program}: exit status {process.returncode}"]
        ends = [process.returncode for process in running]
    if failures:
        text = "; ".join(failures)
        if "No space left" in text:
            raise cache_folder.disk_full(folder)
        limits = [number for number, argv in enumerate(stages) if argv[0] == "head"]
        if any(ends[number] == 0 and ends[number - 1] == -signal.SIGPIPE for number in limits):
            text = f"unpacked, it is larger than {MOST_UNPACKED / (1 << 30):g} GB"
        raise UnpackError(f"cannot unpack {what}: {text}", hint=hint)
    return printed


@contextmanager
def _running(
    stages: Sequence[list[str]], *, stdin: IO[bytes] | None = None, errors: Sequence[IO[bytes]] = ()
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start a pipeline, of which none is left after the block. Raises MissingError."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, argv in enumerate(stages):
            before = running[-1].stdout if running else stdin or subprocess.DEVNULL
            error = errors[number] if errors else subprocess.DEVNULL
            try:
                running.append(
                    spawn.start(argv, stdin=before, stdout=subprocess.PIPE, stderr=error)
                )
            except FileNotFoundError as absent:
                package = _PACKAGES.get(argv[0], argv[0])
                raise MissingError(f"not installed on this host: {argv[0]}", [package]) from absent
            if running[:-1]:
                cast(IO[bytes], before).close()
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def deb_stages(deb: Path, *arguments: str) -> list[list[str]]:
    """Return the pipeline that hands the files of a package to ``tar -x`` with ``arguments``.

    Raises LabError if it is no package, MissingError if the host has no ``ar``.
    """
    try:
        listed = toolchain.capture(["ar", "t", str(deb)]).stdout.split()
    except FileNotFoundError as error:
        raise MissingError("ar is not installed", ["binutils"]) from error
    data = next((name for name in listed if name.startswith("data.tar")), "")
    ending = data.rpartition(".")[2]
    if ending not in (*_OF_ENDING, "tar"):
        raise UnpackError(f"cannot unpack {deb}: it has no data.tar", hint=_REMOVE)
    return [["ar", "p", str(deb), data], *untar(_OF_ENDING.get(ending, b""), *arguments)]


def unpack_deb(deb: Path, folder: Path) -> None:
    """Unpack the files and folders of a package into ``folder``.

    Raises LabError if it is damaged or the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pipe(deb_stages(deb, "-C", str(folder)), folder, str(deb), _REMOVE)
    # A link leads elsewhere, and a pipe or a device has no end.
    remove_special(folder, links=False)


def remove_special(folder: Path, *, links: bool) -> None:
    """Remove pipes, sockets and devices, which tar makes as well; symbolic links unless
    ``links``."""
    expression = ["!", "-type", "f", "!", "-type", "d", *(["!", "-type", "l"] if links else [])]
    spawn.run(
        ["find", str(folder), "-xdev", *expression, "-delete"], check=True, capture_output=True
    )


def deb_member(deb: Path, name: str) -> bytes:
    """Return the content of the file ``name``, in which ``*`` may stand for folders. Raises
    LabError."""
    stages = deb_stages(deb, "-O", "--wildcards", name)
    return pipe(stages, deb.parent, str(deb), _REMOVE, _MOST_IN_MEMORY)
