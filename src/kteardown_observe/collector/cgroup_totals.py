"""How many cgroups there are and how many are dying, from files of the top folders alone.

Files: SYS/fs/cgroup and its folders, cgroup.stat of the top folder of version 2, /proc/cgroups.

Locks: none but RCU and a reference that keeps the cgroup (kernel/cgroup/cgroup.c,
cgroup_stat_show; kernel/cgroup/cgroup-v1.c, proc_cgroupstats_show; fs/kernfs/file.c,
kernfs_seq_start). Opening a file by its name takes kernfs_rwsem of the hierarchy for reading,
which making and removing a cgroup takes for writing (fs/kernfs/dir.c, kernfs_iop_lookup,
kernfs_remove). Linux 6.1, 6.12 and 7.3.
"""

from typing import Dict, List, NamedTuple, Optional

from kteardown_observe.collector.files import Host, Malformed, Unreadable, number_in, printable
from kteardown_observe.collector.limits import MEMORY_CGROUP_IDS, end_limit, put_limit
from kteardown_observe.collector.tally import CountTable

CGROUP_COUNTS = ("cgroups", "dying_cgroups", "memory_cgroup_ids")


class Hierarchy(NamedTuple):
    """A mounted hierarchy of cgroups. Version 2 has all controllers that version 1 lacks."""

    path: str
    version: int
    controllers: List[str]


class Controller(NamedTuple):
    hierarchy: int
    cgroups: int


def parse_cgroup_stat(text: bytes) -> Dict[str, int]:
    """Read cgroup.stat, or another file of names and numbers. Raises Malformed."""
    values = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 2:
            raise Malformed(printable(line))
        values[printable(fields[0])] = number_in(fields[1])
    return values


def parse_controllers(text: bytes) -> Dict[str, Controller]:
    """Read /proc/cgroups. Raises Malformed."""
    controllers = {}
    for line in text.splitlines():
        if line.startswith(b"#"):
            continue
        fields = line.split()
        if len(fields) < 4:
            raise Malformed(printable(line))
        name = printable(fields[0])
        controllers[name] = Controller(number_in(fields[1]), number_in(fields[2]))
    return controllers


def find_hierarchies(host: Host) -> List[Hierarchy]:
    """Return the hierarchies below SYS/fs/cgroup; raises Unreadable."""
    top = f"{host.sys}/fs/cgroup"
    names = [entry for entry in host.names(top, 10000)]
    if any(entry.name == "cgroup.controllers" for entry in names):
        return [Hierarchy(top, 2, [])]
    hierarchies = []
    for entry in sorted(names, key=lambda entry: entry.name):
        # Other names of a hierarchy, such as cpu for cpu,cpuacct, are links.
        if not entry.is_dir(follow_symlinks=False):
            continue
        path = f"{top}/{entry.name}"
        if has_file(host, f"{path}/cgroup.controllers"):
            hierarchies.append(Hierarchy(path, 2, []))
        elif has_file(host, f"{path}/cgroup.procs"):
            hierarchies.append(Hierarchy(path, 1, entry.name.split(",")))
    return hierarchies


def has_file(host: Host, path: str) -> bool:
    """Return whether a file can be opened."""
    try:
        host.read(path, 1)
    except Unreadable:
        return False
    return True


def versions_of(hierarchies: List[Hierarchy]) -> str:
    """Return v1, v2, both or none."""
    versions = sorted({hierarchy.version for hierarchy in hierarchies})
    return " and ".join(f"v{version}" for version in versions) or "none"


def is_top(host: Host, hierarchy: Hierarchy) -> bool:
    """Return whether a folder has the whole hierarchy; a container often sees a part of it."""
    if hierarchy.version == 1:
        return has_file(host, f"{hierarchy.path}/release_agent")
    return not has_file(host, f"{hierarchy.path}/cgroup.events")


def unified(hierarchies: List[Hierarchy]) -> Optional[Hierarchy]:
    """Return the hierarchy of version 2."""
    return next((hierarchy for hierarchy in hierarchies if hierarchy.version == 2), None)


def read_cgroup_totals(host: Host, counts: CountTable) -> None:
    """Count cgroups and dying ones; raises Unreadable or Malformed."""
    hierarchies = find_hierarchies(host)
    controllers: Dict[str, Controller] = {}
    try:
        controllers = parse_controllers(host.read(f"{host.proc}/cgroups"))
    except (Unreadable, Malformed) as failure:
        counts.miss(["memory_cgroups"], getattr(failure, "reason", "error"), str(failure))
    memory = controllers.get("memory")
    if memory is not None and memory.hierarchy:
        how = "num_cgroups of /proc/cgroups, with dying ones"
        counts.put("memory_cgroups", memory.cgroups, how=how)
    top = unified(hierarchies)
    if top is None:
        names = ["cgroups", "dying_cgroups"]
        counts.miss(names, "not there", "no hierarchy of version 2 is mounted")
        return
    _put_unified(host, counts, top, memory)


def _put_unified(
    host: Host, counts: CountTable, top: Hierarchy, memory: Optional[Controller]
) -> None:
    values = parse_cgroup_stat(host.read(f"{top.path}/cgroup.stat"))
    whole = is_top(host, top)
    how = None if whole else "below the cgroup of this container"
    cgroups = values.get("nr_descendants", 0) + 1
    counts.put("cgroups", cgroups, whole, how=how)
    counts.put("dying_cgroups", values.get("nr_dying_descendants", 0), whole, how=how)
    if memory is not None and memory.hierarchy:
        return
    # Before 6.12, those without the controller cannot be left out.
    limited = values.get("nr_subsys_memory", cgroups if memory is not None else 0)
    put_limit(host, "memory_cgroup_ids", limited, MEMORY_CGROUP_IDS)
    end_limit(host, "memory_cgroup_ids", None, whole)
    if "nr_subsys_memory" in values:
        counts.put("memory_cgroups", values["nr_subsys_memory"], whole, how=how)
        dying = values.get("nr_dying_subsys_memory", 0)
        counts.put("dying_memory_cgroups", dying, whole, how=how)
    elif memory is not None:
        how = "dying cgroups of any kind: this kernel does not count those of memory alone"
        counts.put("dying_memory_cgroups", values.get("nr_dying_descendants", 0), whole, how=how)
        how = "num_cgroups of /proc/cgroups: all cgroups of version 2, with dying ones"
        counts.put("memory_cgroups", memory.cgroups, how=how)
