"""The programs that guests need in addition to the agent.

They are statically linked, and come from Debian packages or, if no package has them, from the
user's folder of programs.
"""

from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder, unpack
from kteardown.kernels.source import Sources
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.paths import programs_dir
from kteardown.progress import Reporter
from kteardown.vm import seal

_USER_PROGRAMS = ("schbench",)
"""Programs that only the user can provide."""
_PROGRAMS = {"busybox": ("busybox-static", ("bin/busybox", "usr/bin/busybox"))}
"""Their package, and their possible paths in it: Debian 13 moved /bin into /usr."""


def guest_programs(
    names: Sequence[str], arch: Arch, sources: Sources, reporter: Reporter
) -> tuple[Path, ...]:
    """Return the files of the programs ``names`` for guests of ``arch``; the name of each is the
    program's.

    A program comes from the user's folder of programs or from the cache of ``sources``, into which
    it is fetched first if necessary. Raises InputError if a program is unknown, missing or in no
    suite, LabError if it cannot be fetched or unpacked.
    """
    files = []
    for name in names:
        if name in _USER_PROGRAMS:
            user_folder = programs_dir()
            if user_folder is None or not (user_folder / name).is_file():
                where = (
                    f"{user_folder} does not contain it"
                    if user_folder
                    else "KTEARDOWN_PROGRAMS is not set"
                )
                raise InputError(
                    f"the guest needs {name}, which is not in a Debian package, and {where}",
                    hint=(
                        f"set KTEARDOWN_PROGRAMS to a folder that contains {name}, statically "
                        "linked for the guest."
                    ),
                )
            files.append(user_folder / name)
            continue
        if name not in _PROGRAMS:
            raise InputError.unknown(
                f"unknown guest program {name!r}", name, (*_PROGRAMS, *_USER_PROGRAMS)
            )
        package_name = _PROGRAMS[name][0]
        architecture = ARCHITECTURES[arch].debian
        package = sources.package(f"program:{name}", architecture, package_name, architecture)
        slug = f"{package_name}_{package.version}_{architecture}".replace(":", "_")
        target = sources.folder / "programs" / slug
        with cache_folder.locked(target, reporter, f"unpack {slug}"):
            if not seal.is_intact(target, reporter):
                file = sources.package_file(package, architecture)
                with cache_folder.published(target) as folder:
                    extract(file, name, folder)
        files.append(cache_folder.hold(target) / name)
    return tuple(files)


def extract(file: Path, name: str, folder: Path) -> Path:
    """Extract the program ``name`` from its package ``file`` into ``folder``.

    Raises LabError if the package does not contain it or is damaged.
    """
    unpacked = folder / "package"
    unpack.unpack_deb(file, unpacked)
    paths = _PROGRAMS[name][1]
    program = next((unpacked / path for path in paths if (unpacked / path).is_file()), None)
    if program is None:
        raise LabError(
            f"{file.name} does not contain {name}: it has none of {', '.join(paths)}",
            hint="choose a value of the workload's parameter that does not need this program.",
        )
    target = program.rename(folder / name)
    cache_folder.remove(unpacked)
    return target
