"""System calls that Python lacks, through the C library."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = 4096

CLONE_VM = 0x100
CLONE_FS = 0x200
CLONE_FILES = 0x400
CLONE_SIGHAND = 0x800
CLONE_VFORK = 0x4000
CLONE_THREAD = 0x10000
CLONE_NEWNS = 0x20000
CLONE_SYSVSEM = 0x40000
CLONE_NEWIPC = 0x8000000
CLONE_NEWNET = 0x40000000
A_THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20

_ADD_KEY, _KEYCTL = 248, 250
_JOIN_SESSION, _UNLINK, _SESSION_KEYRING = 1, 9, -3
_SIGEV_NONE = 1
_ONE_HOUR = struct.pack("qqqq", 0, 0, 3600, 0)
_ADVICE_PAGE_OUT = 21


def must(result: int, what: str) -> int:
    """Return the result of a call of the C library. Raises OSError if it is negative."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)
    return result


def system_call(number: int, *words: object) -> int:
    return must(LIBC.syscall(ctypes.c_long(number), *words), f"syscall {number}")


def word(value: int) -> ctypes.c_long:
    return ctypes.c_long(value)


class Tasks:
    """Processes and threads that share the memory of this process: each takes few kB.

    ``count`` is how many can be alive at the same time.
    """

    def __init__(self, count: int) -> None:
        # A task touches one page: the C library puts the function and its argument on its stack.
        self._stacks = mmap.mmap(-1, PAGE * (count + 1))
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._stacks))
        self._used = 0
        LIBC.clone.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_void_p,
        ]

    def zombie(self) -> int:
        """Make a child that has ended and is not waited for; return its process number."""
        pid = self._clone("_exit", CLONE_VM | CLONE_VFORK | signal.SIGCHLD, self._at + PAGE)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return pid

    def sleeper(self, flags: int = CLONE_VM | signal.SIGCHLD) -> int:
        """Make a process, or with ``A_THREAD`` a thread, that sleeps until it is killed."""
        self._used += 1
        return self._clone("pause", flags, self._at + PAGE * (self._used + 1))

    def _clone(self, function: str, flags: int, stack: int) -> int:
        address = ctypes.cast(getattr(LIBC, function), ctypes.c_void_p)
        return must(LIBC.clone(address, ctypes.c_void_p(stack), flags, None), "clone")


def unshare(flags: int) -> None:
    must(LIBC.unshare(flags), "unshare")


def set_namespace(fd: int) -> None:
    must(LIBC.setns(fd, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    must(
        LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None),
        f"mount {target}",
    )


def private_mounts() -> None:
    """Move this process into a mount namespace of its own, from which nothing propagates."""
    unshare(CLONE_NEWNS)
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def timer_fd() -> int:
    """Return a timerfd that expires in an hour."""
    fd = must(LIBC.timerfd_create(1, os.O_CLOEXEC), "timerfd_create")
    must(LIBC.timerfd_settime(fd, 0, _ONE_HOUR, None), "timerfd_settime")
    return fd


def posix_timer() -> None:
    """Make a timer that expires in an hour, without a signal."""
    event = struct.pack("qii48x", 0, 0, _SIGEV_NONE)
    timer = ctypes.c_void_p()
    must(LIBC.timer_create(1, event, ctypes.byref(timer)), "timer_create")
    must(LIBC.timer_settime(timer, 0, _ONE_HOUR, None), "timer_settime")


def inotify() -> int:
    return must(LIBC.inotify_init1(os.O_CLOEXEC), "inotify_init1")


def inotify_watch(fd: int, path: str) -> None:
    must(LIBC.inotify_add_watch(fd, path.encode(), 2), "inotify_add_watch")


def join_session_keyring() -> None:
    system_call(_KEYCTL, word(_JOIN_SESSION), None)


def add_key(name: str) -> int:
    ring = word(_SESSION_KEYRING)
    return system_call(_ADD_KEY, b"user", name.encode(), b"x", ctypes.c_size_t(1), ring)


def unlink_key(key: int) -> None:
    """Unlink a key of the session keyring; nothing happens if there is none."""
    LIBC.syscall(word(_KEYCTL), word(_UNLINK), word(key), word(_SESSION_KEYRING))


def message_queue() -> int:
    return must(LIBC.msgget(0, 0o600), "msgget")


def send_message(queue: int) -> None:
    must(LIBC.msgsnd(queue, struct.pack("q", 1), ctypes.c_size_t(0), 0), "msgsnd")


def remove_queue(queue: int) -> None:
    must(LIBC.msgctl(queue, 0, None), "msgctl")


def queue_signal(pid: int, number: int) -> None:
    must(LIBC.sigqueue(pid, number, ctypes.c_void_p(0)), "sigqueue")


def pages_with_contents(count: int) -> mmap.mmap:
    """Return memory of its own with pages that differ and hardly compress."""
    memory = mmap.mmap(-1, max(count, 1) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    some = os.urandom(PAGE // 2)
    for i in range(count):
        memory[i * PAGE : i * PAGE + len(some)] = some[i % 1000 :] + some[: i % 1000]
    return memory


def address_of(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def protect(page: int, protection: int) -> None:
    """Change the protection of one page, by its address."""
    call = LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), protection)
    must(call, "mprotect")


def swap_on(device: str, size: int) -> None:
    """Write the header of a swap device of ``size`` bytes, and use it."""
    header = bytearray(PAGE)
    struct.pack_into("II", header, 1024, 1, size // PAGE - 1)
    header[-10:] = b"SWAPSPACE2"
    with open(device, "r+b", buffering=0) as stream:
        stream.write(header)
    must(LIBC.swapon(device.encode(), 0), "swapon")


def page_out(memory: mmap.mmap) -> None:
    memory.madvise(_ADVICE_PAGE_OUT)
