"""What processes have open, from the links in /proc/PID/fd, and from /proc/PID/fdinfo for some.

Locks: listing and each link take alloc_lock of the process (fs/file.c, fget_task), and a link
RCU and rename_lock as a sequence count (fs/d_path.c). fdinfo takes alloc_lock and file_lock of
the table of files, and flc_lock if the file has locks (fs/proc/fd.c, seq_show). It is written at
once, however long, and anew with twice the memory until it fits: that of an epoll under ep->mtx,
for which epoll_wait waits (fs/eventpoll.c, ep_show_fdinfo); of inotify and fanotify under
mark_mutex of the group, for which only adding and removing a watch waits (fs/notify/fdinfo.c,
show_fdinfo); of a listening unix socket under the lock of its queue (net/unix/af_unix.c,
unix_show_fdinfo). fdinfo is only read for these. Linux 6.1, 6.12 and 7.3. Each link leaves a
directory entry and an inode in the caches of the kernel until the process exits or memory is
short.

Links of anonymous inodes are all alike: if processes share an eventfd, an epoll or another of
these, each of them counts it.
"""

from typing import Dict, List, Optional, Set, Tuple

from kteardown_observe.collector.files import Host, Malformed, Unreadable, Visit, number_in, shown
from kteardown_observe.collector.namespaces import put_network_namespaces
from kteardown_observe.collector.tally import CountTable, Tally

FDINFO_MOST = 16 << 20
DESCRIPTORS_FOR_EPOLL = 10000
"""Where a process has more, its epolls are not read: the kernel would hold one for too long."""
SOCKETS_MOST = 20000
ANONYMOUS = {
    "eventfd": "eventfds",
    "signalfd": "signalfds",
    "timerfd": "timerfds",
    "eventpoll": "epolls",
    "inotify": "inotify_instances",
    "fanotify": "fanotify_groups",
    "pidfd": "pidfds",
    "io_uring": "io_urings",
    "userfaultfd": "userfaultfds",
    "perf_event": "perf_events",
    "bpf-map": "bpf_maps",
    "bpf-prog": "bpf_programs",
    "bpf_link": "bpf_links",
    "bpf-link": "bpf_links",
}
"""The count for each name of an anonymous inode."""
KEPT = {
    "mnt": "kept_mount_namespaces",
    "net": "kept_network_namespaces",
    "pid": "kept_pid_namespaces",
    "user": "kept_user_namespaces",
    "ipc": "kept_ipc_namespaces",
    "uts": "kept_uts_namespaces",
    "cgroup": "kept_cgroup_namespaces",
    "time": "kept_time_namespaces",
}
"""The count for each kind of namespace that a descriptor keeps."""
INSIDE = {
    "epolls": ("epoll_items", b"tfd:"),
    "inotify_instances": ("inotify_watches", b"inotify wd:"),
    "fanotify_groups": ("fanotify_marks", b"fanotify "),
}
"""What the fdinfo of a descriptor lists: the count, and how its lines begin."""
NUMBERED = {"pipe": "pipes", "socket": "socket_descriptors", **KEPT}
"""Links with a number: an object is counted once, whoever shares it."""
DESCRIPTOR_COUNTS = (
    "descriptors",
    "deleted_files",
    "memfds",
    *dict.fromkeys(ANONYMOUS.values()),
    *NUMBERED.values(),
)


def kind_of(target: str) -> Tuple[str, str]:
    """Return the count for the link of a descriptor, and the number of the object if it has one.

    Both are empty for other files.
    """
    if target.startswith("/memfd:"):
        return "memfds", ""
    if target.startswith("/"):
        deleted = target.endswith(" (deleted)") and not target.startswith(("/SYSV", "/dev/"))
        return ("deleted_files" if deleted else ""), ""
    kind, _, rest = target.partition(":")
    if kind == "anon_inode":
        return ANONYMOUS.get(rest.strip("[]"), ""), ""
    if kind in NUMBERED and rest.startswith("["):
        return NUMBERED[kind], rest
    return "", ""


