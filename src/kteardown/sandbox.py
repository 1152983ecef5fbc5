"""Run programs on what a stranger has written, such as the makefiles of a patched kernel, with bubblewrap.

A program in the sandbox sees the compilers of the host and the files that it is given, all read-only, and
the folders that it may change. It has no network, sees no process of the host and no environment but what is
named, and has limits of processes, memory, disk and time. When it ends, all that it started is killed. It
is never root: if root started the lab, it has a user number that no account has.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

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


# What compilers, make, perl and Python need, on all distributions.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_MB = 1 << 20
_TMP_MB = 1024
_FREE_MB = 256
_LINE = 1 << 16
_DEPTH = 24
_LOOK_S = 1.0
_ANALYSIS_S = 900.0


def _memory_mb() -> int:
    return int(psutil.virtual_memory().total // _MB * 3 // 4)


@dataclass(frozen=True)
class Limits:
    """What a program and all that it started may use before they are killed."""

    silence_s: float = 1800.0
    """The time without a line of output."""
    output_mb: int = 1024
    disk_mb: int = 24 << 10
    file_mb: int = 4 << 10
    memory_mb: int = field(default_factory=_memory_mb)
    processes: int = 8192


@dataclass(frozen=True)
class Sandbox:
    """What a program sees beside the host's compilers. Outer folders come before inner ones."""

    mounts: Sequence[Mount] = ()
    limits: Limits = field(default_factory=Limits)

    def command(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> list[str]:
        """Return the command that runs ``argv`` in the sandbox, in ``folder``."""
        known = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/tmp", "USER": "kteardown"}
        variables = {**known, "LC_ALL": "C", **environment}
        words = ["bwrap", "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid"]
        words += ["--unshare-net", "--unshare-uts", "--hostname", "kteardown", "--unshare-cgroup-try"]
        # Root needs no user namespace: in one it would still own the files of root.
        keep = ("SETUID", "SETGID", "SETPCAP") if os.geteuid() == 0 else ()
        words += [word for name in keep for word in ("--cap-add", f"CAP_{name}")] or ["--unshare-user"]
        words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
        # What is in memory is limited, too: of it only these two folders can be written.
        for name in ("/tmp", "/dev/shm"):
            words += ["--perms", "1777", "--size", str(_TMP_MB * _MB), "--tmpfs", name]
        words += [word for mount in self.mounts for word in _bind(mount)]
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
        try:
            with running(self.command(argv, environment, folder), None) as process:
                watch = _Watch(process, self)
                with watch:
                    yield Running(process, watch.lines())
        finally:
            for host in self.writable:
                clean(host)
        if watch.exceeded:
            raise BuildError(
                f"the build was stopped: {watch.exceeded}",
                hint="look at what the patch changes in makefiles, Kconfig and programs that the build runs.",
            )


@dataclass(frozen=True)
class Running:
    """A program that runs, and the lines that it prints."""

    process: subprocess.Popen[str]
    lines: Iterator[str]


@contextmanager
def running(argv: Sequence[str], environment: Mapping[str, str] | None) -> Iterator[subprocess.Popen[str]]:
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
    )
    try:
        yield process
        process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def capture(
    argv: Sequence[str], readable: Sequence[Path], folder: Path | None = None, text_in: str | None = None
) -> str:
    """Return the output of a program that analyses the files ``readable``, which have their own paths in it.

    Where there is no sandbox, it runs without one. ``text_in`` is its standard input, empty by default.
    Raises BuildError if it does not end.
    """
    if not problem():
        box = Sandbox([Mount(path.absolute(), path.absolute()) for path in readable])
        argv = box.command(argv, {}, (folder or Path("/")).absolute())
    stdin = subprocess.DEVNULL if text_in is None else None
    try:
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, errors="replace", stdin=stdin, input=text_in,
            timeout=_ANALYSIS_S, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{argv[-1]} could not be analysed in {_ANALYSIS_S:.0f} s", hint="look at what was compiled."
        ) from error
    return done.stdout


@cache
def problem() -> str:
    """Return why there is no sandbox on this host, as the end of a sentence; empty if there is one."""
    absent = [name for name in ("bwrap", "setpriv", "prlimit") if shutil.which(name) is None]
    if absent:
        return f"{absent[0]} is not installed"
    done = subprocess.run(
        Sandbox().command(["true"], {}, Path("/")), check=False, capture_output=True, text=True
    )
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"bubblewrap does not work here ({said})" if done.returncode else ""


def python_folders() -> list[Mount]:
    """Return the folders of this Python and its libraries that are not a part of the system."""
    prefixes = dict.fromkeys((Path(sys.base_prefix), Path(sys.prefix)))
    return [Mount(path, path) for path in prefixes if not path.is_relative_to("/usr")]


def clean(folder: Path) -> None:
    """Leave only files and folders that can be read: no link, no pipe, no device, no folder in a hundred."""
    other = ("!", "-type", "f", "!", "-type", "d", "-delete")
    for argv in (("chmod", "-R", "u+rwX", str(folder)), ("find", str(folder), "-xdev", *other)):
        subprocess.run(argv, check=False, capture_output=True)
    deep = ("find", str(folder), "-xdev", "-mindepth", str(_DEPTH), "-delete")
    subprocess.run(deep, check=False, capture_output=True)


def _lowered(limits: Limits) -> list[str]:
    """Return the command that gives up all privileges, and sets the limits of one process."""
    words = ["setpriv", "--no-new-privs", "--inh-caps=-all"]
    if os.geteuid() == 0:
        words += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all"]
    sizes = (f"--nproc={limits.processes}", f"--fsize={limits.file_mb * _MB}", "--core=0")
    return [*words, "prlimit", *sizes]


def _bind(mount: Mount) -> list[str]:
    """Return the options that show a file. The folders above it are made first; any user may enter them."""
    above = [str(folder) for folder in reversed(mount.seen.parents)][1:]
    made = [word for folder in above for word in ("--perms", "0755", "--dir", folder)]
    return [*made, "--bind" if mount.writable else "--ro-bind", str(mount.host), str(mount.seen)]


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

    def __init__(self, process: subprocess.Popen[str], box: Sandbox) -> None:
        self.exceeded = ""
        self._process = process
        self._box = box
        self._last_line = time.monotonic()
        self._letters = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def lines(self) -> Iterator[str]:
        """Yield the lines that the program prints, long ones in parts, and take note of the time."""
        stdout = self._process.stdout
        assert stdout is not None
        while line := stdout.readline(_LINE):
            self._last_line = time.monotonic()
            self._letters += len(line)
            yield line

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.exceeded = self._too_much()
            if self.exceeded:
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
        used = 0
        try:
            for child in psutil.Process(self._process.pid).children(recursive=True):
                used += child.memory_info().rss
        except psutil.Error:
            pass  # It ended in the meantime.
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
