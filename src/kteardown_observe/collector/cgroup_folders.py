"""What only the folder of each cgroup tells: quotas, throttling, frozen cgroups.

Files: the folders of cgroups; cpu.max and cpu.stat (version 1: cpu.cfs_quota_us and cpu.stat)
where there is a quota; pids.current, or else cgroup.threads or tasks; cgroup.events or
freezer.state.

Locks: kernfs_rwsem of the hierarchy for reading, for each folder that is listed and each name
that is looked up (fs/kernfs/dir.c, kernfs_fop_readdir, kernfs_iop_lookup); making and removing a
cgroup takes it for writing. cpu.max, cgroup.events and pids.current take no lock. cpu.stat of
version 2 adds up the statistics of all cgroups below under cgroup_rstat_lock with interrupts off
(kernel/cgroup/rstat.c, cgroup_base_stat_cputime_show; in 7.3 anew for each CPU), so it is read
only where there is a quota. freezer.state takes freezer_mutex (kernel/cgroup/legacy_freezer.c,
freezer_read). cgroup.threads and tasks take css_set_lock for each task (kernel/cgroup/cgroup.c,
css_task_iter_next), and are read only where pids.current is not there. Linux 6.1, 6.12 and 7.3.
"""

import os
from typing import Dict, List, Optional, Set, Tuple

from kteardown_observe.collector.cgroup_totals import (
    Hierarchy,
    find_hierarchies,
    is_top,
    parse_cgroup_stat,
    parse_controllers,
)
from kteardown_observe.collector.files import (
    Host,
    Malformed,
    Unreadable,
    Visit,
    number_in,
    printable,
    spread,
)
from kteardown_observe.collector.limits import MEMORY_CGROUP_IDS, end_limit, put_limit
from kteardown_observe.collector.tally import CountTable, Tally

FOLDERS_MOST = 200000
TASKS_MOST = 1 << 20
QUOTAS_MOST = 1000
QUOTA_COUNTS = ("cgroups_with_quota", "quota_tasks", "throttled_periods")
FOLDER_COUNTS = (*QUOTA_COUNTS, "frozen_cgroups", "pids_max")


def has_quota(text: bytes) -> bool:
    """Return whether cpu.max or cpu.cfs_quota_us sets a limit. Raises Malformed."""
    fields = text.split()
    if not fields:
        raise Malformed("an empty quota")
    return fields[0] != b"max" and number_in(fields[0]) > 0


def is_frozen(text: bytes) -> bool:
    """Return whether cgroup.events or freezer.state tells of a frozen cgroup. Raises Malformed."""
    if text.strip() in (b"FROZEN", b"FREEZING", b"THAWED"):
        return text.strip() != b"THAWED"
    return parse_cgroup_stat(text).get("frozen", 0) == 1


def list_folders(host: Host, top: str) -> Tuple[List[str], bool]:
    """Return the folders of a hierarchy and whether these are all; raises Unreadable for the top.

    A folder with two links has no folders in it, and is not listed: a cgroup has many files.
    """
    folders = [top]
    unlisted = [top]
    while unlisted:
        path = unlisted.pop()
        try:
            for entry in host.names(path):
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if len(folders) >= FOLDERS_MOST or host.spent():
                    return folders, False
                folders.append(entry.path)
                if _has_folders(entry):
                    unlisted.append(entry.path)
        except Unreadable:
            # A cgroup can be removed at any time.
            if path == top:
                raise
    return folders, not host.spent()


