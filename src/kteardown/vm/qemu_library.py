"""Start QEMU with as few rights as it works with, and with the C code that is loaded into it.

The rights are for the case that a guest breaks out of QEMU, which cannot gain rights or start
programs, and reads and writes only files that the lab has opened. If the lab is root, QEMU runs as
a user that owns nothing. What does not work on this host is left out. The C code is QEMU's plugin,
which counts what a kernel executes, and ``main_loop``, which keeps QEMU's main loop from running
beside the virtual CPUs under the instruction clock.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kteardown import spawn
from kteardown.door import Entry
from kteardown.errors import BuildError, LabError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal
from kteardown.vm.agent import Also, agent_addresses
from kteardown.vm.direct_boot import without_decompressor
from kteardown.vm.host import missing_qemu, qemu_version
from kteardown.vm.job import Acceleration, BootJob

USER = 61998
"""The user and the group of QEMU if the lab is root: outside of the ranges of accounts, and without
one."""
_KVM = "/dev/kvm"
_CAP_KILL = 5
_CAP_SYS_NICE = 23
_NO_RIGHTS = ("setpriv", "--no-new-privs", "--inh-caps=-all")
_ROOT = (*_NO_RIGHTS, "--bounding-set=-all")
_OTHER_USER = (*_ROOT, f"--reuid={USER}", f"--regid={USER}")
_SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
# The kernel kills QEMU when the thread of the lab that started it exits, even by SIGKILL, for which
# a handler or a destructor would not run. setpriv requests it last, since a change of the user
# cancels it. The shell covers the time before that: if the lab has exited by then, the parent of
# the shell is another process.
WITH_LAB = ("--pdeathsig", "KILL", "sh", "-c", 'ulimit -c 0; [ "$PPID" = "$0" ] && exec "$@"')

Words = tuple[str, ...]
_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)
_MARKS = (
    ("trial", "trial_run"),
    ("begin", "wl_profile_begin"),
    ("end", "wl_profile_end"),
    ("end", "profile_report"),
)
"""The agent's functions that mark trials and stretches; ``profile_report`` ends those of a whole
run()."""
_LATER = tuple(("trial", f"later_{name}") for name in ("begin", "quiet", "end"))
"""Those of the agent that waits for later work: each begins a section, as a trial does."""
_NEWEST = 7
"""The newest version of QEMU's interface for plugins whose differences ``plugins/coverage.c``
knows."""


def confinement(arch: Arch, acceleration: Acceleration) -> tuple[Words, Words]:
    """Return the words before QEMU's command, with which it ends with the lab, and options to add
    to it."""
    # They are the strictest with which QEMU starts on this host, and change nothing in the guest.
    kvm = acceleration == "kvm"
    group = os.stat(_KVM).st_gid if kvm else 0
    other_user = (*_OTHER_USER, f"--groups={group}" if group else "--clear-groups")
    capable = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    # To kill the process of another user, and to pin it to CPUs, which containers often may not do.
    needed = 1 << _CAP_KILL | kvm << _CAP_SYS_NICE
    may_change = os.geteuid() == 0 and capable & needed == needed
    works = may_change and (not kvm or _works((*other_user, "test", "-r", _KVM, "-a", "-w", _KVM)))
    qemu = shutil.which(ARCHITECTURES[arch].qemu) or ""
    for setpriv, sandbox in itertools.product(
        [*[other_user] * works, _ROOT, _NO_RIGHTS], (_SANDBOX, ())
    ):
        # It installs the filter of system calls before it lists its CPUs.
        if _works((*setpriv, qemu, *sandbox, "-cpu", "help")):
            break
    return (*setpriv, *WITH_LAB, str(os.getpid())), sandbox


@functools.cache
def _works(command: Words) -> bool:
    return (
        spawn.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        == 0
    )


@contextlib.contextmanager
def opened(job: BootJob) -> Iterator[tuple[BootJob, list[int], Words]]:
    """Yield ``job`` with descriptors for its paths, these, and options for QEMU. Raises
    LabError."""
    inherit: list[int] = []
    with contextlib.ExitStack() as files:

        def name(file: BinaryIO) -> str:
            inherit.append(files.enter_context(file).fileno())
            return f"/dev/fd/{inherit[-1]}"

        try:
            # A descriptor that QEMU duplicates: a run directory may be on a disk that has no other
            # owners.
            name(job.console.create())
            options = ("-add-fd", f"fd={inherit[0]},set=1")
            is_direct = job.acceleration == "icount" and not job.has_own_programs
            kernel = without_decompressor(job.image) if is_direct else None
            image = Path(name(kernel or readable(job.image)))
            lent = replace(job, image=image, console=Entry(Path("/dev/fdset/1")))
            lent = replace(lent, initramfs=Path(name(readable(job.initramfs))))
            if job.plugin:
                library, out = (Path(word.partition("=")[2]) for word in job.plugin[:2])
                counts = f"out={name(out.open('wb'))}"
                os.fchmod(inherit[-1], 0o622)
                lent = replace(
                    lent, plugin=(f"file={name(readable(library))}", counts, *job.plugin[2:])
                )
        except OSError as error:
            raise LabError(
                f"cannot open {error.filename}: {error.strerror}",
                hint="free some space, or set KTEARDOWN_RUNS to a folder on another disk.",
            ) from error
        yield lent, inherit, options


def readable(path: Path) -> BinaryIO:
    """Open a file that every user can read by the name of its descriptor: a copy in memory, if need
    be."""
    file = path.open("rb")
    if os.fstat(file.fileno()).st_mode & 0o004:
        return file
    with file:
        copy = os.fdopen(os.memfd_create(path.name), "w+b", buffering=0)
        shutil.copyfileobj(file, copy)
        return copy


def build_library(name: str, *flags: str, cache: Path, reporter: Reporter) -> Path:
    """Return ``plugins/NAME.c``, or the files of ``plugins/NAME``, as a library, from ``cache`` or
    built into it.

    ``flags`` are arguments of the compiler. Raises MissingError without a compiler, BuildError if
    it does not build, LabError if ``cache`` cannot be written.
    """
    files = _sources(name)
    text = b"".join(files.values())
    content = hashlib.sha256(" ".join((platform.machine(), *flags)).encode() + text).hexdigest()[
        :16
    ]
    library = cache / "plugins" / f"{name}-{content}.so"
    if seal.is_intact(library, reporter):
        return library
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MissingError(f"cannot build {name}.c for QEMU: no C compiler is installed", ["gcc"])
    with seal.building(cache, f"plugins/{name}"):
        compiled = [str(path) for path in files if path.suffix == ".c"]
        argv = [compiler, *_FLAGS, *flags, "-o", f"{name}.so", *compiled]
        error = BuildError(
            f"plugins/{name}, which is loaded into QEMU, did not build",
            hint="install the C library's headers: apt install libc6-dev",
        )
        return seal.make(library, files, argv, f"{name}.so", reporter, error)


def _sources(name: str) -> dict[Path, bytes]:
    """Return the files of a library and what is in them, by their paths below ``plugins``."""
    root = data_dir("plugins")
    files = [root / f"{name}.c"]
    if (root / name).is_dir():
        files = [*sorted((root / name).glob("*.[ch]")), root / "qemu_plugin.h"]
    return {file.relative_to(root): file.read_bytes() for file in files}


def main_loop_library(reporter: Reporter) -> Path:
    """Return ``plugins/main_loop.c`` as a library. Raises MissingError, BuildError, LabError."""
    return build_library("main_loop", cache=cache_dir(), reporter=reporter)


@contextlib.contextmanager
def preloaded(job: BootJob) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield what comes before QEMU's command, and what it inherits. Raises as ``main_loop_library``
    does."""
    if job.acceleration != "icount":
        yield (), ()
        return
    # By its descriptor, because a blank or a colon in a path would end it.
    with readable(main_loop_library(SilentReporter())) as opened:
        number = opened.fileno()
        names = [f"/dev/fd/{number}", os.environ.get("LD_PRELOAD", "")]
        yield ("env", f"LD_PRELOAD={':'.join(filter(None, names))}"), (number,)


