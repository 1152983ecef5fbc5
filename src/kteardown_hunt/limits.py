"""What limits the number of objects of a kind, on Debian 12 with its kernel 6.12 and 16 GiB of
memory.

The defaults of the kernel, and the largest values that it takes, were read in guests of 2 and of 16
GiB with 6.12.117+deb12-amd64: first as root, then as an ordinary user, then as root of user,
network, IPC, mount and PID namespaces that this user made. What systemd 252 sets is named where it
counts.
"""

from dataclasses import dataclass
from pathlib import Path

from kteardown.paths import shipped_table


@dataclass(frozen=True)
class Limit:
    """A limit: what sets it, and its value for root and for an ordinary user, which they cannot
    exceed.

    Root can raise a sysctl, so its value is the largest that the kernel takes. An ordinary user can
    do that too where a sysctl belongs to a network or IPC namespace, which Debian lets any user
    make (kernel.unprivileged_userns_clone is 1).
    """

    set_by: str
    root: int
    ordinary: int


LIMITS = {
    name: Limit(**fields) for name, fields in shipped_table("limits", Path(__file__).parent).items()
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


def largest(
    limit: str, most: int, user: str, kb_each: float | None = None
) -> tuple[int, str] | None:
    """Return the largest number of objects, and what limits it; None if nothing that is known does.

    ``kb_each``: the memory that one object takes, in kB.
    """
    allowed = LIMITS.get(limit)
    if limit == "memory" and kb_each:
        allowed = Limit("16 GiB of memory", *[int(_MEMORY_KB / kb_each)] * 2)
    value = None if allowed is None else allowed.ordinary if user == "ordinary" else allowed.root
    if most and (value is None or most < value):
        return most, "the kind itself"
    return (
        None
        if allowed is None or value is None
        else (min(value, PREDICTED_AT_MOST), allowed.set_by)
    )
