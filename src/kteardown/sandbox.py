"""Run programs on what a stranger has written, such as the makefiles of a patched kernel, with bubblewrap.

A program in the sandbox sees the compilers of the host and the files that it is given, all read-only, and
the folders that it may change. It has no network, sees no process of the host and no environment but what is
named, and has limits of processes, memory, disk and time. When it ends, all that it started is killed. It
is never root: if root started the lab, it has a user number that no account has.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TextIO, cast

import psutil

from kteardown.errors import BuildError

USER = 61997
"""The user and group of programs in the sandbox if root started the lab. No account should have it."""

unsafe_build = False
"""Whether the user has permitted this process to build any patch without the sandbox."""


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, and the path at which a program in the sandbox sees it."""

    host: Path
    seen: Path
    writable: bool = False
    link: bool = False
    """Whether ``host`` is a symbolic link, which is made anew, and not what it refers to."""


# What compilers, make, perl and Python need, on all distributions.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_MB = 1 << 20
_FREE_MB = 256
# By machine: its number, then socket(), clone(), unshare(), ptrace(), add_key(), request_key(), keyctl(),
# io_uring_setup(), setns().
_SYSTEM_CALLS = {
    "x86_64": (0xC000003E, 41, 56, 272, 101, 248, 249, 250, 425, 308),
    "aarch64": (0xC00000B7, 198, 220, 97, 117, 217, 218, 219, 425, 268),
}
_CLONE3, _CLONE_NEWUSER = 435, 0x10000000


Running = tuple[subprocess.Popen[str], Iterator[str]]  # A program that runs, and the lines that it prints.


