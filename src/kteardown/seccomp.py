"""The rules for system calls of programs in the sandbox, as instructions of seccomp(2)."""

import errno
import os
import platform
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

# By machine: its number, then socket(), clone(), unshare(), ptrace(), add_key(), request_key(),
# keyctl(), io_uring_setup(), setns().
_SYSTEM_CALLS = {
    "x86_64": (0xC000003E, 41, 56, 272, 101, 248, 249, 250, 425, 308),
    "aarch64": (0xC00000B7, 198, 220, 97, 117, 217, 218, 219, 425, 268),
}
_CLONE3 = 435
_CLONE_NEWUSER = 0x10000000


@contextmanager
def rules() -> Iterator[int]:
    """Yield a descriptor with rules for system calls: no sockets but of the network and files, no
    keys.

    Other kinds of sockets, such as those to a hypervisor, and keyrings belong to no namespace.
    There are no other user namespaces, in which a program could mount. The rules are instructions
    of seccomp(2): load a word, jump, or return, each with its operand.
    """
    fd = os.memfd_create("seccomp")
    try:
        if system_calls := _SYSTEM_CALLS.get(platform.machine()):
            arch, socket_call, clone, unshare, *denied = system_calls
            refuse = (0x06, 0, 0, 0x00050000 | errno.EPERM)
            allow = (0x06, 0, 0, 0x7FFF0000)
            program = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), refuse, (0x20, 0, 0, 0)]
            for number in denied:
                program += [(0x15, 0, 1, number), refuse]
            # Its flags are in memory, where no rule sees them. The C library uses clone() without
            # it.
            program += [(0x15, 0, 1, _CLONE3), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
            program += [(0x15, 1, 0, clone), (0x15, 0, 3, unshare)]
            program += [(0x20, 0, 0, 16), (0x45, 0, 1, _CLONE_NEWUSER), refuse, (0x20, 0, 0, 0)]
            # x32 has the numbers of x86-64 with this bit.
            program += [
                (0x35, 0, 1, 0x40000000),
                refuse,
                (0x15, 1, 0, socket_call),
                allow,
                (0x20, 0, 0, 16),
            ]
            for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
                program += [(0x15, 0, 1, family), allow]
            os.write(
                fd,
                b"".join(struct.pack("=HBBI", *instruction) for instruction in (*program, refuse)),
            )
        else:
            os.write(fd, struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
