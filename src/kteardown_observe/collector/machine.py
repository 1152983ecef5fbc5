"""What machine this is: CPUs, memory, configuration and limits. All files are short.

Files: below /proc: meminfo, uptime, config.gz, self/ns, and the sysctls that are listed here;
/boot/config-RELEASE if there is no config.gz; SYS/devices/system/cpu and node; SYS/fs/cgroup.

Locks: none that others wait for. /proc/config.gz, the sysctls and the lists of CPUs are copied
without a lock, or under one of their own for a moment.
"""

import os
import re
import zlib
from typing import Any, Dict, List, Optional

from kteardown_observe.collector.cgroup_totals import find_hierarchies, is_top, versions_of
from kteardown_observe.collector.files import Host, Malformed, Unreadable, number_in, printable
from kteardown_observe.collector.tally import CountTable

CONFIG_MOST = 1 << 20
CONFIG_LINE = re.compile(rb"(?:# )?(CONFIG_[A-Z0-9_]+)(?:=([^\n]{0,100})| is not set)$", re.M)
CONFIG_NAMES = """
AIO AUDIT BLK_CGROUP BPF_SYSCALL CFS_BANDWIDTH CGROUPS CGROUP_BPF CGROUP_FREEZER CGROUP_HUGETLB
CGROUP_PIDS CGROUP_RDMA CGROUP_SCHED CHECKPOINT_RESTORE CPUSETS DEBUG_LIST DEBUG_OBJECTS EPOLL
FAIR_GROUP_SCHED FANOTIFY FREEZER FUTEX HARDENED_USERCOPY HIBERNATION HUGETLB_PAGE HZ
INIT_ON_ALLOC_DEFAULT_ON INIT_ON_FREE_DEFAULT_ON INOTIFY_USER IO_URING IPV6 KASAN KEYS KPROBES
LOCKDEP LRU_GEN LRU_GEN_ENABLED MEMCG MEMCG_KMEM MEMCG_V1 NETFILTER NET_NS NF_CONNTRACK NF_TABLES
NODES_SHIFT NR_CPUS NUMA OVERLAY_FS PERF_EVENTS PER_VMA_LOCK PID_NS POSIX_MQUEUE POSIX_TIMERS
PREEMPT PREEMPT_DYNAMIC PREEMPT_LAZY PREEMPT_NONE PREEMPT_RT PREEMPT_VOLUNTARY PROVE_LOCKING
RCU_LAZY RCU_NOCB_CPU RT_GROUP_SCHED SECURITY_APPARMOR SECURITY_SELINUX SLAB SLUB SLUB_DEBUG_ON
SUSPEND SWAP SYSVIPC TIME_NS TRANSPARENT_HUGEPAGE UPROBES USERFAULTFD USER_NS UTS_NS VLAN_8021Q
VMAP_STACK ZRAM ZSWAP
"""
"""What decides how costs grow, and which objects exist at all."""
SYSCTLS = """
fs.aio-max-nr fs.epoll.max_user_watches fs.fanotify.max_user_groups fs.fanotify.max_user_marks
fs.file-max fs.inotify.max_user_instances fs.inotify.max_user_watches fs.mount-max fs.nr_open
fs.pipe-user-pages-soft kernel.keys.maxkeys kernel.keys.root_maxkeys kernel.msgmni kernel.pid_max
kernel.pty.max kernel.sem kernel.shmmni kernel.threads-max kernel.unprivileged_userns_clone
net.core.netdev_unregister_timeout_secs net.ipv4.neigh.default.gc_thresh3
net.ipv4.tcp_max_orphans net.ipv4.tcp_max_tw_buckets net.ipv6.neigh.default.gc_thresh3
net.ipv6.route.max_size user.max_cgroup_namespaces user.max_ipc_namespaces user.max_mnt_namespaces
user.max_net_namespaces user.max_pid_namespaces user.max_time_namespaces user.max_user_namespaces
user.max_uts_namespaces vm.max_map_count vm.nr_hugepages vm.overcommit_memory vm.swappiness
vm.vfs_cache_pressure
"""
INITIAL_NAMESPACES = {
    "cgroup": "cgroup:[4026531835]",
    "pid": "pid:[4026531836]",
    "user": "user:[4026531837]",
}
"""The numbers of the first namespaces are fixed (PROC_*_INIT_INO of include/linux/proc_ns.h)."""


