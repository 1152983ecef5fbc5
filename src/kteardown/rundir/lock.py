"""Check whether a process is writing to a run directory, without taking its lock.

Taking the lock, even for a moment, would make a kteardown that starts in this moment fail.
"""

from __future__ import annotations

from pathlib import Path

from kteardown.rundir.directory import RunDir

_LOCKS = Path("/proc/locks")


def is_locked(run: RunDir) -> bool:
    """Return whether a process holds the lock of ``run``, according to ``/proc/locks``.

    Only the inode is compared: on stacked file systems the device in /proc/locks is not that of stat(2).
    """
    try:
        inode = str((run.path / "lock").stat().st_ino)
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    # "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; a waiting process has "->" after the number.
    held = (line.split() for line in lines if " -> " not in line)
    return any(len(words) > 5 and words[1] == "FLOCK" and words[5].split(":")[-1] == inode for words in held)
