"""What ``kteardown doctor --fix`` does: the commands that mend what was found, run with consent."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from kteardown.errors import InputError, LabError

_INSTALL = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends")


def install(packages: Sequence[str]) -> list[list[str]]:
    """The commands that install Debian's ``packages``; none where there are none."""
    wanted = sorted(set(packages))
    return [_as_root(["apt-get", "update"]), _as_root([*_INSTALL, *wanted])] if wanted else []


def allow_kvm(device: Path = Path("/dev/kvm")) -> list[list[str]]:
    """The command that lets the user open the device of KVM; none where that can be, or there is none."""
    if not device.exists() or os.access(device, os.R_OK | os.W_OK):
        return []
    return [_as_root(["usermod", "--append", "--groups", "kvm", getpass.getuser()])]


def carry_out(commands: Sequence[Sequence[str]], out: Console, *, yes: bool) -> None:
    """Show the commands, ask, run them.

    Raises InputError where nobody can be asked, LabError where one fails.
    """
    for argv in commands:
        out.print(f"  {shlex.join(argv)}", highlight=False, markup=False, soft_wrap=True)
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(
                "nobody is there to agree to these commands", hint="add --yes, or run them by hand."
            )
        if not typer.confirm("run them now?"):
            return
    for argv in commands:
        if not shutil.which(argv[0]):
            raise LabError(f"{argv[0]} is not here", hint=f"run by hand: {shlex.join(argv)}")
        status = subprocess.run(argv, check=False).returncode
        if status:
            raise LabError(
                f"{shlex.join(argv)}: exit status {status}", hint="mend what it says above, then try again."
            )


def _as_root(argv: Sequence[str]) -> list[str]:
    return list(argv) if os.geteuid() == 0 else ["sudo", *argv]