def _has_folders(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_nlink != 2
    except OSError:
        return False


class Folders:
    """The folders of the hierarchies that matter here; each hierarchy is listed once."""

    def __init__(self, host: Host, hierarchies: List[Hierarchy]) -> None:
        self.host = host
        self.hierarchies = hierarchies
        self.listed: Dict[str, Tuple[List[str], bool]] = {}

    def with_controller(self, name: str) -> Optional[Hierarchy]:
        """Return the hierarchy of version 1 with a controller, or else the one of version 2."""
        for hierarchy in self.hierarchies:
            if name in hierarchy.controllers:
                return hierarchy
        return next((item for item in self.hierarchies if item.version == 2), None)

    def of(self, hierarchy: Hierarchy) -> Tuple[List[str], bool]:
        """Return the folders of a hierarchy, and whether these are all."""
        if hierarchy.path not in self.listed:
            end_s = self.host.narrow(0.5)
            self.listed[hierarchy.path] = list_folders(self.host, hierarchy.path)
            self.host.end_s = end_s
        return self.listed[hierarchy.path]

    def visit(self, hierarchy: Hierarchy) -> Tuple[Visit, List[str]]:
        """Return a visit of the folders, spread over all of them."""
        paths, whole = self.of(hierarchy)
        return Visit(self.host, spread(len(paths)), len(paths), whole), paths


def read_cgroup_folders(host: Host, counts: CountTable) -> None:
    """Count what the folders of cgroups tell; raises Unreadable."""
    folders = Folders(host, find_hierarchies(host))
    _count_v1(folders, counts)
    parts = (
        ("pids", _find_fullest, 0.4, ("pids_max",)),
        ("cpu", _count_quotas, 0.6, QUOTA_COUNTS),
        ("freezer", _count_frozen, 1.0, ("frozen_cgroups",)),
    )
    for name, count, share, names in parts:
        hierarchy = folders.with_controller(name)
        if hierarchy is None:
            counts.miss(names, "not there", f"no cgroup controller {name} is mounted")
        else:
            end_s = host.narrow(share)
            count(folders, hierarchy, counts)
            host.end_s = end_s


def _name_of(hierarchy: Hierarchy, path: str) -> str:
    return printable(os.fsencode(path[len(hierarchy.path) :] or "/"))


def _count_v1(folders: Folders, counts: CountTable) -> None:
    """Count the folders of version 1, and how many memory cgroups have no folder any more."""
    memory = folders.with_controller("memory")
    if memory is not None and memory.version == 1:
        paths, whole = folders.of(memory)
        names = ["dying_memory_cgroups"]
        try:
            listed = parse_controllers(folders.host.read(f"{folders.host.proc}/cgroups"))
        except (Unreadable, Malformed) as failure:
            counts.miss(names, getattr(failure, "reason", "error"), str(failure))
            listed = {}
        is_all = is_top(folders.host, memory)
        put_limit(folders.host, "memory_cgroup_ids", len(paths), MEMORY_CGROUP_IDS)
        end_limit(folders.host, "memory_cgroup_ids", None, whole and is_all)
        if not is_all:
            counts.miss(names, "not there", "only a part of the memory cgroups is mounted here")
        elif not whole:
            counts.miss(names, "time", f"{len(paths)} folders of memory cgroups listed")
        elif "memory" in listed:
            how = "num_cgroups of /proc/cgroups minus the folders that exist"
            counts.put(names[0], max(0, listed["memory"].cgroups - len(paths)), how=how)
    first = [item for item in folders.hierarchies if item.version == 1]
    if not first:
        return
    listed_folders = [folders.of(item) for item in folders.hierarchies]
    number = sum(len(paths) for paths, _ in listed_folders)
    whole = all(whole for _, whole in listed_folders)
    counts.put("cgroups", number, whole, how="folders of all hierarchies")


def _find_fullest(folders: Folders, hierarchy: Hierarchy, counts: CountTable) -> None:
    """Find the cgroup that has most of the tasks that it may have, zombies among them."""
    host = folders.host
    visit, paths = folders.visit(hierarchy)
    for index in visit:
        text = visit.read(f"{paths[index]}/pids.max")
        if text is None or text.strip() == b"max":
            continue
        try:
            number = host.number(f"{paths[index]}/pids.current")
            bound = number_in(text.strip())
        except (Unreadable, Malformed):
            continue
        put_limit(host, "pids_max", number, bound, _name_of(hierarchy, paths[index]))
    # The top cgroup has no such file, nor has one whose parent does not pass the controller on.
    visit.failed.pop("not there", None)
    end_limit(host, "pids_max", visit)
    counts.miss_visited(visit, "pids.max", ["pids_max"])


def _count_quotas(folders: Folders, hierarchy: Hierarchy, counts: CountTable) -> None:
    """Count cgroups with a limit of CPU time, their tasks and how often they were throttled."""
    host = folders.host
    tallies = {name: Tally() for name in QUOTA_COUNTS}
    with_quota = []
    file = "cpu.max" if hierarchy.version == 2 else "cpu.cfs_quota_us"
    visit, paths = folders.visit(hierarchy)
    for index in visit:
        text = visit.read(f"{paths[index]}/{file}")
        try:
            if text is None or not has_quota(text):
                continue
        except Malformed:
            continue
        with_quota.append(paths[index])
        tallies["cgroups_with_quota"].number += 1
        tallies["throttled_periods"].add_owner(paths[index], _throttled(host, paths[index]))
    host.quota_folders = with_quota[:QUOTAS_MOST]
    pids = folders.with_controller("pids")
    quotas = set(with_quota)
    for path in with_quota:
        tasks = _tasks_below(host, path, hierarchy, pids)
        own = tallies["quota_tasks"].number
        tallies["quota_tasks"].add_owner(path, tasks)
        if _is_below(path, hierarchy.path, quotas):
            tallies["quota_tasks"].number = own
    # A cgroup without the file, such as the top one, has no such setting.
    visit.failed.pop("not there", None)
    counts.put_visited(visit, file, tallies, lambda path: _name_of(hierarchy, path))


def _throttled(host: Host, path: str) -> int:
    try:
        return parse_cgroup_stat(host.read(f"{path}/cpu.stat")).get("nr_throttled", 0)
    except (Unreadable, Malformed):
        return 0


def _tasks_below(host: Host, path: str, hierarchy: Hierarchy, pids: Optional[Hierarchy]) -> int:
    """Return how many tasks a cgroup and those below it have, or at least the cgroup itself."""
    if pids is not None:
        below = path[len(hierarchy.path) :]
        try:
            return host.number(f"{pids.path}{below}/pids.current")
        except (Unreadable, Malformed):
            pass
    file = "cgroup.threads" if hierarchy.version == 2 else "tasks"
    try:
        return host.read(f"{path}/{file}", TASKS_MOST).count(b"\n")
    except Unreadable:
        return 0


def _is_below(path: str, top: str, others: Set[str]) -> bool:
    """Return whether a folder above a path is among others: its tasks were counted there."""
    while len(path) > len(top):
        path = path[: path.rfind("/")]
        if path in others:
            return True
    return False


def _count_frozen(folders: Folders, hierarchy: Hierarchy, counts: CountTable) -> None:
    tallies = {"frozen_cgroups": Tally()}
    file = "cgroup.events" if hierarchy.version == 2 else "freezer.state"
    visit, paths = folders.visit(hierarchy)
    for index in visit:
        text = visit.read(f"{paths[index]}/{file}")
        try:
            if text is not None and is_frozen(text):
                tallies["frozen_cgroups"].add_owner(paths[index], 1)
        except Malformed:
            continue
    # A cgroup without the file, such as the top one, has no such setting.
    visit.failed.pop("not there", None)
    counts.put_visited(visit, file, tallies, lambda path: _name_of(hierarchy, path))
