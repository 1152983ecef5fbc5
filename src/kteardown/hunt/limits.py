"""What limits the number of objects of a kind, on a system as Debian sets it up.

The values are defaults: of the kernel (named by its sysctl or macro), of systemd 252 (``DefaultLimitNOFILE``,
``kernel.pid_max``), for a computer with 16 GiB of memory where they depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """A limit: what sets it, and its value for root and for an ordinary user, which they cannot exceed.

    Root can raise a sysctl, so its value is the one that the kernel allows at most.
    """

    set_by: str
    root: int
    ordinary: int


LIMITS = {
    "nofile": Limit("RLIMIT_NOFILE, fs.nr_open", 1_048_576, 524_288),
    "nproc": Limit("RLIMIT_NPROC, kernel.pid_max", 4_194_304, 63_000),
    "pid_max": Limit("kernel.pid_max", 4_194_304, 4_194_304),
    "max_map_count": Limit("vm.max_map_count", 2_147_483_647, 65_530),
    "inotify_watches": Limit("fs.inotify.max_user_watches", 2_147_483_647, 124_000),
    "inotify_instances": Limit("fs.inotify.max_user_instances", 1_048_576, 128),
    "fanotify_groups": Limit("fs.fanotify.max_user_groups", 1_048_576, 128),
    "fanotify_marks": Limit("fs.fanotify.max_user_marks", 2_147_483_647, 124_000),
    "aio_max_nr": Limit("fs.aio-max-nr", 2_147_483_647, 65_536),
    "mount_max": Limit("fs.mount-max", 2_147_483_647, 100_000),
    "keys": Limit("kernel.keys.maxkeys, root_maxkeys", 1_000_000, 200),
    "pty_max": Limit("kernel.pty.max", 1_048_576, 4_096),
    # IPCMNI is 32,768, unless the kernel is booted with ipcmni_extend.
    "msgmni": Limit("kernel.msgmni, IPCMNI", 32_768, 32_000),
    "shmmni": Limit("kernel.shmmni, IPCMNI", 32_768, 4_096),
    "semmni": Limit("kernel.sem, IPCMNI", 32_768, 32_000),
    "msgmnb": Limit("kernel.msgmnb", 2_147_483_647, 16_384),
    "mqueue_queues": Limit("fs.mqueue.queues_max", 2_147_483_647, 256),
    "mqueue_messages": Limit("fs.mqueue.msg_max, HARD_MSGMAX", 65_536, 10),
    "inotify_events": Limit("fs.inotify.max_queued_events", 2_147_483_647, 16_384),
    "fanotify_events": Limit("fs.fanotify.max_queued_events", 2_147_483_647, 16_384),
    "somaxconn": Limit("net.core.somaxconn", 2_147_483_647, 4_096),
    "max_dgram_qlen": Limit("net.unix.max_dgram_qlen", 2_147_483_647, 10),
    "sigpending": Limit("RLIMIT_SIGPENDING", 2_147_483_647, 63_000),
    "netns": Limit("user.max_net_namespaces", 2_147_483_647, 63_000),
    "userns": Limit("user.max_user_namespaces", 2_147_483_647, 63_000),
    "ipcns": Limit("user.max_ipc_namespaces", 2_147_483_647, 63_000),
    "mntns": Limit("user.max_mnt_namespaces", 2_147_483_647, 63_000),
    "pidns": Limit("user.max_pid_namespaces", 2_147_483_647, 63_000),
    "utsns": Limit("user.max_uts_namespaces", 2_147_483_647, 63_000),
    "cgroupns": Limit("user.max_cgroup_namespaces", 2_147_483_647, 63_000),
    "timens": Limit("user.max_time_namespaces", 2_147_483_647, 63_000),
    # Root of a user namespace can raise these two in a network namespace of its own.
    "igmp_max_memberships": Limit("net.ipv4.igmp_max_memberships", 2_147_483_647, 2_147_483_647),
    "tcp_max_tw_buckets": Limit("net.ipv4.tcp_max_tw_buckets", 2_147_483_647, 2_147_483_647),
    # 128 KiB, of which an IPv6 membership takes 56 bytes.
    "optmem_max": Limit("net.core.optmem_max", 2_147_483_647, 2_340),
    "cgroups": Limit("cgroup.max.descendants", 2_147_483_647, 2_147_483_647),
}
IN_BYTES = frozenset(("memory", "memlock", "swap", "wmem"))
"""Limits that are a size and say nothing about the number of objects: nothing is predicted for them."""
PREDICTED_AT_MOST = 1_000_000
"""Predictions go no further than this number of objects, whatever the limit allows."""


def largest(limit: str, most: int, user: str) -> tuple[int, str] | None:
    """Return the largest number of objects, and what limits it; None if nothing that is known does."""
    known = LIMITS.get(limit)
    value = None if known is None else known.ordinary if user == "ordinary" else known.root
    if most and (value is None or most < value):
        return most, "the kind itself"
    if known is None or value is None:
        return None
    return (value, known.set_by) if value <= PREDICTED_AT_MOST else (PREDICTED_AT_MOST, known.set_by)
