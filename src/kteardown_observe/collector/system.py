"""Numbers that the kernel keeps anyway: sysctls, IPC, sockets, modules, probes.

Files: below /proc: sys/fs/aio-nr, inode-nr, dentry-state and file-nr, sys/kernel/pty/nr,
net/sockstat, net/protocols, sysvipc, key-users, modules; SYS/power/state,
SYS/kernel/tracing/uprobe_events and kprobe_events.

Locks: the numbers below /proc/sys are counters, or sums over all possible CPUs, without a lock
(fs/dcache.c, get_nr_dentry; fs/inode.c), but for file-nr in 7.2 and 7.3: its sum holds the lock
of the counter with interrupts off (fs/file_table.c, proc_nr_files). /proc/net/sockstat and the
numbers of /proc/net/protocols take no lock (net/core/sock.c, sock_prot_inuse_get), but protocols
takes proto_list_mutex. /proc/sysvipc takes rwsem of the kind of objects for reading, and the
lock of each object (ipc/util.c, sysvipc_proc_start, sysvipc_find_ipc). /proc/key-users takes
key_user_lock (security/keys/proc.c), /proc/modules module_mutex (kernel/module/procfs.c), and
the lists of probes event_mutex (kernel/trace/trace_dynevent.c, dyn_event_seq_start).
/proc/net/unix, netlink and packet are not read: they list every socket, and /proc/net/protocols
has the sums. Linux 6.1, 6.12 and 7.3.
"""

from typing import Callable, Dict, NamedTuple, Tuple

from kteardown_observe.collector.files import Host, Malformed, Unreadable, number_in, printable
from kteardown_observe.collector.tally import CountTable, Tally

LIST_MOST = 1 << 20
NUMBERS = {
    "aio_requests": ("sys/fs/aio-nr", 0),
    "ptys": ("sys/kernel/pty/nr", 0),
    "inodes": ("sys/fs/inode-nr", 0),
    "inodes_unused": ("sys/fs/inode-nr", 1),
    "dentries": ("sys/fs/dentry-state", 0),
    "dentries_unused": ("sys/fs/dentry-state", 1),
    "negative_dentries": ("sys/fs/dentry-state", 4),
    "open_files": ("sys/fs/file-nr", 0),
}
"""The file below /proc and the field, for each count."""
SOCKETS = {
    "udp_sockets": ("UDP", "UDPv6", "UDP-Lite", "UDPLITEv6"),
    "raw_sockets": ("RAW", "RAWv6"),
    "packet_sockets": ("PACKET",),
    "unix_sockets": ("UNIX", "UNIX-STREAM"),
    "netlink_sockets": ("NETLINK",),
}
"""The protocols of /proc/net/protocols for each count."""
SLEEP_STATES = (b"mem", b"disk")
TCP = {"tcp_sockets": "alloc", "tcp_time_wait": "tw", "tcp_orphans": "orphan"}
PROBES = {"uprobes": "uprobe_events", "kprobes": "kprobe_events"}


class IpcObject(NamedTuple):
    identifier: int
    number: int


def parse_sockstat(text: bytes) -> Dict[str, int]:
    """Read the line TCP of /proc/net/sockstat. Raises Malformed."""
    for line in text.splitlines():
        if line.startswith(b"TCP:"):
            words = line.split()[1:]
            pairs = zip(words[0::2], words[1::2])
            return {printable(name): number_in(value) for name, value in pairs}
    raise Malformed("no line TCP")


def parse_protocols(text: bytes) -> Dict[str, int]:
    """Return the sockets by protocol, of /proc/net/protocols. Raises Malformed."""
    values = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 3:
            raise Malformed(printable(line))
        values[printable(fields[0])] = number_in(fields[2])
    return values


def parse_sysvipc(line: bytes, field: int) -> IpcObject:
    """Read a line of /proc/sysvipc: its identifier and another field. Raises Malformed."""
    fields = line.split()
    if len(fields) <= max(1, field):
        raise Malformed(printable(line))
    return IpcObject(number_in(fields[1]), number_in(fields[field]))


def parse_key_user(line: bytes) -> Tuple[int, int]:
    """Read a line of /proc/key-users: the user and the number of keys. Raises Malformed."""
    fields = line.split()
    if len(fields) < 3 or not fields[0].endswith(b":"):
        raise Malformed(printable(line))
    return number_in(fields[0][:-1]), number_in(fields[2].partition(b"/")[0])