@dataclass(frozen=True)
class Limits:
    """What a program and all that it started may use before they are killed."""

    silence_s: float = 1800.0
    """The time without a line of output."""
    output_mb: int = 1024
    disk_mb: int = 24 << 10
    file_mb: int = 2 << 10
    memory_mb: int = field(default_factory=lambda: int(psutil.virtual_memory().total // _MB * 3 // 4))
    processes: int = 8192


@dataclass(frozen=True)
class Sandbox:
    """What a program sees beside the host's compilers. Outer folders come before inner ones."""

    mounts: Sequence[Mount] = ()
    limits: Limits = field(default_factory=Limits)

    def command(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, rules: int
    ) -> list[str]:
        """Return the command that runs ``argv`` in ``folder`` in the sandbox; it inherits ``_rules``."""
        known = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/tmp", "USER": "kteardown"}
        variables = {**known, "LC_ALL": "C", **environment}
        words = ["bwrap", "--seccomp", str(rules), "--die-with-parent", "--new-session", "--unshare-ipc"]
        words += ["--unshare-pid", "--unshare-net", "--unshare-uts", "--hostname", "kteardown"]
        words += ["--unshare-cgroup-try"]
        # Root needs no user namespace: in one it would still own the files of root.
        keep = ("SETUID", "SETGID", "SETPCAP") if os.geteuid() == 0 else ()
        words += [word for name in keep for word in ("--cap-add", f"CAP_{name}")] or ["--unshare-user"]
        words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
        # What is in memory is limited, too: of it only these two folders can be written.
        for name in ("/tmp", "/dev/shm"):
            words += ["--perms", "1777", "--size", str(1024 * _MB), "--tmpfs", name]
        # Each folder is made once: bwrap takes 9,000 words.
        binds = dict.fromkeys(bind for mount in self.mounts for bind in _binds(mount))
        words += [word for bind in binds for word in bind]
        words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(folder), "--clearenv"]
        words += [word for name, value in variables.items() for word in ("--setenv", name, value)]
        return [*words, "--", *_lowered(self.limits), *argv]

    @property
    def writable(self) -> list[Path]:
        """The folders of the host that a program may change."""
        return [mount.host for mount in self.mounts if mount.writable]

    @contextmanager
    def running(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Running]:
        """Run ``argv``; the block reads its lines. Everything that it started is killed at the end.

        What it has written is then safe to read: there are files and folders in it, and nothing else.
        Raises BuildError, after the block, if it exceeded a limit.
        """
        for host in self.writable:
            _give_away(host)
        info, written = os.pipe()
        first = None
        try:
            with _rules() as rules:
                command = self.command(argv, environment, folder, rules)
                command[1:1] = ["--info-fd", str(written)]
                with running(command, _environment(), (rules, written)) as (process, stdout):
                    os.close(written)
                    about = b""
                    while b"}" not in about and (part := os.read(info, 4096)):
                        about += part
                    first = os.pidfd_open(json.loads(about)["child-pid"]) if about else None
                    watch = _Watch(process, self, first)
                    with watch:
                        yield process, watch.lines(stdout)
        finally:
            os.close(info)
            if first is not None:
                _end(first)
            for host in self.writable:
                clean(host)
        if watch.exceeded:
            raise BuildError(
                f"the build was stopped: {watch.exceeded}",
                hint="look at what the patch changes in makefiles, Kconfig and programs that the build runs.",
            )


@contextmanager
def running(
    argv: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int] = ()
) -> Iterator[tuple[subprocess.Popen[str], TextIO]]:
    """Run ``argv`` in its own process group, which is killed if the block ends before the process."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=descriptors,
    )
    stdout = cast(TextIO, process.stdout)
    try:
        yield process, stdout
        process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        stdout.close()


def capture(
    argv: Sequence[str], readable: Sequence[Path], folder: Path | None = None, text_in: str | None = None
) -> str:
    """Return the output of a program that analyses the files ``readable``, which have their own paths in it.

    Where there is no sandbox, it runs without one. ``text_in`` is its standard input, empty by default.
    Raises BuildError if it does not end.
    """
    stdin = subprocess.DEVNULL if text_in is None else None
    try:
        with _rules() as rules:
            if not problem():
                box = Sandbox([Mount(path.absolute(), path.absolute()) for path in readable])
                argv = box.command(argv, {}, (folder or Path("/")).absolute(), rules)
            done = subprocess.run(
                argv, check=False, capture_output=True, text=True, errors="replace", stdin=stdin,
                input=text_in, timeout=900, cwd=folder, env=_environment(), pass_fds=(rules,),
            )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{argv[-1]} could not be analysed in 15 minutes", hint="look at what was compiled."
        ) from error
    return done.stdout


@cache
def problem() -> str:
    """Return why there is no sandbox on this host, as the end of a sentence; empty if there is one."""
    absent = [name for name in ("bwrap", "setpriv", "prlimit") if shutil.which(name) is None]
    if absent:
        return f"{absent[0]} is not installed"
    with _rules() as rules:
        argv = Sandbox().command(["true"], {}, Path("/"), rules)
        done = subprocess.run(argv, check=False, capture_output=True, text=True, pass_fds=(rules,))
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"bubblewrap does not work here ({said})" if done.returncode else ""


def python_folders() -> list[Mount]:
    """Return the folders of this Python and its libraries that are not a part of the system."""
    prefixes = map(Path, (sys.base_prefix, sys.prefix))
    return [Mount(path, path) for path in prefixes if not path.is_relative_to("/usr")]


def clean(folder: Path) -> None:
    """Leave only what can be read: files and folders, not too deep, and no text that fills the memory."""
    find, other = ("find", str(folder), "-xdev"), ("!", "-type", "f", "!", "-type", "d", "-delete")
    texts = ("(", "-name", ".config", "-o", "-name", ".*.cmd", "-o", "-name", "kernel.release", ")")
    rest = (other, ("-mindepth", "24", "-delete"), (*texts, "-size", "+16M", "-delete"))
    for argv in (("chmod", "-R", "u+rwX", str(folder)), *((*find, *each) for each in rest)):
        subprocess.run(argv, check=False, capture_output=True)


def _environment() -> dict[str, str]:
    # Not that of the lab: a program of the same user can read the environment with which bwrap began.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _end(first: int) -> None:
    """Kill the first process of a process namespace, and wait: it ends after all others of its namespace."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)
    select.select([first], [], [])
    os.close(first)


