"""Programs that a guest needs beside the agent: statically linked ones out of Debian's packages, or, where no
package has them, out of the user's own folder of programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.source import Sources, package_from_json
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.paths import programs_dir
from kteardown.progress import Reporter


@dataclass(frozen=True)
class _Program:
    package: str
    places: tuple[str, ...]
    """Where the package has it; Debian 13 moved /bin into /usr."""


_OWN = ("schbench",)
"""What only the user can provide."""
_PROGRAMS = {"busybox": _Program("busybox-static", ("bin/busybox", "usr/bin/busybox"))}


def ensure(names: Sequence[str], arch: Arch, sources: Sources, reporter: Reporter) -> tuple[Path, ...]:
    """The files of the programs ``names`` for guests of ``arch``, each called as its program.

    Out of the user's own folder, or the cache of ``sources``, or fetched into it. Raises InputError for
    a program that is not known, not there or in no suite, LabError where it cannot be fetched or unpacked.
    """
    return tuple(_own(name) if name in _OWN else _ensure(name, arch, sources, reporter) for name in names)


def take(deb: Path, name: str, folder: Path) -> Path:
    """The program ``name`` out of its package ``deb``, put into ``folder``. Raises InputError, LabError."""
    unpacked = folder / "package"
    done = toolchain.capture(["dpkg-deb", "--extract", str(deb), str(unpacked)])
    if done.returncode:
        raise LabError(
            f"{deb.name} could not be unpacked: {done.stderr.strip()}", hint="remove it and run this again."
        )
    places = _program(name).places
    found = next((unpacked / place for place in places if (unpacked / place).is_file()), None)
    if found is None:
        raise LabError(
            f"{deb.name} has none of {', '.join(places)}",
            hint="choose a value of the parameter that needs no program.",
        )
    target = found.rename(folder / name)
    cache_folder.remove(unpacked)
    return target


def _own(name: str) -> Path:
    folder = programs_dir()
    if folder is None or not (folder / name).is_file():
        raise InputError(
            f"the guest needs {name}, which is in no package, nor in {folder or 'KTEARDOWN_PROGRAMS'}",
            hint=f"set KTEARDOWN_PROGRAMS to a folder with {name} in it, statically linked for the guest.",
        )
    return folder / name


def _program(name: str) -> _Program:
    if name not in _PROGRAMS:
        raise InputError(
            f"no program {name!r} is known", hint=f"there are: {', '.join((*_PROGRAMS, *_OWN))}."
        )
    return _PROGRAMS[name]


def _ensure(name: str, arch: Arch, sources: Sources, reporter: Reporter) -> Path:
    wanted, architecture = _program(name).package, ARCHITECTURES[arch].debian
    answer = sources.remember(
        f"program:{name}",
        architecture,
        lambda: {"package": json.dumps(asdict(sources.find_package(wanted, architecture)))},
    )
    package = package_from_json(answer["package"])
    slug = f"{wanted}_{package.version}_{architecture}".replace(":", "_")
    target = sources.folder / "programs" / slug
    with cache_folder.locked(target, reporter, f"unpack {slug}"):
        if not target.is_dir():
            deb = sources.package_file(package, architecture)
            with cache_folder.published(target) as folder:
                take(deb, name, folder)
    return target / name
