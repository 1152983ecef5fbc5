"""``kteardown doctor``: check what this host can do, and show how to fix what is missing."""

import getpass
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, get_args

import psutil
import typer
from rich.console import Console
from rich.text import Text

from kteardown import sandbox, spawn
from kteardown.cli import options
from kteardown.errors import InputError, KteardownError, LabError, MissingError
from kteardown.extensions import function_of
from kteardown.kernels import cache_folder
from kteardown.kernels.toolchain import compiler_version, need_build_tools
from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.packages import install_command, manager
from kteardown.paths import cache_dir, runs_dir
from kteardown.progress import SilentReporter
from kteardown.run.places import place_of
from kteardown.visible import echo
from kteardown.vm import acceleration, host
from kteardown.vm.agent import build_agent
from kteardown.vm.host import qemu_version, wall_checks
from kteardown.vm.qemu import need_descriptors
from kteardown.vm.qemu_library import USER, confinement

_DISK_GB = 8
_MEMORY_GB = 4
_KVM = "wall clock on KVM"
_FOLDERS = "set KTEARDOWN_CACHE and KTEARDOWN_RUNS to folders that you can write."


@dataclass(frozen=True)
class Finding:
    """The result of one check. ``needed``: kteardown does not work without it."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do if the check failed."""
    needed: bool = True
    packages: tuple[str, ...] = ()
    """The Debian packages that are missing."""
    cost: str = ""
    """What it adds to figures of the wall clock if the check failed."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json")] = False,
    fix: Annotated[bool, typer.Option("--fix")] = False,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    on: Annotated[str | None, typer.Option("--on", "--machine", metavar="WHERE")] = None,
) -> None:
    place = place_of(on)
    if place.on:
        if fix or yes:
            raise InputError("--fix and --on cannot be used together", hint="use only one of them.")
        if place.examination:
            function_of(place.examination)(place, as_json=as_json)
        else:
            place.check()
        return
    if fix and as_json:
        raise InputError("--json and --fix cannot be used together", hint="use only one of them.")
    findings = _print(_check_all(), as_json=as_json)
    if fix:
        out = options.output()
        packages = [package for finding in findings for package in finding.packages]
        commands = [*install(packages), *allow_kvm()]
        if commands:
            out.print("these commands fix what is missing:")
            carry_out(commands, out, yes=yes)
            findings = _print(_check_all(), as_json=False)
        else:
            out.print("there is nothing that --fix can fix")
    missing = [finding.name for finding in findings if not finding.ok and finding.needed]
    if missing:
        raise LabError(
            f"missing on this host: {', '.join(missing)}", hint="run `kteardown doctor --fix`."
        )
    if not as_json:
        options.output().print(_ready(findings), soft_wrap=True)


def _ready(findings: Iterable[Finding]) -> str:
    """Return what a host on which nothing is missing is ready for."""
    ready = "Ready: kteardown can try patches and count instructions on this host."
    with_kvm = any(finding.name == _KVM and finding.ok for finding in findings)
    return ready if with_kvm else f"{ready} Times of the wall clock are emulated, without KVM."


def _check_all() -> Iterator[Finding]:
    """Make the checks one after the other; the agents, which may have to be built, come last."""
    yield from _architectures(_CHECKS)
    yield from _sandbox()
    yield from _guests()
    # What adds noise to the wall clock on this host. kteardown works without changing any of it.
    for check in wall_checks(host.facts()):
        yield Finding(
            f"wall: {check.name}", check.ok, check.state, check.command, False, (), check.cost
        )
    yield from _memory_and_disk()
    yield from _architectures({"agent": _agent})


def _print(findings: Iterable[Finding], *, as_json: bool) -> list[Finding]:
    """Print each finding when it is made, and return all of them."""
    made: list[Finding] = []
    if as_json:
        made += findings
        echo(json.dumps([asdict(finding) for finding in made], indent=1))
    else:
        out = options.output()
        for finding in findings:
            made.append(finding)
            colour = "green" if finding.ok else "red" if finding.needed else "yellow"
            mark = ("ok" if finding.ok else "no", colour)
            out.print(Text.assemble(mark, f"  {finding.name:22} {finding.detail}"), soft_wrap=True)
            for text in (finding.cost, finding.hint):
                if not finding.ok and text:
                    out.print(f"    {'':22} {text}", soft_wrap=True)
    return made


def _architectures(checks: Mapping[str, Callable[[Arch], str]]) -> Iterator[Finding]:
    for arch in get_args(Arch):
        for name, check in checks.items():
            what = f"{name} {arch}"
            needed = arch == DEFAULT_ARCH
            try:
                yield Finding(what, True, check(arch), needed=needed)
            except KteardownError as error:
                packages = error.packages if isinstance(error, MissingError) else ()
                yield Finding(what, False, error.message, error.hint, needed, packages)
            except OSError as error:
                place = f"{error.filename}: " if error.filename else ""
                yield Finding(what, False, f"{place}{error.strerror}", _FOLDERS, needed)


def _agent(arch: Arch) -> str:
    return str(build_agent(arch, cache=cache_dir(), reporter=SilentReporter()))


def _build_tools(arch: Arch) -> str:
    need_build_tools(arch)
    return "all tools are installed"


_CHECKS: dict[str, Callable[[Arch], str]] = {
    "QEMU": qemu_version,
    "compiler": compiler_version,
    "kernel builds": _build_tools,
}


def _sandbox() -> Iterator[Finding]:
    """Try to escape from the sandbox: read a file of the user, write one, reach the network, become
    root."""
    name = "build sandbox"
    if reason := sandbox.problem():
        hint = "install bubblewrap, and permit user namespaces (docs/safety.md)."
        packages = ("bubblewrap",)
        yield Finding(
            name, False, f"{reason}: only shipped series are built", hint, False, packages
        )
        return
    with tempfile.NamedTemporaryFile("w", prefix="kteardown-") as file:
        file.write("secret")
        file.flush()
        tries = (
            f"cat {file.name}; echo x > {file.name}; setpriv --reuid 0 id -u; ls /sys/class/net; "
            "id -u"
        )
        printed = sandbox.capture(["sh", "-c", f"({tries}) 2> /dev/null"], [])
        escaped = Path(file.name).read_text() != "secret" or printed.split() != [
            str(os.geteuid() or sandbox.USER)
        ]
    detail = (
        "a program in it escaped" if escaped else "a program in it cannot read or write your files"
    )
    yield Finding(
        name, not escaped, detail, "do not build patches of others on this host.", needed=False
    )


def _guests() -> Iterator[Finding]:
    try:
        need_descriptors()
        yield Finding("records of guests", True, "QEMU can open the file descriptors of the lab")
    except LabError as error:
        yield Finding("records of guests", False, error.message, error.hint)
    prefix, filtered = confinement(DEFAULT_ARCH, "icount")
    user = "as root" if os.geteuid() == 0 and f"--reuid={USER}" not in prefix else "not as root"
    detail = f"QEMU runs {user}, {'with' if filtered else 'without'} a filter of system calls"
    hint = "use a QEMU with seccomp, in a folder that all users can read."
    yield Finding(
        "confinement of guests", bool(filtered) and user != "as root", detail, hint, needed=False
    )
    wall_acceleration = acceleration.best_wall_acceleration(DEFAULT_ARCH, cache=cache_dir())
    yield Finding("instruction clock", True, "QEMU's instruction counter works on every host")
    works = wall_acceleration.acceleration == "kvm"
    otherwise = (
        "without KVM the wall clock uses multi-threaded emulation (mttcg); every report states "
        "that."
    )
    yield Finding(
        _KVM,
        works,
        wall_acceleration.reason or "a probe boot ran",
        otherwise,
        needed=False,
    )


def _memory_and_disk() -> Iterator[Finding]:
    memory_gb = psutil.virtual_memory().total / 2**30
    less = f"guests may need {_MEMORY_GB} GB together; with --memory-mb and --jobs they need less."
    yield Finding("memory", memory_gb >= _MEMORY_GB, f"{memory_gb:.1f} GB", less, needed=False)
    try:
        cache_folder.check_path(cache_dir())
    except InputError as error:
        yield Finding("folder of the cache", False, error.message, error.hint)
    for name, place in (("disk for the cache", cache_dir()), ("disk for runs", runs_dir())):
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                free_gb = shutil.disk_usage(place).free / 2**30
        except OSError as error:
            yield Finding(name, False, f"{place} cannot be written: {error.strerror}", _FOLDERS)
            continue
        more = (
            "free some space, run `kteardown prune`, or move KTEARDOWN_CACHE or KTEARDOWN_RUNS "
            "elsewhere."
        )
        yield Finding(
            name, free_gb >= _DISK_GB, f"{free_gb:.0f} GB free in {place}", more, needed=False
        )


def install(packages: Sequence[str]) -> list[list[str]]:
    """Return the commands that install ``packages``, named as in Debian; empty without packages."""
    if not packages:
        return []
    update = [["apt-get", "update"]] if manager() == "apt" else []
    return [_as_root(command) for command in (*update, install_command(sorted(set(packages))))]


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
        # The shell reports a program that is not there.
        if status := spawn.run(["sh", "-c", shlex.join(argv)], check=False).returncode:
            raise LabError(
                f"{shlex.join(argv)}: exit status {status}",
                hint="fix what the command reports above, then try again.",
            )


def _as_root(argv: Sequence[str]) -> list[str]:
    return list(argv) if os.geteuid() == 0 else ["sudo", *argv]
