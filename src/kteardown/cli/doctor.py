"""``kteardown doctor``: what this machine can do, and the mend for each thing that it cannot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, get_args

import psutil
import typer

from kteardown.cli import doctor_fix, options
from kteardown.errors import InputError, KteardownError, LabError, MissingError
from kteardown.kernels.toolchain import compiler_version, need_build_tools
from kteardown.model.arch import Arch
from kteardown.paths import cache_dir, runs_dir
from kteardown.progress import SilentReporter
from kteardown.vm import acceleration
from kteardown.vm.agent import build_agent
from kteardown.vm.qemu import qemu_version

_DISK_GB = 8
_MEMORY_GB = 4


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``needed``: nothing runs without it."""

    name: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = True
    packages: tuple[str, ...] = ()
    """Those of Debian whose lack it is."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=doctor.__doc__)(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Show the commands that mend what can be mended, ask, and run them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
) -> None:
    """Say what this machine can do: accelerators (by a real probe boot), toolchains, memory, disk.

    Exit code 5 where something is missing that nothing runs without.

    Examples:

      kteardown doctor

      kteardown doctor --fix
    """
    if fix and as_json:
        raise InputError("--json or --fix, not both", hint="leave one of them out.")
    findings = _look()
    if fix:
        out = options.output()
        packages = [package for finding in findings for package in finding.packages]
        commands = [*doctor_fix.install(packages), *doctor_fix.allow_kvm()]
        if commands:
            out.print("what mends this machine:", highlight=False)
            doctor_fix.carry_out(commands, out, yes=yes)
            findings = _look()
        else:
            out.print("there is nothing that a command could mend", highlight=False)
    _tell(findings, as_json=as_json)


def _look() -> list[Finding]:
    return [*_architectures(), *_acceleration(), *_room()]


def _tell(findings: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        out = options.output()
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.needed else "[yellow]no[/]"
            out.print(f"{mark}  {finding.name:22} {finding.detail}", highlight=False, soft_wrap=True)
            if not finding.ok and finding.mend:
                out.print(f"    {'':22} {finding.mend}", highlight=False, markup=False, soft_wrap=True)
    missing = [finding.name for finding in findings if not finding.ok and finding.needed]
    if missing:
        raise LabError(f"this machine lacks: {', '.join(missing)}", hint="run `kteardown doctor --fix`.")


def _architectures() -> Iterator[Finding]:
    for arch in get_args(Arch):
        for name, look in _LOOKS.items():
            what, needed = f"{name} {arch}", arch == "x86_64"
            try:
                yield Finding(what, True, look(arch), needed=needed)
            except KteardownError as error:
                packages = error.packages if isinstance(error, MissingError) else ()
                yield Finding(what, False, error.message, error.hint, needed, packages)


def _build_tools(arch: Arch) -> str:
    need_build_tools(arch)
    return "all tools are there"


def _agent(arch: Arch) -> str:
    return str(build_agent(arch, cache=cache_dir(), reporter=SilentReporter()))


_LOOKS: dict[str, Callable[[Arch], str]] = {
    "QEMU": qemu_version,
    "compiler": compiler_version,
    "kernel builds": _build_tools,
    "agent": _agent,
}


def _acceleration() -> Iterator[Finding]:
    found = acceleration.best_wall_acceleration("x86_64", cache=cache_dir())
    yield Finding("instruction clock", True, "QEMU's emulator counts instructions on any host")
    works = found.acceleration == "kvm"
    otherwise = "the wall clock then runs on multi-threaded emulation, and every report says so."
    yield Finding("wall clock on KVM", works, found.reason or "a probe boot ran", otherwise, needed=False)


def _room() -> Iterator[Finding]:
    memory_gb = psutil.virtual_memory().total / 2**30
    less = f"guests may want {_MEMORY_GB} GB together; --memory-mb and --jobs make do with less."
    yield Finding("memory", memory_gb >= _MEMORY_GB, f"{memory_gb:.1f} GB", less, needed=False)
    for name, place in (("disk for the cache", cache_dir()), ("disk for runs", runs_dir())):
        place.mkdir(parents=True, exist_ok=True)
        free_gb = shutil.disk_usage(place).free / 2**30
        more = (
            "free some space, prune (`kteardown prune`), or set KTEARDOWN_CACHE or KTEARDOWN_RUNS elsewhere."
        )
        yield Finding(name, free_gb >= _DISK_GB, f"{free_gb:.0f} GB free in {place}", more, needed=False)