def parse_cpu_list(text: bytes) -> int:
    """Return how many CPUs or nodes a list such as 0-3,8 has. Raises Malformed."""
    total = 0
    for part in text.strip().split(b",") if text.strip() else []:
        first, _, last = part.partition(b"-")
        total += max(0, number_in(last or first) - number_in(first) + 1)
    return total


def parse_config(text: bytes) -> Dict[str, str]:
    """Return the options of CONFIG_NAMES that a configuration of a kernel has."""
    names = {f"CONFIG_{name}" for name in CONFIG_NAMES.split()}
    values = {}
    for match in CONFIG_LINE.finditer(text):
        name = match.group(1).decode("ascii")
        if name in names:
            values[name] = printable(match.group(2) or b"n").strip('"')
    return values


def read_machine(host: Host, counts: CountTable) -> Dict[str, Any]:
    """Return what the output has under ``machine``; what cannot be read is None."""
    hierarchies = []
    try:
        hierarchies = find_hierarchies(host)
    except Unreadable as failure:
        counts.missed(["cgroups"], failure)
    release = _text(host, f"{host.proc}/sys/kernel/osrelease") or os.uname().release
    cpus = f"{host.sys}/devices/system/cpu"
    return {
        "release": release,
        "arch": os.uname().machine,
        "possible_cpus": _cpus(host, f"{cpus}/possible"),
        "online_cpus": _cpus(host, f"{cpus}/online"),
        "numa_nodes": _cpus(host, f"{host.sys}/devices/system/node/online"),
        "memory_kb": _memory_kb(host),
        "uptime_s": _uptime_s(host),
        "cgroups": versions_of(hierarchies),
        "cgroups_from_the_top": all(is_top(host, item) for item in hierarchies),
        "container": is_container(host),
        "config": read_config(host, release),
        "sysctls": read_sysctls(host),
    }


def _text(host: Host, path: str) -> Optional[str]:
    try:
        return printable(host.read(path, 4096).strip().replace(b"\t", b" "))
    except Unreadable:
        return None


def _cpus(host: Host, path: str) -> Optional[int]:
    try:
        return parse_cpu_list(host.read(path, 4096)) or None
    except (Unreadable, Malformed):
        return None


def _memory_kb(host: Host) -> Optional[int]:
    try:
        return host.number(f"{host.proc}/meminfo", 1)
    except (Unreadable, Malformed):
        return None


def _uptime_s(host: Host) -> Optional[float]:
    text = _text(host, f"{host.proc}/uptime") or ""
    match = re.match(r"[0-9]{1,12}\.[0-9]{1,3}", text)
    return float(match.group()) if match else None


def is_container(host: Host) -> Optional[bool]:
    """Return whether a namespace of this process is not the first one; None if none is readable."""
    links = {}
    for kind in INITIAL_NAMESPACES:
        try:
            links[kind] = host.link(f"{host.proc}/self/ns/{kind}")
        except Unreadable:
            continue
    if not links:
        return None
    return any(link != INITIAL_NAMESPACES[kind] for kind, link in links.items())


def read_config(host: Host, release: str) -> Optional[Dict[str, str]]:
    """Return the configuration of the kernel, of /proc/config.gz or a file of the distribution."""
    for path in _config_paths(host, release):
        try:
            text = host.read(path, CONFIG_MOST)
            if path.endswith(".gz"):
                text = zlib.decompressobj(31).decompress(text, CONFIG_MOST)
        except (Unreadable, zlib.error):
            continue
        return parse_config(text)
    return None


def _config_paths(host: Host, release: str) -> List[str]:
    paths = [f"{host.proc}/config.gz"]
    # With another /proc, /boot is that of this container.
    if host.proc == "/proc" and re.match(r"[A-Za-z0-9][A-Za-z0-9._+~-]*\Z", release):
        paths += [f"/boot/config-{release}", f"/lib/modules/{release}/config"]
    return paths


def read_sysctls(host: Host) -> Dict[str, str]:
    """Return the limits that can be read, by name."""
    values = {}
    for name in SYSCTLS.split():
        # In the names of files, a slash is where the name has a dot.
        text = _text(host, f"{host.proc}/sys/{name.replace('.', '/')}")
        if text is not None:
            values[name] = text
    return values
