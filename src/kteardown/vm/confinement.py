"""Start QEMU with as few rights as it works with, for the case that a guest breaks out of it.

QEMU cannot gain rights or start programs, and reads and writes only files that the lab has opened. If the lab
is root, QEMU runs as a user that owns nothing. What does not work on this host is left out.
"""

import contextlib
import functools
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from kteardown.errors import LabError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.vm.job import Acceleration, BootJob

USER = 61998
"""The user and the group of QEMU if the lab is root: outside of the ranges of accounts, and without one."""
_KVM = "/dev/kvm"
_CAP_KILL, _CAP_SYS_NICE = 5, 23
_NO_RIGHTS = ("setpriv", "--no-new-privs", "--inh-caps=-all")
_ROOT = (*_NO_RIGHTS, "--bounding-set=-all")
_OTHER_USER = (*_ROOT, f"--reuid={USER}", f"--regid={USER}")
_SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
# The kernel kills QEMU when the thread of the lab that started it exits, even by SIGKILL, for which a handler
# or a destructor would not run. setpriv requests it last, since a change of the user cancels it. The shell
# covers the time before that: if the lab has exited by then, the parent of the shell is another process.
_WITH_LAB = ("--pdeathsig", "KILL", "sh", "-c", 'ulimit -c 0; [ "$PPID" = "$0" ] && exec "$@"')

Words = tuple[str, ...]


def confinement(arch: Arch, acceleration: Acceleration) -> tuple[Words, Words]:
    """Return the words before QEMU's command, with which it ends with the lab, and options to add to it.

    They are the strictest with which QEMU starts on this host, and change nothing in the guest.
    """
    kvm = acceleration == "kvm"
    group = os.stat(_KVM).st_gid if kvm else 0
    other = (*_OTHER_USER, f"--groups={group}" if group else "--clear-groups")
    capable = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    # To kill the process of another user, and to pin it to CPUs, which containers often may not do.
    needed = 1 << _CAP_KILL | kvm << _CAP_SYS_NICE
    may_change = os.geteuid() == 0 and capable & needed == needed
    works = may_change and (not kvm or _works((*other, "test", "-r", _KVM, "-a", "-w", _KVM)))
    qemu = shutil.which(ARCHITECTURES[arch].qemu) or ""
    for setpriv, sandbox in itertools.product([*[other] * works, _ROOT, _NO_RIGHTS], (_SANDBOX, ())):
        # It installs the filter of system calls before it lists its CPUs.
        if _works((*setpriv, qemu, *sandbox, "-cpu", "help")):
            break
    return (*setpriv, *_WITH_LAB, str(os.getpid())), sandbox


@functools.cache
def _works(command: Words) -> bool:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def opened(job: BootJob) -> Iterator[tuple[BootJob, list[int], Words]]:
    """Yield ``job`` with descriptors in place of paths, these descriptors, and options that QEMU needs.

    Raises LabError if a file cannot be opened.
    """
    inherit: list[int] = []
    with contextlib.ExitStack() as files:

        def name(file: BinaryIO) -> str:
            inherit.append(files.enter_context(file).fileno())
            return f"/dev/fd/{inherit[-1]}"

        try:
            # A descriptor that QEMU duplicates: a run directory may be on a disk that has no other owners.
            name(job.console.open("wb"))
            options = ("-add-fd", f"fd={inherit[0]},set=1")
            lent = replace(job, image=Path(name(readable(job.image))), console=Path("/dev/fdset/1"))
            lent = replace(lent, initramfs=Path(name(readable(job.initramfs))))
            if job.plugin:
                library, out = (Path(word.partition("=")[2]) for word in job.plugin[:2])
                counts = f"out={name(out.open('wb'))}"
                os.fchmod(inherit[-1], 0o622)
                lent = replace(lent, plugin=(f"file={name(readable(library))}", counts, *job.plugin[2:]))
        except OSError as error:
            raise LabError(
                f"cannot open {error.filename}: {error.strerror}",
                hint="free some space, or set KTEARDOWN_RUNS to a folder on another disk.",
            ) from error
        yield lent, inherit, options


def readable(path: Path) -> BinaryIO:
    """Open a file that every user can read by the name of its descriptor: a copy in memory, if need be."""
    file = path.open("rb")
    if os.fstat(file.fileno()).st_mode & 0o004:
        return file
    with file:
        copy = os.fdopen(os.memfd_create(path.name), "w+b", buffering=0)
        shutil.copyfileobj(file, copy)
        return copy
