"""How much of its bound each limit of the kernel has: tasks, inotify, keys, files, connections.

Files: below /proc: loadavg, key-users, and of sys: kernel/pid_max and threads-max, fs/file-nr,
fs/inotify, net/netfilter/nf_conntrack_count and nf_conntrack_max. Of processes with an instance
of inotify, the owner of their folder. The other readings add cgroups: pids.max, and memory.

Locks: key_user_lock for /proc/key-users (security/keys/proc.c, proc_key_users_start). In 7.2 and
7.3, file-nr adds up the numbers of all CPUs under the lock of the counter, with interrupts off
(fs/file_table.c, proc_nr_files; lib/percpu_counter.c); in 6.1 and 6.12 it takes none. The other
files take none (fs/proc/loadavg.c; net/netfilter/nf_conntrack_standalone.c). The owner of a
folder takes RCU (fs/proc/base.c, pid_getattr). Linux 6.1, 6.12, 7.2 and 7.3.

Every memory cgroup has one of 65,535 IDs (mm/memcontrol.c: MEM_CGROUP_ID_MAX in 6.1, 6.12, 7.2
and 7.3). A removed one gives it back when it goes offline, whatever keeps its memory, unless
records of swapped-out pages name it (mem_cgroup_css_offline puts the reference of the online
state; mem_cgroup_id_get_online, in 7.2 and 7.3 mem_cgroup_private_id_get_online, takes those of
swap). So the removed ones that /proc/cgroups still counts are left out here.
"""

import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from kteardown_observe.collector.files import (
    Host,
    Malformed,
    Unreadable,
    Visit,
    number_in,
    printable,
)
from kteardown_observe.collector.tally import CountTable

MEMORY_CGROUP_IDS = 65535
KEY_USERS_MOST = 1 << 20
LIMITS_READ = (
    "pid_max",
    "threads_max",
    "file_max",
    "max_user_instances",
    "max_user_watches",
    "maxkeys",
    "maxbytes",
    "nf_conntrack_max",
)


def put_limit(host: Host, name: str, number: int, bound: int, owner: str = "") -> None:
    """Set how many there are and may be. Of several owners, the one that is fullest counts.

    A bound of 0 is none.
    """
    if bound <= 0:
        return
    known = host.limits.get(name)
    if known is None or number * known["bound"] > known["number"] * bound:
        host.limits[name] = {"number": number, "bound": bound, "owner": owner}


def end_limit(host: Host, name: str, visit: Optional[Visit], whole: bool = True) -> None:
    """Say how many of the owners were looked at."""
    if name in host.limits:
        host.limits[name]["complete"] = whole and (visit is None or visit.complete())
        if visit is not None:
            host.limits[name].update(seen=visit.seen, of=visit.of)


def parse_quota(line: bytes) -> Tuple[int, List[Tuple[int, int]]]:
    """Read a line of /proc/key-users: the user, and its keys and their bytes, each with the most
    that it may have. Raises Malformed."""
    fields = line.split()
    if len(fields) < 5 or not fields[0].endswith(b":"):
        raise Malformed(printable(line))
    pairs = []
    for field in fields[3:5]:
        number, _, bound = field.partition(b"/")
        pairs.append((number_in(number), number_in(bound)))
    return number_in(fields[0][:-1]), pairs


def parse_tasks(text: bytes) -> int:
    """Return how many tasks there are, of /proc/loadavg. Zombies are among them. Raises
    Malformed."""
    fields = text.split()
    if len(fields) < 4:
        raise Malformed(printable(text))
    return number_in(fields[3].partition(b"/")[2])


def read_limits(host: Host, counts: CountTable) -> List[Dict[str, Any]]:
    """Return every limit that was found, by this reading or an earlier one."""
    parts: Tuple[Tuple[Callable[[Host, CountTable], None], Tuple[str, ...]], ...] = (
        (_read_tasks, ("pid_max", "threads_max")),
        (_read_files, ("file_max",)),
        (_read_inotify, ("max_user_instances", "max_user_watches")),
        (_read_quotas, ("maxkeys", "maxbytes")),
        (_read_connections, ("nf_conntrack_max",)),
    )
    for part, names in parts:
        try:
            part(host, counts)
        except (Unreadable, Malformed) as failure:
            counts.miss(names, getattr(failure, "reason", "error"), str(failure))
    return [{"name": name, **host.limits[name]} for name in sorted(host.limits)]


def _read_tasks(host: Host, counts: CountTable) -> None:
    kernel = f"{host.proc}/sys/kernel"
    tasks = parse_tasks(host.read(f"{host.proc}/loadavg", 4096))
    put_limit(host, "threads_max", tasks, host.number(f"{kernel}/threads-max"))
    if host.kernel_threads:
        put_limit(host, "pid_max", tasks, host.number(f"{kernel}/pid_max"))
        return
    # loadavg counts the tasks of the whole machine, and pid_max is that of a PID namespace.
    detail = "no kernel thread is listed: /proc shows the processes of a container, or hides some"
    counts.miss(["pid_max"], "not there", detail)


def _read_files(host: Host, counts: CountTable) -> None:
    path = f"{host.proc}/sys/fs/file-nr"
    put_limit(host, "file_max", host.number(path), host.number(path, 2))


def _read_inotify(host: Host, counts: CountTable) -> None:
    """Add up the instances and watches of each user. Those of a container with user IDs of its
    own are also charged to the user who made it; that is not added here."""
    by_user: Dict[int, Tuple[int, int]] = {}
    for pid, (instances, watches) in host.inotify.items():
        try:
            uid = os.stat(f"{host.proc}/{pid}").st_uid
        except OSError:
            continue
        known = by_user.get(uid, (0, 0))
        by_user[uid] = (known[0] + instances, known[1] + watches)
    names = ("max_user_instances", "max_user_watches")
    if host.descriptors_visit is None:
        counts.miss(names, "time", "descriptors were not read")
        return
    for index, name in enumerate(names):
        bound = host.number(f"{host.proc}/sys/fs/inotify/{name}")
        put_limit(host, name, 0, bound)
        for uid, numbers in by_user.items():
            put_limit(host, name, numbers[index], bound, f"uid {uid}")
        end_limit(host, name, host.descriptors_visit)
    counts.miss_earlier(host.descriptors_visit, "/proc/PID/fd", names)


def _read_quotas(host: Host, counts: CountTable) -> None:
    lines = host.lines(f"{host.proc}/key-users", KEY_USERS_MOST)
    for line in lines:
        uid, pairs = parse_quota(line)
        for name, (number, bound) in zip(("maxkeys", "maxbytes"), pairs):
            put_limit(host, name, number, bound, f"uid {uid}")
    for name in ("maxkeys", "maxbytes"):
        end_limit(host, name, None, lines.whole)


def _read_connections(host: Host, counts: CountTable) -> None:
    """Without the module there is no such limit."""
    folder = f"{host.proc}/sys/net/netfilter"
    try:
        number = host.number(f"{folder}/nf_conntrack_count")
        put_limit(host, "nf_conntrack_max", number, host.number(f"{folder}/nf_conntrack_max"))
    except Unreadable as failure:
        if failure.reason != "not there":
            raise
