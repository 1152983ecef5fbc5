"""Whether what is in the cache is what was made: a file, or the files and symbolic links of a
folder.

Its digests, in ``.digests`` beside it, are not of folders: a build may mount an empty one in a
source tree.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from kteardown import spawn
from kteardown.errors import BuildError, LabError, failing
from kteardown.limits import Limits
from kteardown.paths import replace_text, sync
from kteardown.progress import Reporter
from kteardown.sandbox import Mount, Sandbox

_SEEN = Path("/program")
"""The folder of a build in the sandbox."""
_LIMITS = Limits(total_s=900, output_mb=16, disk_mb=1024, file_mb=256)


def publish(file: Path, target: Path) -> None:
    """Rename ``file`` to ``target`` and keep its digests; it is on the disk before it is
    renamed."""
    sync(file)
    keep(target, file)
    file.replace(target)
    sync(target.parent)


def building(cache: Path, what: str) -> AbstractContextManager[None]:
    """Turn an OSError of the block, which builds a program in ``cache``, into a LabError."""
    hint = "free some space there, or set KTEARDOWN_CACHE to a folder that can be written."
    return failing(f"cannot build {what} in {cache}", hint=hint, kind=LabError)


def make(
    target: Path,
    files: Mapping[Path, bytes],
    argv: list[str],
    product: str,
    reporter: Reporter,
    error: BuildError,
    *,
    confined: bool = False,
) -> Path:
    """Return ``target``, which ``argv`` makes as ``product`` of these files in a folder beside it.

    If it is ``confined``, it runs in the sandbox, where it sees these files and no others of the
    user. Raises ``error``, with what ``argv`` wrote after its message, if that fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as above:
        folder = Path(above, "sources")
        program = Path(above, "program")
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        reporter.command(argv)
        status, printed = _confined(argv, folder) if confined else _unconfined(argv, folder)
        if status or not (folder / product).is_file():
            raise BuildError(f"{error.message}:\n{printed.strip()}", hint=error.hint)
        # A copy: what was made in the sandbox belongs to another user, and may have any
        # permissions.
        shutil.copyfile(folder / product, program)
        program.chmod(0o755)
        publish(program, target)
    return target


def _unconfined(argv: list[str], folder: Path) -> tuple[int, str]:
    """Return the exit status, and what was printed."""
    # An outer `make demo` would pass its own flags to make.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")
    }
    null = subprocess.DEVNULL
    process = spawn.run(
        argv, cwd=folder, env=environment, stdin=null, capture_output=True, text=True, check=False
    )
    return process.returncode, process.stderr or process.stdout


def _confined(argv: list[str], folder: Path) -> tuple[int, str]:
    """As ``_unconfined``, in the sandbox."""
    box = Sandbox(
        [Mount(folder, _SEEN, writable=True)], _LIMITS, "the build of a program for guests"
    )
    with box.running(argv, {}, _SEEN) as (process, lines):
        printed = "".join(lines)
    return process.returncode, printed


def keep(target: Path, source: Path) -> None:
    """Write the digests of ``source``, which is ``target`` or will be renamed to it."""
    _file(target).parent.mkdir(parents=True, exist_ok=True)
    replace_text(_file(target), f"{_metadata(source)}\n{_contents(source)}\n")


def keep_links(target: Path) -> None:
    """Keep that ``target`` is what was made after hard links to its files, which change only their
    ctime."""
    with suppress(OSError, ValueError):
        _, contents = _file(target).read_text().split()
        replace_text(_file(target), f"{_metadata(target)}\n{contents}\n")


def is_intact(target: Path, reporter: Reporter) -> bool:
    """Return whether ``target`` is what was made. If it is there and is not, note that it is made
    again."""
    # The contents are read only if the metadata differ: 0.3 s and 2 s for a source tree that is in
    # memory.
    if not target.exists():
        return False
    with suppress(OSError, ValueError):
        metadata, contents = _file(target).read_text().split()
        if metadata == (current := _metadata(target)):
            return True
        if contents == _contents(target):
            with suppress(
                OSError
            ):  # In a cache that cannot be written, the contents are read each time.
                replace_text(_file(target), f"{current}\n{contents}\n")
            return True
    reporter.note(f"{target} in the cache is damaged or incomplete, so kteardown makes it again")
    return False


def _file(target: Path) -> Path:
    return target.parent / ".digests" / target.name


def _metadata(target: Path) -> str:
    # A write always changes the ctime.
    return hashlib.sha256(b"\0".join(_listed(target, "%y %m %s %T@ %C@ %i %l"))).hexdigest()


def _contents(target: Path) -> str:
    digest = hashlib.sha256()
    for line in _listed(target, "%y %m %l"):
        name, _, facts = line.partition(b"\t")
        digest.update(line + b"\0")
        if facts.startswith(b"f"):
            with open(os.path.join(os.fsencode(target), name).rstrip(b"/"), "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _listed(target: Path, facts: str) -> list[bytes]:
    """Return every file and symbolic link: its path below ``target``, a tabulator, ``facts`` of
    find(1)."""
    argv = ["find", str(target), "!", "-type", "d", "-printf", rf"%P\t{facts}\0"]
    return sorted(spawn.run(argv, check=True, capture_output=True).stdout.split(b"\0")[:-1])
