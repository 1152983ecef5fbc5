"""File locks, from one read of /proc/locks.

Locks: the whole file_rwsem for writing and blocked_lock_lock, for each page of text, about 65
file locks (fs/locks.c, locks_start). Meanwhile no task can take or release a file lock. The
first time, taking it waits for an RCU grace period (kernel/locking/percpu-rwsem.c,
percpu_down_write). Each page walks from the first lock to the present one (fs/seq_file.c,
seq_hlist_start_percpu), so the time grows with the square of the number; the bound of bytes
limits it. Linux 6.1, 6.12, 7.2 and 7.3.
"""

from typing import NamedTuple

from kteardown_observe.collector.files import Host, Malformed, printable
from kteardown_observe.collector.tally import CountTable, Tally

LOCKS_MOST = 1000000
"""Bytes, about 17,000 locks. The kernel walks to the present lock anew for each page of text."""
LOCK_TYPES = {
    b"POSIX": "posix_locks",
    b"ACCESS": "posix_locks",
    b"OFDLCK": "ofd_locks",
    b"FLOCK": "flocks",
    b"LEASE": "leases",
    b"DELEG": "leases",
}
LOCK_COUNTS = ("flocks", "posix_locks", "ofd_locks", "leases", "lock_waiters")


class FileLock(NamedTuple):
    kind: str
    inode: bytes


def parse_lock(line: bytes) -> FileLock:
    """Read a line of /proc/locks: the name of its count, and the inode. Raises Malformed."""
    fields = line.split()
    waits = len(fields) > 1 and fields[1] == b"->"
    if waits:
        del fields[1]
    if len(fields) < 8 or fields[1] not in LOCK_TYPES:
        raise Malformed(printable(line))
    return FileLock("lock_waiters" if waits else LOCK_TYPES[fields[1]], fields[5])


def name_inode(inode: bytes) -> str:
    """Return ``device fd:00, inode 12`` of the field fd:00:12."""
    device, _, number = printable(inode).rpartition(":")
    return f"device {device}, inode {number}"


def read_locks(host: Host, counts: CountTable) -> None:
    """Count file locks, and who waits for one; raises Unreadable."""
    tallies = {name: Tally() for name in LOCK_COUNTS}
    lines = host.lines(f"{host.proc}/locks", LOCKS_MOST)
    unknown = 0
    for line in lines:
        try:
            lock = parse_lock(line)
        except Malformed:
            unknown += 1
            continue
        tallies[lock.kind].add(lock.inode)
    for name, tally in tallies.items():
        counts.put(name, tally.number, lines.whole and not unknown, tally.largest(name_inode))
    if not lines.whole:
        counts.miss(LOCK_COUNTS, "time", f"only a part of {lines.path}")
    if unknown:
        counts.miss(LOCK_COUNTS, "error", f"{unknown} lines of {lines.path} in another format")