class CodeBlock(NamedTuple):
    """A block of instructions that the emulator translates and executes as one."""

    address: int
    inside: int
    """How often it was executed in the measured stretches of the trial."""
    outside: int
    lengths: str
    """The length of each instruction, as a hexadecimal digit."""

    def addresses(self) -> Iterator[int]:
        at = self.address
        for length in self.lengths:
            yield at
            at += int(length, 16)


@dataclass(frozen=True)
class TrialBlocks:
    """What one trial executed. ``stretches``: how many measured stretches it had."""

    stretches: int
    blocks: tuple[CodeBlock, ...]

    @property
    def outside(self) -> int:
        """How many instructions were executed outside of the stretches."""
        return sum(block.outside * len(block.lengths) for block in self.blocks)


def build_plugin(arch: Arch, *, cache: Path, reporter: Reporter) -> Path:
    """Return the plugin for the host's QEMU, from ``cache`` or built into it. Raises LabError,
    BuildError."""
    return build_counter("coverage", arch, cache=cache, reporter=reporter)


def build_counter(name: str, arch: Arch, *, cache: Path, reporter: Reporter) -> Path:
    """Return one of the plugins that count for the host's QEMU. Raises LabError, BuildError."""
    version = _lowest_version(arch, cache)
    if version > _NEWEST:
        raise LabError(
            f"QEMU {qemu_version(arch)} needs plugins for version {version} of its interface, but "
            f"kteardown supports only versions 1 to {_NEWEST}, so it cannot count what a kernel "
            "executes",
            hint="install an older QEMU or a newer kteardown.",
        )
    return build_library(name, f"-DAPI={version}", cache=cache, reporter=reporter)


