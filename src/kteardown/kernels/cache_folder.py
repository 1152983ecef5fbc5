"""Folders of the cache: made whole or not at all, by one process at a time."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from kteardown.errors import LabError
from kteardown.kernels import toolchain
from kteardown.progress import Reporter

_TEMPORARY = ".tmp"


@contextmanager
def locked(target: Path, reporter: Reporter, what: str) -> Iterator[None]:
    """Hold the lock of the cache folder ``target``; say so where another run has it.

    The kernel drops the lock when its holder dies, so a killed run never blocks the next.
    """
    lock = FileLock(_lock_path(target))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with reporter.task(f"Waiting for another run: {what}"):
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def is_locked(target: Path) -> bool:
    """Whether some process is making or removing ``target`` now."""
    lock = FileLock(_lock_path(target))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


@contextmanager
def scratch(target: Path) -> Iterator[Path]:
    """A new empty folder beside ``target``, gone afterwards unless the block renamed it.

    The caller holds the lock of ``target``, so a folder of that name that is already
    there was left by a run that was killed.
    """
    folder = target.with_name(f".{target.name}{_TEMPORARY}")
    remove(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(target) from error
        raise
    finally:
        remove(folder)


@contextmanager
def published(target: Path) -> Iterator[Path]:
    """A scratch folder that becomes ``target`` in one step when the block ends without error."""
    with scratch(target) as folder:
        yield folder
        remove(target)
        folder.rename(target)


def sweep(parent: Path) -> None:
    """Remove what killed runs left in ``parent``: scratch folders whose lock nobody holds."""
    for left in parent.glob(f".*{_TEMPORARY}"):
        target = parent / left.name[1 : -len(_TEMPORARY)]
        lock = FileLock(_lock_path(target))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            remove(left)
        finally:
            lock.release()


def remove(path: Path) -> None:
    """Remove a folder whatever its size and modes; nothing where there is none."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def need_space(folder: Path, megabytes: int, what: str) -> None:
    """Raise LabError where the file system of ``folder`` has less than ``megabytes`` free."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        raise LabError(
            f"{what} needs {megabytes} MB in {folder}, and {free} MB are free",
            hint="Free some space, prune the cache, or set KTEARDOWN_CACHE to a folder on another disk.",
        )


def disk_full(folder: Path) -> LabError:
    """The error for a disk that filled up while ``folder`` was being written."""
    return LabError(
        f"the disk filled up while {folder} was being written",
        hint="Free some space, prune the cache, or set KTEARDOWN_CACHE to a folder on another disk.",
    )


def size_kb(paths: Sequence[Path]) -> int:
    """Disk space of files and folders, kB, a hard link counted once."""
    done = toolchain.capture(["du", "-sck", *map(str, paths)])
    last = done.stdout.splitlines()[-1:] or ["0"]
    return int(last[0].split()[0])


def _lock_path(target: Path) -> Path:
    folder = target.parent / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{target.name}.lock"
