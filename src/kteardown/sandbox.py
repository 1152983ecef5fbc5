"""Run programs on what a stranger has written, such as the makefiles of a patched kernel, with
bubblewrap.

A program in the sandbox sees the compilers of the host and the files that it is given, all
read-only, and the folders that it may change. It has no network, sees no process of the host and no
environment but what is named, and has limits of processes, memory, disk and time. When it ends, all
that it started is killed. It is never root: if root started the lab, it has a user number that no
account has.
"""

import io
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, TextIO, cast

from kteardown import seccomp, spawn
from kteardown.errors import BuildError
from kteardown.limits import ANALYSIS, MB, Guard, Limits

USER = 61997
"""The user and group of programs in the sandbox if root started the lab. No account should have
it."""

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
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
)
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_ADDRESS_MB = 4096
_HIDDEN = ("/proc/cmdline", "/proc/bootconfig", "/proc/swaps")
"""Files of the host's kernel that name folders and settings of the host. A build needs none of
them."""
_LOOK_AT = "look at what the patch changes in makefiles, Kconfig and programs that the build runs."


Running = tuple[
    subprocess.Popen[str], Iterator[str]
]  # A program that runs, and the lines that it prints.


@dataclass(frozen=True)
class Sandbox:
    """What a program sees beside the host's compilers. Outer folders come before inner ones."""

    mounts: Sequence[Mount] = ()
    limits: Limits = field(default_factory=Limits)
    purpose: str = "the build"
    confined: bool = True
    """False where there is no sandbox: only the limits of time, output and memory apply."""

    def _options(
        self,
        environment: Mapping[str, str],
        folder: Path,
        rules: int,
        info: int,
        empty: Mapping[str, int],
    ) -> list[str]:
        """Return the options of bwrap, which reads ``rules``, writes ``info``, and begins in
        ``folder``.

        The files ``empty`` have the contents of these descriptors, which is nothing.
        """
        defaults = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/tmp", "USER": "kteardown"}
        variables = {**defaults, "LC_ALL": "C", **environment}
        variables["PATH"] = self._path(variables["PATH"])
        words = ["--seccomp", str(rules), "--info-fd", str(info), "--die-with-parent"]
        words += [
            "--new-session",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-uts",
        ]
        words += ["--unshare-cgroup-try", "--hostname", "kteardown"]
        # Root needs no user namespace: in one it would still own the files of root.
        words += [word for name in _kept() for word in ("--cap-add", f"CAP_{name}")] or [
            "--unshare-user"
        ]
        words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
        for name, descriptor in empty.items():
            words += ["--perms", "0444", "--ro-bind-data", str(descriptor), name]
        # What is in memory is limited, too: of it only these two folders can be written.
        for name in ("/tmp", "/dev/shm"):
            words += ["--perms", "1777", "--size", str(1024 * MB), "--tmpfs", name]
        # Each folder is made once: bwrap takes 9,000 words.
        binds = dict.fromkeys(bind for mount in self.mounts for bind in _binds(mount))
        words += [word for bind in binds for word in bind]
        words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(folder), "--clearenv"]
        return words + [
            word for name, value in variables.items() for word in ("--setenv", name, value)
        ]

    def _program(self, argv: Sequence[str]) -> list[str]:
        """Return the command that gives up all privileges, and then runs ``argv``."""
        words = ["setpriv", "--no-new-privs", "--inh-caps=-all"]
        if _kept():
            words += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all"]
        sizes = {"nproc": self.limits.processes, "fsize": self.limits.file_mb * MB, "core": 0}
        return [*words, *_prlimit(sizes), *argv]

    def _path(self, path: str) -> str:
        """Return ``path`` without the folders that are not in the sandbox: they would say what a
        user has."""
        shown = [*map(Path, _SYSTEM), *(mount.seen for mount in self.mounts)]
        folders = (Path(name) for name in path.split(os.pathsep))
        kept = [str(folder) for folder in folders if any(map(folder.is_relative_to, shown))]
        return os.pathsep.join(kept) or os.defpath

    @contextmanager
    def _confinement(
        self, environment: Mapping[str, str], folder: Path, info: int
    ) -> Iterator[tuple[list[str], list[int]]]:
        """Yield what a command in the sandbox begins with, and the descriptors that bwrap reads.

        Its options are in a file, since whatever runs in the sandbox can read the command line of
        bwrap.
        """
        with ExitStack() as opened:
            rules = opened.enter_context(seccomp.rules())
            empty = {
                name: os.open(os.devnull, os.O_RDONLY) for name in _HIDDEN if Path(name).exists()
            }
            for descriptor in empty.values():
                opened.callback(os.close, descriptor)
            options = opened.enter_context(tempfile.TemporaryFile())
            words = self._options(environment, folder, rules, info, empty)
            options.write(b"\0".join(map(os.fsencode, words)))
            options.seek(0)
            yield (
                ["bwrap", "--args", str(options.fileno()), "--"],
                [rules, options.fileno(), *empty.values()],
            )

    @property
    def writable(self) -> list[Path]:
        return [mount.host for mount in self.mounts if mount.writable]

    def _give_to_user(self) -> None:
        for host in self.writable:
            if os.geteuid() == 0 and host.stat().st_uid != USER:
                spawn.run(["chown", "-R", "-h", f"{USER}:{USER}", str(host)], check=True)

    @contextmanager
    def running(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdin: IO[str] | None = None,
    ) -> Iterator[Running]:
        """Run ``argv``; the block reads its lines. Everything that it started is killed at the end.

        With ``stdin``, its errors are not among the lines. What it has written is then safe to
        read: there are files and folders in it, and nothing else. Raises BuildError, after the
        block, if it exceeded a limit.
        """
        self._give_to_user()
        # Not that of the lab: a program of the same user can read the environment with which bwrap
        # began.
        bwrap_environment = {"PATH": self._path(os.environ.get("PATH", os.defpath)), "LC_ALL": "C"}
        info, written = os.pipe()
        with ExitStack() as stack:
            words = argv
            descriptors = list[int]()
            if self.confined:
                before, descriptors = stack.enter_context(
                    self._confinement(environment, folder, written)
                )
                words = [*before, *self._program(argv)]
            process = spawn.start(
                words,
                cwd=None if self.confined else folder,
                env=bwrap_environment if self.confined else environment,
                pass_fds=(*descriptors, written) if self.confined else (),
                stdin=stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if stdin else subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        os.close(written)
        first = None
        about = b""
        try:
            while b"}" not in about and (part := os.read(info, 4096)):
                about += part
            with suppress(ProcessLookupError):  # It may have ended by now.
                first = os.pidfd_open(json.loads(about)["child-pid"]) if about else None
            guard = Guard(process, self.limits, self.writable, first)
            with guard:
                yield process, guard.lines(cast(TextIO, process.stdout))
            process.wait()
        finally:
            _end(process)
            os.close(info)
            if first is not None:
                _kill_namespace(first)
            for host in self.writable:
                clean(host)
        if guard.exceeded:
            raise BuildError(f"{self.purpose} was stopped: {guard.exceeded}", hint=_LOOK_AT)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a process and its group if it still runs, and close its output."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    cast(TextIO, process.stdout).close()


def _kill_namespace(first: int) -> None:
    """Kill the first process of a process namespace, by its descriptor, and with it all others."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)
    select.select([first], [], [])  # It ends after all others of its process namespace.
    os.close(first)


def capture(
    argv: Sequence[str],
    readable: Sequence[Path],
    folder: Path | None = None,
    text_in: str = "",
    limits: Limits = ANALYSIS,
) -> str:
    """Return the output of a program that analyses the files ``readable``, which have their own
    paths in it.

    Where there is no sandbox, it runs without one. ``text_in`` is its standard input.
    Raises BuildError if it exceeds ``limits``.
    """
    mounts = [Mount(path.absolute(), path.absolute()) for path in readable]
    box = Sandbox(mounts, limits, f"the analysis with {Path(argv[0]).name}", confined=not problem())
    limited = [*(_prlimit({"as": _ADDRESS_MB * MB}) if box.confined else ()), *argv]
    text = io.StringIO()
    with tempfile.TemporaryFile("w+") as stdin:
        stdin.write(text_in)
        stdin.seek(0)
        environment = {} if box.confined else os.environ
        with box.running(limited, environment, (folder or Path("/")).absolute(), stdin) as (
            _,
            lines,
        ):
            text.writelines(lines)
    return text.getvalue()


@cache
def problem() -> str:
    """Return why there is no sandbox on this host, as the end of a sentence; empty if there is
    one."""
    absent = [name for name in ("bwrap", "setpriv", "prlimit") if shutil.which(name) is None]
    if absent:
        return f"{absent[0]} is not installed"
    with Sandbox().running(["true"], {}, Path("/")) as (process, lines):
        printed = "".join(lines).strip().splitlines()
    status = process.returncode
    return (
        f"bubblewrap does not work here ({(printed or [f'exit status {status}'])[-1]})"
        if status
        else ""
    )


def python_folders() -> list[Mount]:
    """Return the folders of this Python and its libraries that are not a part of the system."""
    prefixes = map(Path, (sys.base_prefix, sys.prefix))
    return [Mount(path, path) for path in prefixes if not path.is_relative_to("/usr")]


def clean(folder: Path) -> None:
    """Leave only what can be read: files and folders, not too deep, and no text that fills the
    memory."""
    find = ("find", str(folder), "-xdev")
    special_files = ("!", "-type", "f", "!", "-type", "d", "-delete")
    texts = ("(", "-name", ".config", "-o", "-name", ".*.cmd", "-o", "-name", "kernel.release", ")")
    deletions = (
        special_files,
        ("-mindepth", "24", "-delete"),
        (*texts, "-size", "+16M", "-delete"),
    )
    for argv in (
        ("chmod", "-R", "u+rwX", str(folder)),
        *((*find, *expression) for expression in deletions),
    ):
        spawn.run(argv, check=False, capture_output=True)


def _kept() -> tuple[str, ...]:
    """Return the capabilities with which root becomes another user; of others there is nothing to
    give up."""
    return ("SETUID", "SETGID", "SETPCAP") if os.geteuid() == 0 else ()


def _prlimit(limits: Mapping[str, int]) -> list[str]:
    """Return the command that sets ``limits`` of a process, or those that the user has, if they are
    lower."""
    words = ["prlimit"]
    for name, most in limits.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        words.append(f"--{name}={most if hard == resource.RLIM_INFINITY else min(most, hard)}")
    return words


def _binds(mount: Mount) -> list[tuple[str, ...]]:
    """Return the options that show a file. The folders above it are made first; any user may enter
    them."""
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
