"""Makes removed memory cgroups that something keeps, and asks drgn what that is.

    python3 pinned_cgroups.py FILES ZOMBIES NESTED SOCKETS COMMAND...

Runs in a guest, with nothing but Python's library.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable

ROOT = "/sys/fs/cgroup"
FILE_BYTES = 8192
SETTLE_S = 3
_IFF_UP = 1


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def _make(path: str) -> str:
    os.mkdir(f"{ROOT}/{path}")
    return f"{ROOT}/{path}"


def _started(group: str, work: Callable[[], None]) -> int:
    """Fork a process that does ``work`` in ``group``, wait until it has exited, return its PID.

    Nobody reaps it.
    """
    child = os.fork()
    if child == 0:
        _write(f"{group}/cgroup.procs", "0")
        work()
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return child


def _file(path: str) -> Callable[[], None]:
    def work() -> None:
        with open(path, "wb") as stream:
            stream.write(bytes(FILE_BYTES))

    return work


def files(count: int) -> None:
    """Cgroups whose process wrote a file that is still there."""
    for i in range(count):
        group = _make(f"files/{i}")
        os.waitpid(_started(group, _file(f"/tmp/file-{i}")), 0)
        os.rmdir(group)


def zombies(count: int) -> None:
    """Cgroups whose process has exited and is not reaped."""
    for i in range(count):
        group = _make(f"zombies/{i}")
        _started(group, lambda: None)
        os.rmdir(group)


def nested(count: int) -> None:
    """Cgroups with a removed cgroup below them, which a file keeps."""
    for i in range(count):
        outer = _make(f"nested/{i}")
        _write(f"{outer}/cgroup.subtree_control", "+memory")
        inner = _make(f"nested/{i}/inner")
        os.waitpid(_started(inner, _file(f"/tmp/inner-{i}")), 0)
        os.rmdir(inner)
        os.rmdir(outer)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", b"lo", _IFF_UP))  # SIOCSIFFLAGS


def sockets(count: int) -> list[socket.socket]:
    """Cgroups whose process made a TCP connection that another process holds, with unread data."""
    _loopback_up()
    held = []
    for i in range(count):
        group = _make(f"sockets/{i}")
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

        def work(there: socket.socket = there) -> None:
            with socket.create_server(("127.0.0.1", 0)) as server:
                near = socket.create_connection(server.getsockname())
                far, _ = server.accept()
            near.send(bytes(100_000))
            fds = array.array("i", [near.fileno(), far.fileno()])
            there.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])

        os.waitpid(_started(group, work), 0)
        _, fds, _, _ = socket.recv_fds(here, 1, 2)
        held += [socket.socket(fileno=fd) for fd in fds]
        os.rmdir(group)
    return held


def main() -> None:
    """Make everything, and run the command."""
    counts = [int(word) for word in sys.argv[1:5]]
    _write(f"{ROOT}/cgroup.subtree_control", "+memory")
    for name in ("files", "zombies", "nested", "sockets"):
        _write(f"{_make(name)}/cgroup.subtree_control", "+memory")
    files(counts[0])
    zombies(counts[1])
    nested(counts[2])
    held = sockets(counts[3])
    time.sleep(SETTLE_S)
    done = subprocess.run(sys.argv[5:], capture_output=True, text=True, check=False)
    print("=" + done.stdout.strip())
    print(f"status {done.returncode}, {len(held)} sockets", done.stderr[-2000:])


if __name__ == "__main__":
    main()
