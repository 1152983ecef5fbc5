"""Folders of the cache: created atomically, by one process at a time."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from kteardown import spawn
from kteardown.errors import InputError, LabError
from kteardown.kernels import toolchain
from kteardown.paths import sync
from kteardown.progress import Reporter
from kteardown.vm import seal

_TEMPORARY = ".tmp"
_held: dict[Path, int] = {}
"""By folder, the open lock file with which this process holds it."""
_FREE_SPACE = (
    "free some space, remove old kernels with `kteardown prune --older-than 30`, "
    "or set KTEARDOWN_CACHE to a folder on another disk."
)


def check_path(cache_dir: Path) -> None:
    """Check that kernels can be built in the cache, before anything is downloaded. Raises
    InputError."""
    if re.search(r"[\s:]", str(cache_dir.absolute())):
        raise InputError(
            f"kteardown cannot build kernels in {cache_dir}: its path has a space or a colon",
            hint="set KTEARDOWN_CACHE to a folder whose path has neither.",
        )
    if cache_dir.exists() and not cache_dir.is_dir():
        raise InputError(f"{cache_dir} is not a folder", hint="set KTEARDOWN_CACHE to a folder.")
    existing = next(
        folder
        for folder in (cache_dir.absolute(), *cache_dir.absolute().parents)
        if folder.exists()
    )
    if os.statvfs(existing).f_flag & os.ST_NOEXEC:  # A build runs programs that it has made.
        raise InputError(
            f"kteardown cannot build kernels in {cache_dir}: its file system is mounted noexec",
            hint="set KTEARDOWN_CACHE to a folder on another file system.",
        )


@contextmanager
def locked(target: Path, reporter: Reporter, what: str) -> Iterator[None]:
    """Hold the lock of the cache folder ``target``; report the wait if another run holds it.

    ``what`` names the purpose of the lock in the progress. The kernel releases the lock when the
    process that holds it exits, so a killed run never blocks the next one.
    """
    lock = FileLock(_lock_path(target))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with reporter.task(f"Waiting for another run: {what}") as task:
            while not lock.is_locked:
                # Whatever the update raises ends the wait.
                task.update(0)
                with suppress(Timeout):
                    lock.acquire(timeout=1)
    try:
        yield
    finally:
        lock.release()


def hold(target: Path) -> Path:
    """Mark ``target`` as used now, keep it from being removed until this process ends, and return
    it.

    A cache that cannot be written cannot be pruned either: nothing is done there.
    """
    with suppress(OSError):
        if target not in _held:
            fd = os.open(_lock_path(target, "use"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(fd, fcntl.LOCK_SH)
            _held[target] = fd
        os.utime(target)
    return target


@contextmanager
def free(target: Path) -> Iterator[bool]:
    """Yield whether no process makes or uses ``target``; if so, none does until the block ends."""
    locks = [FileLock(_lock_path(target, kind)) for kind in ("lock", "use")]
    try:
        for lock in locks:
            lock.acquire(timeout=0)
    except Timeout:
        yield False
    else:
        yield True
    finally:
        for lock in locks:
            lock.release()


@contextmanager
def scratch(target: Path) -> Iterator[Path]:
    """Make an empty folder next to ``target``, and remove it afterwards unless the block renamed
    it.

    The caller must hold the lock of ``target``: a scratch folder that already exists was then
    left by a killed run. Raises LabError if the disk fills up.
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
    """Make a scratch folder, and rename it to ``target`` when the block ends without an error.

    All that is in it is on the disk before that, and its digests are kept (``vm.seal``).
    """
    with scratch(target) as folder:
        yield folder
        # The whole file system at once: for the 87,000 files of a source tree, one sync each takes
        # minutes.
        seal.keep(target, folder)
        result = toolchain.capture(["sync", "--file-system", str(folder)])
        if result.returncode:
            raise LabError(f"cannot write {target}: {result.stderr.strip()}", hint=_FREE_SPACE)
        remove(target)
        folder.rename(target)
        sync(target.parent)


def sweep(parent: Path) -> None:
    """Remove the scratch folders that killed runs left in ``parent``: those whose lock is free."""
    for left in parent.glob(f".*{_TEMPORARY}"):
        with free(parent / left.name[1 : -len(_TEMPORARY)]) as is_free:
            if is_free:
                remove(left)


def remove(path: Path) -> None:
    """Remove a folder or file, if it exists."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        try:
            shutil.rmtree(path)
        except RecursionError:  # A makefile of a patch can nest folders a thousand levels deep.
            spawn.run(["rm", "-rf", "--", str(path)], check=True)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder. Raises LabError if the disk is full, or something else prevents it; nothing is
    left."""
    result = toolchain.capture(["cp", "-a", "--reflink=auto", str(source), str(target)])
    if result.returncode:
        remove(target)
        if "No space left" in result.stderr or "quota exceeded" in result.stderr:
            raise disk_full(target.parent)
        reason = result.stderr.strip().splitlines()[:1]
        raise LabError(f"cannot copy {source} to {target}: {''.join(reason)}", hint=_FREE_SPACE)


def need_space(folder: Path, megabytes: int, what: str) -> None:
    """Raise LabError if the file system of ``folder`` has less than ``megabytes`` (MiB) free."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        what = f"{what} needs {megabytes} MB in {folder}, but only {free} MB are free"
        raise LabError(what, hint=_FREE_SPACE)


def disk_full(folder: Path) -> LabError:
    """Return the error for a disk that filled up while ``folder`` was being written."""
    return LabError(f"the disk filled up while {folder} was being written", hint=_FREE_SPACE)


def size_kb(paths: Sequence[Path]) -> int:
    """Return the disk space of files and folders in KiB; hard links to one file count once."""
    result = toolchain.capture(["du", "-sck", *map(str, paths)])
    last = result.stdout.splitlines()[-1:] or ["0"]
    return int(last[0].split()[0])


def _lock_path(target: Path, kind: str = "lock") -> Path:
    folder = target.parent / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{target.name}.{kind}"
