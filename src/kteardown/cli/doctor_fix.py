"""``kteardown doctor --fix``: the commands that fix what ``doctor`` found, run after confirmation."""

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
    """Return the commands that install the Debian ``packages``; empty if there are no packages."""
    names = sorted(set(packages))
    return [_as_root(["apt-get", "update"]), _as_root([*_INSTALL, *names])] if names else []


def allow_kvm(device: Path = Path("/dev/kvm")) -> list[list[str]]:
    """Return the command that gives the user access to the KVM device.

    Empty if the user has access already, or if there is no such device.
    """
    if not device.exists() or os.access(device, os.R_OK | os.W_OK):
        return []
    return [_as_root(["usermod", "--append", "--groups", "kvm", getpass.getuser()])]


def carry_out(commands: Sequence[Sequence[str]], out: Console, *, yes: bool) -> None:
    """Show the commands, ask for confirmation unless ``yes``, and run them.

    Raises InputError if standard input is not a terminal, LabError if a command fails.
    """
    for argv in commands:
        out.print(f"  {shlex.join(argv)}", soft_wrap=True)
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(
                "these commands cannot be confirmed: standard input is not a terminal",
                hint="add --yes, or run them yourself.",
            )
        if not typer.confirm("run them now?"):
            return
    for argv in commands:
        if not shutil.which(argv[0]):
            raise LabError(
                f"{argv[0]}: there is no such program", hint=f"run it yourself: {shlex.join(argv)}"
            )
        status = subprocess.run(argv, check=False).returncode
        if status:
            raise LabError(
                f"{shlex.join(argv)}: exit status {status}",
                hint="fix what the command reports above, then try again.",
            )


def _as_root(argv: Sequence[str]) -> list[str]:
    return list(argv) if os.geteuid() == 0 else ["sudo", *argv]