class Descriptors:
    """The sums over processes."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.tallies = {name: Tally() for name in DESCRIPTOR_COUNTS}
        self.inside = {name: Tally() for name, _ in INSIDE.values()}
        self.known: Dict[str, Set[str]] = {name: set() for name in NUMBERED.values()}
        self.incomplete: Dict[str, str] = {}
        self.sockets: List[Tuple[int, str]] = []
        """A process and a descriptor of each socket, the first ones."""

    def add_process(self, pid: int) -> Optional[Unreadable]:
        """Count what a process has open, and return why some of it cannot be told.

        Raises Unreadable if nothing can be read.
        """
        refused: Optional[Unreadable] = None
        numbers: Dict[str, int] = {}
        own: Set[Tuple[str, str]] = set()
        listing: List[Tuple[str, str]] = []
        total = 0
        for entry in self.host.names(f"{self.host.proc}/{pid}/fd"):
            total += 1
            try:
                name, identity = kind_of(self.host.link(entry.path))
            except Unreadable as failure:
                # To root, a security module can show that a descriptor is there, but not its link.
                refused = refused or (failure if failure.reason != "not there" else None)
                continue
            if not name or (identity and (name, identity) in own):
                continue
            numbers[name] = numbers.get(name, 0) + 1
            if identity:
                own.add((name, identity))
                self._know(pid, entry.name, name, identity)
            if name in INSIDE:
                listing.append((name, entry.name))
        self.tallies["descriptors"].add_owner(pid, total)
        for name, number in numbers.items():
            self.tallies[name].add_owner(pid, number)
        watches = 0
        for name, descriptor in listing:
            inside = self._look_inside(pid, descriptor, name, total)
            watches += inside if name == "inotify_instances" else 0
        if "inotify_instances" in numbers:
            self.host.inotify[pid] = (numbers["inotify_instances"], watches)
        return refused

    def _know(self, pid: int, descriptor: str, name: str, identity: str) -> None:
        """Count an object with a number once, and keep a descriptor of each socket."""
        if identity in self.known[name]:
            return
        self.known[name].add(identity)
        if name == "socket_descriptors" and len(self.sockets) < SOCKETS_MOST:
            self.sockets.append((pid, descriptor))

    def _look_inside(self, pid: int, descriptor: str, name: str, total: int) -> int:
        """Count what the fdinfo of a descriptor lists, and return it."""
        count, begin = INSIDE[name]
        if name == "epolls" and total > DESCRIPTORS_FOR_EPOLL:
            self.incomplete[count] = f"epolls of processes with over {DESCRIPTORS_FOR_EPOLL} files"
            return 0
        lines = self.host.lines(f"{self.host.proc}/{pid}/fdinfo/{descriptor}", FDINFO_MOST)
        try:
            number = sum(1 for line in lines if _lists(line, begin))
        except Unreadable:
            return 0
        self.inside[count].add_owner((pid, descriptor), number)
        if not lines.whole:
            self.incomplete[count] = f"only a part of {lines.path}"
        return number

    def name_inside(self, owner: Tuple[int, str]) -> str:
        """Return the name of a descriptor."""
        return f"{self.host.process_name(owner[0])} descriptor {shown(owner[1])}"


def _lists(line: bytes, begin: bytes) -> bool:
    # The first line of a group of fanotify tells its flags, and is no mark.
    return line.startswith(begin) and not line.startswith(b"fanotify flags:")


def read_descriptors(host: Host, counts: CountTable) -> None:
    """Count open files of all kinds, and keep sockets for the next reading."""
    sums = Descriptors(host)
    visit = Visit(host, host.user_pids, len(host.user_pids))
    for pid in visit:
        try:
            refused = sums.add_process(pid)
        except Unreadable as failure:
            visit.fail(failure)
            continue
        visit.read_ok += 1
        if refused is not None:
            visit.fail(refused)
    visit.whole = visit.whole and not host.spent()
    for name in NUMBERED.values():
        sums.tallies[name].number = len(sums.known[name])
    counts.put_visited(visit, "/proc/PID/fd", sums.tallies, host.process_name)
    counts.put_visited(visit, "/proc/PID/fdinfo", sums.inside, sums.name_inside)
    networks = {f"net:{number}" for number in sums.known[KEPT["net"]]}
    put_network_namespaces(host, counts, networks, visit)
    for name, detail in sums.incomplete.items():
        counts.counts.get(name, {})["complete"] = False
        counts.miss([name], "time", detail)
    host.sockets = sums.sockets
    host.descriptors_visit = visit


def parse_in_flight(text: bytes) -> int:
    """Return how many descriptors wait in a socket, by its fdinfo. Raises Malformed."""
    for line in text.splitlines():
        if line.startswith(b"scm_fds:"):
            return number_in(line[8:].strip())
    return 0


def read_in_flight(host: Host, counts: CountTable) -> None:
    """Count descriptors that were sent by unix sockets and not yet received."""
    by_process: Dict[int, int] = {}
    visit = Visit(host, range(len(host.sockets)), len(host.sockets))
    visit.whole = len(host.sockets) < SOCKETS_MOST
    for index in visit:
        pid, descriptor = host.sockets[index]
        text = visit.read(f"{host.proc}/{pid}/fdinfo/{descriptor}", 4096)
        try:
            number = parse_in_flight(text or b"")
        except Malformed:
            continue
        if number:
            by_process[pid] = by_process.get(pid, 0) + number
    tally = Tally()
    for pid, number in by_process.items():
        tally.add_owner(pid, number)
    counts.put_visited(visit, "sockets", {"unix_in_flight": tally}, host.process_name)
    counts.miss_earlier(host.descriptors_visit, "/proc/PID/fd", ["unix_in_flight"])
