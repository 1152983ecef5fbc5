"""Whether a lab is at work on a run directory, without touching its lock.

To try the lock would, for that moment, turn away a lab that wants it.
"""

from __future__ import annotations

from pathlib import Path

from kteardown.rundir.directory import RunDir

_LOCKS = Path("/proc/locks")


def at_work(run: RunDir) -> bool:
    """Whether a process that this one can see holds the run's lock.

    Told by the inode alone: on stacked file systems the device of /proc/locks is not that of stat(2).
    """
    try:
        inode = str((run.path / "lock").stat().st_ino)
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    # "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; one that waits has "->" after the number.
    held = (line.split() for line in lines if " -> " not in line)
    return any(len(words) > 5 and words[1] == "FLOCK" and words[5].split(":")[-1] == inode for words in held)
