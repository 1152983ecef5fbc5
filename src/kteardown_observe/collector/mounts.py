"""Mounts, from /proc/PID/mountinfo of one process of each mount namespace.

Locks: namespace_sem for reading, for each page of text, about 30 mounts (fs/namespace.c,
m_start). Every mount and unmount of the machine takes it for writing. Paths are written under
RCU with the sequence counts of mount_lock and rename_lock (fs/d_path.c, prepend_path). Linux
6.1, 6.12, 7.3.
"""

import os
from typing import Dict, NamedTuple, Optional, Set

from kteardown_observe.collector.files import Host, Malformed, Unreadable, Visit, printable
from kteardown_observe.collector.namespaces import put_network_namespaces
from kteardown_observe.collector.tally import CountTable, Tally, text_of

MOUNTINFO_MOST = 64 << 20
MOUNT_COUNTS = (
    "mounts",
    "mount_peers",
    "mount_slaves",
    "mounts_stacked",
    "overlay_mounts",
    "tmpfs_mounts",
    "propagated_mounts",
    "mounted_network_namespaces",
)
GROUPS_MOST = 200000


class MountLine(NamedTuple):
    device: bytes
    root: bytes
    point: bytes
    peers: Optional[bytes]
    masters: Optional[bytes]
    filesystem: bytes


def parse_mount(line: bytes) -> MountLine:
    """Read a line of mountinfo. Blanks in paths are written as \\040. Raises Malformed."""
    left, found, right = line.partition(b" - ")
    fields = left.split(b" ")
    if not found or len(fields) < 6 or not right:
        raise Malformed(printable(line))
    peers = masters = None
    for field in fields[6:]:
        name, _, number = field.partition(b":")
        if name == b"shared":
            peers = number
        elif name == b"master":
            masters = number
    return MountLine(fields[2], fields[3], fields[4], peers, masters, right.split(b" ")[0])


class Mounts:
    """The sums over mounts of all namespaces that were read."""

    def __init__(self) -> None:
        self.tallies = {name: Tally() for name in MOUNT_COUNTS}
        self.kept_networks: Set[bytes] = set()
        self.devices: Set[bytes] = set()
        self.owners: Dict[bytes, Set[str]] = {}
        """The namespaces that have a peer or a slave of a group."""
        self.shared: Dict[str, Dict[bytes, int]] = {}
        """How many mounts of a namespace are peers of a group."""

    def add_namespace(self, owner: str, host: Host, path: str) -> bool:
        """Count the mounts of a namespace; return whether all were read. Raises Unreadable."""
        points: Dict[bytes, int] = {}
        number = 0
        lines = host.lines(path, MOUNTINFO_MOST)
        for line in lines:
            try:
                mount = parse_mount(line)
            except Malformed:
                continue
            number += 1
            points[mount.point] = points.get(mount.point, 0) + 1
            self.add(mount)
            self.add_groups(owner, mount)
        self.tallies["mounts"].add_owner(owner, number)
        for point, stacked in points.items():
            if stacked > 1:
                self.tallies["mounts_stacked"].add(point, stacked - 1)
        return lines.whole

    def add_groups(self, owner: str, mount: MountLine) -> None:
        """Remember in which namespaces a group has peers or slaves."""
        if len(self.owners) >= GROUPS_MOST:
            return
        for group in (mount.peers, mount.masters):
            if group is not None:
                self.owners.setdefault(group, set()).add(owner)
        if mount.peers is not None:
            groups = self.shared.setdefault(owner, {})
            groups[mount.peers] = groups.get(mount.peers, 0) + 1

    def count_propagated(self) -> None:
        """Count the mounts of which another namespace has a peer or a slave."""
        for owner, groups in self.shared.items():
            number = sum(mounts for group, mounts in groups.items() if len(self.owners[group]) > 1)
            self.tallies["propagated_mounts"].add_owner(owner, number)

    def add(self, mount: MountLine) -> None:
        """Count a mount by what it is."""
        if mount.peers is not None:
            self.tallies["mount_peers"].add(mount.peers)
        if mount.masters is not None:
            self.tallies["mount_slaves"].add(mount.masters)
        # A file system has one device number, however often it is mounted.
        if mount.filesystem in (b"overlay", b"tmpfs") and mount.device not in self.devices:
            self.devices.add(mount.device)
            self.tallies[f"{mount.filesystem.decode()}_mounts"].number += 1
        # A namespace that a mount keeps, as `ip netns add` makes it, can be mounted many times.
        if mount.filesystem == b"nsfs" and mount.root.startswith(b"net:"):
            self.kept_networks.add(mount.root)


def read_mounts(host: Host, counts: CountTable) -> None:
    """Count mounts; without namespaces of others, those of this process."""
    sums = Mounts()
    namespaces = sorted((pid, name) for name, pid in host.mount_namespaces.items())
    where = {pid: f"{host.proc}/{pid}/mountinfo" for pid, _ in namespaces}
    if not where:
        where = {0: f"{host.proc}/self/mountinfo"}
    visit = Visit(host, sorted(where), len(where))
    whole = True
    for pid in visit:
        owner = host.process_name(pid) if pid else "this process"
        try:
            whole = sums.add_namespace(owner, host, where[pid]) and whole
        except Unreadable as failure:
            visit.fail(failure)
            continue
        visit.read_ok += 1
    visit.whole = visit.whole and whole
    sums.count_propagated()
    tallies = sums.tallies
    tallies["mounted_network_namespaces"].number = len(sums.kept_networks)
    named = {name: tallies.pop(name) for name in ("mounts", "propagated_mounts")}
    counts.put_visited(visit, "/proc/PID/mountinfo", named, str)
    groups = {name: tallies.pop(name) for name in ("mount_peers", "mount_slaves")}
    counts.put_visited(visit, "mounts", groups, lambda group: f"group {printable(group)}")
    counts.put_visited(visit, "mounts", tallies, text_of)
    networks = {os.fsdecode(root) for root in sums.kept_networks}
    put_network_namespaces(host, counts, networks, visit)
    # A namespace whose processes were not looked at can have any number of mounts.
    counts.miss_earlier(host.namespaces_visit, "/proc/PID/ns", MOUNT_COUNTS)
