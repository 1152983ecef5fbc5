"""A lock of the host, so that a guest on the wall clock has the host for itself.

It is an advisory lock (flock) on a file of the host. QEMU inherits its descriptor: when the process that took
the lock is gone and its guest is still running, the lock is still held. Guests on the instruction clock
share it, since they do not disturb each other.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kteardown.errors import LabError

_EVERY_S = 0.25


@contextmanager
def host_lock(folder: Path, *, exclusive: bool, wait_s: float) -> Iterator[int]:
    """Yield the descriptor of the lock. Raises LabError if others still hold it after ``wait_s``."""
    file = folder / "kteardown-guests.lock"
    # Reading is enough for a lock: another user may have made the file.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with suppress(FileExistsError):
            made = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
            # Whatever the umask of the first user.
            os.fchmod(made, 0o644)
            os.close(made)
        fd = os.open(file, flags)
    except OSError as error:
        raise LabError(
            f"{file}: the lock of the host cannot be opened: {error.strerror}",
            hint="in the configuration, set lock_folder of [slurm] to a local folder of every host.",
        ) from error
    try:
        until = time.monotonic() + wait_s
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise LabError(
                    f"another guest has run on this host for {wait_s:g} s ({file} is locked)",
                    hint=f"see which process holds it: fuser -v {file}",
                )
            time.sleep(_EVERY_S)
        yield fd
    finally:
        os.close(fd)
