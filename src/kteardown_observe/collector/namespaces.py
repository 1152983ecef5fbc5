"""Namespaces of processes, from the links in /proc/PID/ns. The readings of mounts and of
descriptors add the network namespaces in which no process is.

Locks, for each link: exec_update_lock of the process for reading (fs/proc/namespaces.c,
proc_ns_readlink), and its alloc_lock for some kinds (fs/namespace.c, mntns_get). Linux 6.1, 6.12
and 7.3.
"""

from typing import Dict, Set

from kteardown_observe.collector.files import Host, Unreadable, Visit
from kteardown_observe.collector.tally import CountTable

NAMESPACES = {
    "mnt": "mount_namespaces",
    "net": "network_namespaces",
    "pid": "pid_namespaces",
    "user": "user_namespaces",
    "ipc": "ipc_namespaces",
    "uts": "uts_namespaces",
    "cgroup": "cgroup_namespaces",
    "time": "time_namespaces",
}
"""The count for each link."""


def put_network_namespaces(host: Host, counts: CountTable, links: Set[str], visit: Visit) -> None:
    """Count the network namespaces that are known by now: those of processes, and those that only
    mounts or descriptors keep. A later reading replaces the count of an earlier one."""
    host.network_namespaces |= links
    host.network_visits.append(visit)
    number = len(host.network_namespaces)
    if number:
        name = NAMESPACES["net"]
        whole = all(known.complete() for known in host.network_visits)
        counts.put(name, number, whole and host.namespaces_visit is not None)
        least = min(host.network_visits, key=lambda known: known.seen / max(1, known.of))
        counts.counts[name].update(seen=least.seen, of=least.of)


def read_namespaces(host: Host, counts: CountTable) -> None:
    """Count namespaces in which a process is, and keep a process of each mount namespace."""
    numbers: Dict[str, Set[str]] = {kind: set() for kind in NAMESPACES}
    visit = Visit(host, host.user_pids, len(host.user_pids))
    for pid in visit:
        try:
            mount = host.link(f"{host.proc}/{pid}/ns/mnt")
        except Unreadable as failure:
            visit.fail(failure)
            continue
        visit.read_ok += 1
        numbers["mnt"].add(mount)
        # The first process of a namespace is the least likely to have another root.
        host.mount_namespaces[mount] = min(pid, host.mount_namespaces.get(mount, pid))
        for kind in NAMESPACES:
            try:
                numbers[kind].add(host.link(f"{host.proc}/{pid}/ns/{kind}"))
            except Unreadable:
                continue
    host.namespaces_visit = visit
    counts.miss_visited(visit, "/proc/PID/ns", NAMESPACES.values())
    put_network_namespaces(host, counts, numbers.pop("net"), visit)
    for kind, name in NAMESPACES.items():
        if numbers.get(kind):
            counts.put(name, len(numbers[kind]), visit.complete())
            counts.counts[name].update(seen=visit.seen, of=visit.of)