@functools.cache
def _lowest_version(arch: Arch, cache: Path) -> int:
    """Return the lowest version of the interface that QEMU takes, which it names when it refuses
    version 0.

    Raises MissingError without QEMU, LabError if it has no plugins.
    """
    architecture = ARCHITECTURES[arch]
    refused = build_library("coverage", "-DAPI=0", cache=cache, reporter=SilentReporter())
    argv = [architecture.qemu, "-M", "none", "-display", "none", "-plugin", str(refused)]
    try:
        printed = spawn.run(argv, capture_output=True, text=True, check=False, timeout=60).stderr
    except FileNotFoundError as error:
        raise missing_qemu(arch) from error
    if match := re.search(r"minimum version of (\d+)", printed):
        return int(match[1])
    if (
        "qemu_plugin_install" in printed
    ):  # Before 9.0 no version was too low; without arguments it is refused.
        return 1
    raise LabError(
        f"{architecture.qemu} does not load plugins: {' '.join(printed.split())}",
        hint="install a QEMU that was built with TCG plugins.",
    )


def plugin_arguments(
    arch: Arch,
    out: Path,
    *,
    cache: Path,
    reporter: Reporter,
    own: Sequence[Path] = (),
    also: Also = "",
) -> tuple[str, ...]:
    """Return the plugin and its arguments for a boot whose counts go to ``out``; the others as for
    the agent.

    If the agent waits for later work, each trial has four sections: its own, the work that the
    kernel does later, what is executed when the guest should be quiet, and the rest.
    """
    plugin = build_plugin(arch, cache=cache, reporter=reporter)
    marks = agent_marks(arch, cache=cache, reporter=reporter, own=own, also=also)
    return (f"file={plugin}", f"out={out}", *marks)


def agent_marks(
    arch: Arch, *, cache: Path, reporter: Reporter, own: Sequence[Path] = (), also: Also = ""
) -> tuple[str, ...]:
    """Return the arguments of a plugin that say where the agent marks trials and stretches."""
    kinds, functions = zip(*(_MARKS + _LATER if also == "later" else _MARKS), strict=True)
    addresses = agent_addresses(functions, arch, cache=cache, reporter=reporter, own=own, also=also)
    return tuple(f"{kind}={address:#x}" for kind, address in zip(kinds, addresses, strict=True))


def read_counts(out: Path) -> list[TrialBlocks]:
    """Return what the plugin wrote: the boot first, then each trial. Raises LabError if it is not
    whole."""
    sections: list[tuple[int, list[CodeBlock]]] = []
    ended = False
    try:
        with out.open(encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] == "trial":
                    sections.append((int(words[2]), []))
                elif words[0] == "end":
                    ended = True
                else:
                    sections[-1][1].append(
                        CodeBlock(int(words[0], 16), int(words[1]), int(words[2]), words[3])
                    )
    except OSError:
        ended = False
    if not ended:
        raise LabError(
            "QEMU did not write the counts of what the guest's kernel executed",
            hint=(
                "check that QEMU supports TCG plugins: `qemu-system-x86_64 -help` must list "
                "-plugin."
            ),
        )
    return [TrialBlocks(stretches, tuple(blocks)) for stretches, blocks in sections]
