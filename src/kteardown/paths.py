"""Folders: the shipped data, the cache, the runs, the user's programs. How a file is replaced."""

import hashlib
import os
import shlex
import shutil
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from kteardown.door import Entry

_APP = "kteardown"


def data_dir(kind: str) -> Path:
    """Return the shipped folder ``kind``: agent, plugins, workloads, coverage and so on.

    An installed package contains these folders; in a checkout they are next to ``src``.
    """
    packaged = Path(__file__).parent / "data" / kind
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / kind


def program() -> str:
    """Return what a reader types to start this program: its name if a shell finds it by that, else
    its path as it was started, quoted for a shell."""
    started = Path(sys.argv[0])
    by_name = shutil.which(_APP)
    if started.name != _APP or (by_name and Path(by_name).resolve() == started.resolve()):
        return _APP
    inside = started.absolute().is_relative_to(Path.cwd())
    return shlex.quote(str(started.absolute().relative_to(Path.cwd()) if inside else started))


def shipped_table(name: str, package: Path = Path(__file__).parent) -> dict[str, Any]:
    """Return the contents of ``NAME.toml`` beside the code; ``name`` has its folder:
    ``vm/qemu_command``.

    ``package``: the folder of another package than the core.
    """
    return tomllib.loads((package / f"{name}.toml").read_text(encoding="utf-8"))


def cache_dir() -> Path:
    """Return the folder of what is built or downloaded: ``KTEARDOWN_CACHE``, or the user's cache
    folder."""
    return Path(os.environ.get("KTEARDOWN_CACHE") or platformdirs.user_cache_dir(_APP)).absolute()


def runs_dir() -> Path:
    """Return the folder of the run directories: ``KTEARDOWN_RUNS``, or ``runs`` in the user's data
    folder."""
    return Path(os.environ.get("KTEARDOWN_RUNS") or f"{platformdirs.user_data_dir(_APP)}/runs")


def queue_dir() -> Path:
    """Return the folder of the queue: ``KTEARDOWN_QUEUE``, or ``queue`` in the user's data
    folder."""
    return Path(
        os.environ.get("KTEARDOWN_QUEUE") or f"{platformdirs.user_data_dir(_APP)}/queue"
    ).absolute()


def programs_dir() -> Path | None:
    """Return the folder of the user's programs for guests: ``KTEARDOWN_PROGRAMS``, or None if it is
    unset."""
    chosen = os.environ.get("KTEARDOWN_PROGRAMS")
    return Path(chosen) if chosen else None


def key_of(content: bytes) -> str:
    """Return the name under which what is made from ``content`` is kept: 32 hexadecimal digits of a
    hash.

    With 16 digits, the author of two patches could find texts with one name, in 2**32 attempts:
    what was made of the first one would be taken for the second one.
    """
    return hashlib.sha256(content).hexdigest()[:32]


def replace_text(file: Path, text: str) -> None:
    """Replace ``file`` atomically; its text is on the disk on return."""
    Entry.of(file).replace(text)


def read_or_empty(path: Path) -> str:
    """Return the text of a file of /proc or /sys; empty if this kernel does not have it."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def end_of(path: Path, most: int) -> str:
    """Return the last ``most`` bytes of a file as text, or an empty text without the file."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
        return stream.read(most).decode(errors="replace")
    return ""


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
