"""What limits the number of objects of a kind, on Debian 12 with its kernel 6.12 and 16 GiB of memory.

The defaults of the kernel, and the largest values that it takes, were read in guests of 2 and of 16 GiB with
6.12.117+deb12-amd64: first as root, then as an ordinary user, then as root of user, network, IPC, mount and
PID namespaces that this user made. What systemd 252 sets is named where it counts.
"""

from dataclasses import dataclass

_INT_MAX = 2_147_483_647
# INT_MAX / sizeof(struct file *): alloc_fdtable() in fs/file.c refuses more, whatever fs.nr_open is.
_DESCRIPTORS = 268_435_455
# max_threads / 2, which grows with the memory: 7,855 with 2 GiB. fork_init() in kernel/fork.c makes it the
# default of RLIMIT_NPROC, of RLIMIT_SIGPENDING and of the number of namespaces of each sort.
_HALF_OF_THREADS = 63_960
# user-.slice.d/10-defaults.conf of systemd: TasksMax=33%, which is a share of all tasks that there can be
# (systemd.resource-control(5)): of kernel.threads-max, which is 127,920.
_TASKS_OF_A_USER = 42_213
# DefaultLimitNOFILE=1024:524288 in systemd-system.conf(5). Without systemd it is 4,096 (INR_OPEN_MAX).
_DESCRIPTORS_OF_A_USER = 524_288
# RLIMIT_MSGQUEUE, 819,200 bytes (MQ_BYTES_MAX): of these a queue for one message of 8 bytes takes 104, and so
# does each message in a queue (mqueue_get_inode() in ipc/mqueue.c).
_QUEUES_OF_A_USER = 7_876


@dataclass(frozen=True)
class Limit:
    """A limit: what sets it, and its value for root and for an ordinary user, which they cannot exceed.

    Root can raise a sysctl, so its value is the largest that the kernel takes. An ordinary user can do that
    too where a sysctl belongs to a network or IPC namespace, which Debian lets any user make
    (kernel.unprivileged_userns_clone is 1).
    """

    set_by: str
    root: int
    ordinary: int


LIMITS = {
    "nofile": Limit("RLIMIT_NOFILE, fs.nr_open", _DESCRIPTORS, _DESCRIPTORS_OF_A_USER),
    # PID_MAX_LIMIT. It is also the default: 50-pid-max.conf of systemd sets it; the kernel's own is 32,768.
    "nproc": Limit("kernel.pid_max, TasksMax of systemd", 4_194_304, _TASKS_OF_A_USER),
    "max_map_count": Limit("vm.max_map_count", _INT_MAX, 65_530),
    # 1% of the memory, and at most 1,048,576: 15,508 with 2 GiB (inotify_user_setup()).
    "inotify_watches": Limit("fs.inotify.max_user_watches", _INT_MAX, 126_257),
    "inotify_instances": Limit("fs.inotify.max_user_instances, fs.nr_open", _DESCRIPTORS, 128),
    "fanotify_groups": Limit("fs.fanotify.max_user_groups, fs.nr_open", _DESCRIPTORS, 128),
    # As for inotify: 16,502 with 2 GiB (fanotify_user_setup()).
    "fanotify_marks": Limit("fs.fanotify.max_user_marks", _INT_MAX, 134_360),
    "aio_max_nr": Limit("fs.aio-max-nr", _INT_MAX, 65_536),
    "mount_max": Limit("fs.mount-max", _INT_MAX, 100_000),
    "keys": Limit("kernel.keys.maxkeys, root_maxkeys", _INT_MAX, 200),
    # The kernel takes larger values of the sysctl; NR_UNIX98_PTY_MAX is the number of minor numbers.
    "pty_max": Limit("kernel.pty.max", 1_048_576, 4_096),
    # The largest of these three is IPCMNI, unless the kernel is booted with ipcmni_extend.
    "msgmni": Limit("kernel.msgmni, IPCMNI", 32_768, 32_768),
    "shmmni": Limit("kernel.shmmni, IPCMNI", 32_768, 32_768),
    "semmni": Limit("kernel.sem, IPCMNI", 32_768, 32_768),
    "msgmnb": Limit("kernel.msgmnb", _INT_MAX, _INT_MAX),
    "mqueue_queues": Limit("fs.mqueue.queues_max, RLIMIT_MSGQUEUE", _INT_MAX, _QUEUES_OF_A_USER),
    "mqueue_messages": Limit("HARD_MSGMAX, RLIMIT_MSGQUEUE", 65_536, _QUEUES_OF_A_USER),
    "inotify_events": Limit("fs.inotify.max_queued_events", _INT_MAX, 16_384),
    "fanotify_events": Limit("fs.fanotify.max_queued_events", _INT_MAX, 16_384),
    "somaxconn": Limit("net.core.somaxconn", _INT_MAX, _INT_MAX),
    "max_dgram_qlen": Limit("net.unix.max_dgram_qlen", _INT_MAX, _INT_MAX),
    "sigpending": Limit("RLIMIT_SIGPENDING", _INT_MAX, _HALF_OF_THREADS),
    "netns": Limit("user.max_net_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "userns": Limit("user.max_user_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "ipcns": Limit("user.max_ipc_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "mntns": Limit("user.max_mnt_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "pidns": Limit("user.max_pid_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "utsns": Limit("user.max_uts_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "cgroupns": Limit("user.max_cgroup_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "timens": Limit("user.max_time_namespaces", _INT_MAX, _HALF_OF_THREADS),
    "igmp_max_memberships": Limit("net.ipv4.igmp_max_memberships", _INT_MAX, _INT_MAX),
    "tcp_max_tw_buckets": Limit("net.ipv4.tcp_max_tw_buckets", _INT_MAX, _INT_MAX),
    # In bytes, of which an IPv6 membership takes 56 (struct ipv6_mc_socklist). The default is 131,072. In
    # 6.12 it belongs to a network namespace, in 6.1 it does not.
    "optmem_max": Limit("net.core.optmem_max", _INT_MAX // 56, _INT_MAX // 56),
    # The default of cgroup.max.descendants is "max", INT_MAX.
    "cgroups": Limit("cgroup.max.descendants", _INT_MAX, _INT_MAX),
    # With the memory controller each has an ID (mm/memcontrol.c).
    "memory_cgroups": Limit("MEM_CGROUP_ID_MAX", 65_535, 65_535),
}
_MEMORY_KB = 16 << 20
RAISED = frozenset(
    LIMITS[name].set_by
    for name in (
        *("msgmni", "shmmni", "semmni", "mqueue_queues", "inotify_events", "fanotify_events"),
        *("igmp_max_memberships", "optmem_max"),
    )
)
"""What the kinds with these limits raise themselves, mostly in a namespace of their own."""
PREDICTED_AT_MOST = 1_000_000
"""Predictions go no further than this number of objects, whatever the limit allows."""


def largest(limit: str, most: int, user: str, kb_each: float | None = None) -> tuple[int, str] | None:
    """Return the largest number of objects, and what limits it; None if nothing that is known does.

    ``kb_each``: the memory that one object takes, in kB.
    """
    known = LIMITS.get(limit)
    if limit == "memory" and kb_each:
        known = Limit("16 GiB of memory", *[int(_MEMORY_KB / kb_each)] * 2)
    value = None if known is None else known.ordinary if user == "ordinary" else known.root
    if most and (value is None or most < value):
        return most, "the kind itself"
    return None if known is None or value is None else (min(value, PREDICTED_AT_MOST), known.set_by)