def _read_sleep_states(host: Host, counts: CountTable) -> None:
    """Count how this machine can be suspended; a server often cannot.

    A kernel that cannot has no such file. Then there must be another one, of a mounted sysfs.
    """
    try:
        words = host.read(f"{host.sys}/power/state", 4096).split()
    except Unreadable as failure:
        if failure.reason != "not there":
            raise
        host.read(f"{host.sys}/devices/system/cpu/possible", 4096)
        words = []
    counts.put("sleep_states", len([word for word in words if word in SLEEP_STATES]))


def read_system(host: Host, counts: CountTable) -> None:
    """Count what single files tell; each file that is missing is said."""
    for name, (path, field) in NUMBERS.items():
        try:
            counts.put(name, host.number(f"{host.proc}/{path}", field))
        except (Unreadable, Malformed) as failure:
            counts.miss([name], getattr(failure, "reason", "error"), str(failure))
    parts: Tuple[Tuple[Callable[[Host, CountTable], None], Tuple[str, ...]], ...] = (
        (_read_tcp, tuple(TCP)),
        (_read_sockets, tuple(SOCKETS)),
        (_read_messages, ("msg_queues", "msg_messages")),
        (_read_semaphores, ("sem_sets", "sem_semaphores")),
        (_read_shared_memory, ("shm_segments",)),
        (_read_keys, ("keys",)),
        (_read_modules, ("modules",)),
        (_read_probes, tuple(PROBES)),
        (_read_sleep_states, ("sleep_states",)),
    )
    for part, names in parts:
        try:
            part(host, counts)
        except (Unreadable, Malformed) as failure:
            counts.miss(names, getattr(failure, "reason", "error"), str(failure))


def _read_tcp(host: Host, counts: CountTable) -> None:
    values = parse_sockstat(host.read(f"{host.proc}/net/sockstat"))
    for name, key in TCP.items():
        how = "of this network namespace" if key == "tw" else "of all network namespaces"
        if key in values:
            counts.put(name, values[key], how=how)


def _read_sockets(host: Host, counts: CountTable) -> None:
    values = parse_protocols(host.read(f"{host.proc}/net/protocols"))
    for name, protocols in SOCKETS.items():
        there = [values[protocol] for protocol in protocols if protocol in values]
        if there:
            counts.put(name, sum(there), how="of this network namespace")
        else:
            counts.miss([name], "not there", f"no {protocols[0]} in /proc/net/protocols")


def _read_ipc(host: Host, file: str, field: int) -> Tuple[int, bool, Tally]:
    """Return how many lines a file of /proc/sysvipc has, if these are all, and the sums."""
    lines = host.lines(f"{host.proc}/sysvipc/{file}", LIST_MOST)
    tally = Tally()
    number = 0
    for index, line in enumerate(lines):
        if index:
            queue = parse_sysvipc(line, field)
            tally.add_owner(queue.identifier, queue.number)
            number += 1
    return number, lines.whole, tally


def _read_messages(host: Host, counts: CountTable) -> None:
    number, whole, tally = _read_ipc(host, "msg", 4)
    counts.put("msg_queues", number, whole)
    counts.put("msg_messages", tally.number, whole, tally.largest(lambda queue: f"queue {queue}"))


def _read_semaphores(host: Host, counts: CountTable) -> None:
    number, whole, tally = _read_ipc(host, "sem", 3)
    counts.put("sem_sets", number, whole)
    counts.put("sem_semaphores", tally.number, whole, tally.largest(lambda one: f"set {one}"))


def _read_shared_memory(host: Host, counts: CountTable) -> None:
    number, whole, _ = _read_ipc(host, "shm", 1)
    counts.put("shm_segments", number, whole)


def _read_keys(host: Host, counts: CountTable) -> None:
    tally = Tally()
    lines = host.lines(f"{host.proc}/key-users", LIST_MOST)
    for line in lines:
        tally.add_owner(*parse_key_user(line))
    counts.put("keys", tally.number, lines.whole, tally.largest(lambda uid: f"uid {uid}"))


def _read_modules(host: Host, counts: CountTable) -> None:
    lines = host.lines(f"{host.proc}/modules", LIST_MOST)
    counts.put("modules", sum(1 for _ in lines), lines.whole)


def _read_probes(host: Host, counts: CountTable) -> None:
    """Count probes, if tracefs is mounted. Below debugfs it would be mounted by looking at it."""
    for name, file in PROBES.items():
        lines = host.lines(f"{host.sys}/kernel/tracing/{file}", LIST_MOST)
        counts.put(name, sum(1 for _ in lines), lines.whole)