@contextmanager
def _rules() -> Iterator[int]:
    """Yield a descriptor with rules for system calls: no sockets but of the network and files, no keys.

    Other kinds of sockets, such as those to a hypervisor, and keyrings belong to no namespace. There are no
    other user namespaces, in which a program could mount. The rules are instructions of seccomp(2): load a
    word, jump, or return, each with its operand.
    """
    fd = os.memfd_create("seccomp")
    try:
        if known := _SYSTEM_CALLS.get(platform.machine()):
            arch, socket_call, clone, unshare, *denied = known
            refuse, allow = (0x06, 0, 0, 0x00050000 | errno.EPERM), (0x06, 0, 0, 0x7FFF0000)
            program = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), refuse, (0x20, 0, 0, 0)]
            for number in denied:
                program += [(0x15, 0, 1, number), refuse]
            # Its flags are in memory, where no rule sees them. The C library uses clone() without it.
            program += [(0x15, 0, 1, _CLONE3), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
            program += [(0x15, 1, 0, clone), (0x15, 0, 3, unshare)]
            program += [(0x20, 0, 0, 16), (0x45, 0, 1, _CLONE_NEWUSER), refuse, (0x20, 0, 0, 0)]
            # x32 has the numbers of x86-64 with this bit.
            program += [(0x35, 0, 1, 0x40000000), refuse, (0x15, 1, 0, socket_call), allow, (0x20, 0, 0, 16)]
            for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
                program += [(0x15, 0, 1, family), allow]
            os.write(fd, b"".join(struct.pack("=HBBI", *each) for each in (*program, refuse)))
        else:
            os.write(fd, struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _lowered(limits: Limits) -> list[str]:
    """Return the command that gives up all privileges, and sets the limits of one process."""
    words = ["setpriv", "--no-new-privs", "--inh-caps=-all"]
    if os.geteuid() == 0:
        words += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all"]
    return [*words, *_prlimit({"nproc": limits.processes, "fsize": limits.file_mb * _MB, "core": 0})]


def _prlimit(limits: Mapping[str, int]) -> list[str]:
    """Return the command that sets ``limits`` of a process, or those that the user has, if they are lower."""
    words = ["prlimit"]
    for name, most in limits.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        words.append(f"--{name}={most if hard == resource.RLIM_INFINITY else min(most, hard)}")
    return words


def _binds(mount: Mount) -> list[tuple[str, ...]]:
    """Return the options that show a file. The folders above it are made first; any user may enter them."""
    above = [str(folder) for folder in reversed(mount.seen.parents)][1:]
    made = [("--perms", "0755", "--dir", folder) for folder in above]
    if mount.link:
        return [*made, ("--symlink", os.readlink(mount.host), str(mount.seen))]
    return [*made, ("--bind" if mount.writable else "--ro-bind", str(mount.host), str(mount.seen))]


def _system() -> list[str]:
    words = ["--perms", "0755", "--dir", "/etc"]
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), name]
        elif path.is_dir():
            words += ["--ro-bind", name, name]
    return words + [word for name in _SETTINGS for word in ("--ro-bind-try", name, name)]


def _give_away(folder: Path) -> None:
    """Make a folder that no program in the sandbox has seen yet belong to their user."""
    if os.geteuid() == 0 and folder.stat().st_uid != USER:
        subprocess.run(["chown", "-R", "-h", f"{USER}:{USER}", str(folder)], check=True)


class _Watch:
    """Kills a program that exceeds what the kernel does not limit: the memory and disk of all together."""

    def __init__(self, process: subprocess.Popen[str], box: Sandbox, first: int | None) -> None:
        self.exceeded = ""
        self._process = process
        self._box, self._first = box, first
        self._last_line = time.monotonic()
        self._letters = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def lines(self, stdout: TextIO) -> Iterator[str]:
        """Yield the lines that the program prints, long ones in parts, and take note of the time."""
        while line := stdout.readline(1 << 16):
            self._last_line = time.monotonic()
            self._letters += len(line)
            yield line

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.exceeded = self._too_much()
            if self.exceeded:
                # The first process of the namespace, too: it may have changed how it ends.
                if self._first is not None:
                    signal.pidfd_send_signal(self._first, signal.SIGKILL)
                self._process.kill()
                return

    def _too_much(self) -> str:
        limits = self._box.limits
        if time.monotonic() - self._last_line > limits.silence_s:
            return f"it printed nothing for {limits.silence_s:.0f} s"
        if self._letters > limits.output_mb * _MB:
            return f"it printed more than {limits.output_mb} MB"
        if self._memory_mb() > limits.memory_mb:
            return f"its processes used more than {limits.memory_mb} MB of memory"
        folders = self._box.writable
        if sum(map(_used_mb, folders)) > limits.disk_mb:
            return f"it wrote more than {limits.disk_mb} MB"
        if any(shutil.disk_usage(folder).free < _FREE_MB * _MB for folder in folders):
            return f"less than {_FREE_MB} MB of the disk were left"
        return ""

    def _memory_mb(self) -> int:
        used, children = 0, []
        with suppress(psutil.Error):
            children = psutil.Process(self._process.pid).children(recursive=True)
        for child in children:
            with suppress(psutil.Error):  # It ended in the meantime.
                used += child.memory_info().rss
        return used // _MB


def _used_mb(folder: Path) -> int:
    used, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    used += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue  # It was removed in the meantime.
    return used // _MB
