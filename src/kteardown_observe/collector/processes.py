"""Processes, from one read of /proc/PID/stat each.

Locks, for each process: exec_update_lock for reading, which a process holds while it executes
another program; its siglock for a short time, and in it ctrl.lock of its terminal; and
stats_lock. The sum of the CPU times visits each thread of the process under RCU
(fs/proc/array.c, do_task_stat; fs/proc/base.c, proc_pid_readdir; Linux 6.1, 6.12 and 7.3). Like
ps, it leaves a directory entry and an inode in the caches of the kernel for each process and
file that it looked at; they can be reclaimed, and are freed when the process exits
(proc_flush_pid). Both together have about 1 kB.
"""

import array
import re
from typing import Dict, NamedTuple, Tuple, cast

from kteardown_observe.collector.files import (
    Host,
    Malformed,
    Unreadable,
    Visit,
    number_in,
    printable,
    spread,
)
from kteardown_observe.collector.tally import CountTable, Tally

JOBS_MOST = 20
"""Of so many groups of zombies it is asked whether they are jobs."""
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD, of include/linux/sched.h."""
PROCESSES_MOST = 2000000
PID = re.compile(r"[1-9][0-9]{0,8}\Z")
PROCESS_COUNTS = (
    "processes",
    "kernel_threads",
    "threads",
    "zombies",
    "zombies_group",
    "children",
    "process_groups",
    "sessions",
    "stopped",
    "uninterruptible",
)


class Process(NamedTuple):
    comm: bytes
    state: str
    parent: int
    group: int
    session: int
    kernel: bool
    threads: int


def parse_stat(text: bytes) -> Process:
    """Read /proc/PID/stat. The name may have any bytes: it ends at the last bracket.

    Raises Malformed.
    """
    begin = text.find(b"(")
    end = text.rfind(b")")
    fields = text[end + 1 :].split()
    if begin < 0 or end < begin or len(fields) < 18:
        raise Malformed(printable(text))
    return Process(
        comm=text[begin + 1 : end],
        state=fields[0].decode("ascii", "replace"),
        parent=number_in(fields[1]),
        group=number_in(fields[2]),
        session=number_in(fields[3]),
        kernel=bool(number_in(fields[6]) & KERNEL_THREAD),
        threads=number_in(fields[17]),
    )


def list_processes(host: Host) -> "array.array[int]":
    """Return the processes that /proc lists; raises Unreadable."""
    pids = array.array("q")
    for entry in host.names(host.proc, PROCESSES_MOST):
        if PID.match(entry.name):
            pids.append(int(entry.name))
    return pids


class Processes:
    """The sums over processes."""

    def __init__(self) -> None:
        self.tallies: Dict[str, Tally] = {name: Tally() for name in PROCESS_COUNTS}
        self.groups = Tally()
        """Zombies by their parent and their process group."""

    def add(self, pid: int, process: Process) -> bool:
        """Count a process; return whether it is one of user space that has not exited."""
        tallies = self.tallies
        if process.state == "D":
            tallies["uninterruptible"].add(process.comm)
        if process.kernel:
            tallies["kernel_threads"].number += 1
            return False
        # Those of another PID namespace have the number 0.
        if process.group > 0:
            tallies["process_groups"].add(process.group)
        if process.session > 0:
            tallies["sessions"].add(process.session)
        # The first thread of a process that others still use is a zombie, too.
        if process.state in "ZX" and process.threads <= 1:
            tallies["zombies"].add(process.parent)
            self.groups.add((process.parent, process.group))
            return False
        tallies["children"].add(process.parent)
        tallies["processes"].number += 1
        tallies["threads"].add_owner(pid, process.threads)
        if process.state in "Tt":
            tallies["stopped"].number += 1
        return True

    def count_jobs(self, host: Host) -> None:
        """Count the zombies whose process group is not that of their parent, as in a job of a
        shell."""
        tally = self.tallies["zombies_group"]
        pairs = sorted(self.groups.by, key=lambda pair: -self.groups.by[pair])
        for pair in pairs[:JOBS_MOST]:
            parent, group = cast(Tuple[int, int], pair)
            try:
                process = parse_stat(host.read_once(f"{host.proc}/{parent}/stat", 4096))
            except (Unreadable, Malformed):
                continue
            if process.group != group:
                tally.add_owner(parent, self.groups.by[pair])


def read_processes(host: Host, counts: CountTable) -> None:
    """Count processes, and keep those of user space for later readings; raises Unreadable."""
    end_s = host.narrow(0.5)
    pids = list_processes(host)
    whole = not host.spent()
    host.end_s = end_s
    host.listed = len(pids)
    visit = Visit(host, (pids[index] for index in spread(len(pids))), len(pids), whole)
    sums = Processes()
    for pid in visit:
        text = visit.read(f"{host.proc}/{pid}/stat", 4096)
        if text is None:
            continue
        try:
            process = parse_stat(text)
        except Malformed:
            continue
        if sums.add(pid, process):
            host.user_pids.append(pid)
    host.kernel_threads = sums.tallies["kernel_threads"].number
    sums.count_jobs(host)
    if not visit.whole:
        # Later readings also visit the rest, even if some are kernel threads.
        for number, index in enumerate(spread(len(pids))):
            if number >= visit.seen:
                host.user_pids.append(pids[index])
    _put_processes(host, counts, visit, sums.tallies)
    if pids and 1 not in pids:
        detail = "process 1 is not listed: /proc hides processes of others (hidepid)"
        counts.miss(PROCESS_COUNTS, "permission", detail)


def _put_processes(host: Host, counts: CountTable, visit: Visit, tallies: Dict[str, Tally]) -> None:
    groups = {name: len(tallies[name].by) for name in ("process_groups", "sessions")}
    comms = {"uninterruptible": tallies.pop("uninterruptible")}
    counts.put_visited(visit, "/proc/PID/stat", tallies, host.process_name)
    counts.put_visited(visit, "/proc/PID/stat", comms, lambda comm: printable(comm)[:64])
    for name, number in groups.items():
        if name in counts.counts:
            counts.counts[name]["number"] = number
