"""Programs of this host in the guest: with their libraries, at their own paths, with the links on
the way.

They are never executed here, and so not by ``ldd``: ELF files say which libraries a program needs,
and these are found as the dynamic loader does. Every offset and size in a file is from outside:
none is used before it is checked.
"""

import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath

from kteardown.errors import InputError, failing
from kteardown.model.arch import Arch, host_arch
from kteardown.paths import programs_dir
from kteardown.script.elf import MACHINES, Elf, elf_of, find_library, is_elf, libraries, read_elf
from kteardown.script.root import GuestTree
from kteardown.script.words import candidates, shebang

PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where a guest looks for programs, after the folder of the script."""
MOST_BYTES = 512 << 20
"""Of all programs with their libraries: they are in the memory of the guest."""

# Files below these folders keep their paths. Others, such as those of the home folder, are in
# /usr/local/bin.
_SYSTEM = (
    "/usr/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/opt/",
    "/nix/store/",
    "/gnu/store/",
)
_MERGED = ("bin", "sbin", "lib", "lib64")
_MOST_LINKS = 40
_UNWINDING = "libgcc_s.so.1"  # The C library loads it when a thread is cancelled.
_LARGE_BYTES = 4 << 20
_TEXT_BYTES = 256 << 10
_PYTHON = re.compile(r"python3\.[0-9]+")
# Of Python's standard library. What is compiled would not be used: files of a guest have another
# time.
_NOT_NEEDED = frozenset(
    {
        "__pycache__",
        "test",
        "tests",
        "site-packages",
        "dist-packages",
        "idlelib",
        "tkinter",
        "turtledemo",
    }
    | {"ensurepip", "lib2to3", "pydoc_data", "venv"}
)


class Unusable(InputError):
    """The guest cannot run a program of this host."""

    def __init__(self, why: str) -> None:
        hint = "link the program statically, or give a root file system that has it (--root)."
        super().__init__(f"the guest cannot run a program of this host: {why}", hint=hint)


class HostPrograms:
    """Adds programs of this host to the tree of a guest.

    With ``has_root`` the tree begins with a root of the user's: its files are not replaced.
    """

    def __init__(self, tree: GuestTree, arch: Arch, *, has_root: bool = False) -> None:
        self._tree, self._arch, self._has_root = tree, arch, has_root
        self._added: dict[str, str] = {}
        self._adding: set[str] = set()
        self.left_out: dict[str, None] = {}
        self._copied: dict[str, int] = {}
        self.native = host_arch() == arch
        """Whether the guest can run what is installed on this host."""
        if not has_root:
            for name in _MERGED:
                if self.native and os.path.islink(f"/{name}"):
                    tree.symlink(name, os.readlink(f"/{name}"))
                elif not self.native and name.endswith("bin"):
                    tree.symlink(name, f"usr/{name}")
                tree.folder(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the programs that were added."""
        return tuple(sorted({Path(path).name for path in self._added}))

    @property
    def size(self) -> int:
        """The bytes of all files that were added."""
        return sum(self._copied.values())

    def find(self, name: str) -> Path | None:
        """Return a program by its name: of the user's folder of programs, or of this host.

        On this host the guest's folders come first, then those of the user's shell.
        """
        user_folder = programs_dir()
        folders = [str(user_folder.absolute())] if user_folder else []
        folders += [*PATH, *os.environ.get("PATH", "").split(os.pathsep)] if self.native else []
        paths = (Path(folder, name) for folder in dict.fromkeys(folders) if folder.startswith("/"))
        return next(filter(_is_program, paths), None)

    def add(self, path: Path) -> str:
        """Add the program ``path`` with what it needs, and return its path in the guest.

        Raises Unusable if the guest cannot run it, InputError if all are too large.
        """
        if str(path) in self._added:
            return self._added[str(path)]
        if str(path) in self._adding:
            raise Unusable(f"{path} is a script that is its own interpreter")
        self._adding.add(str(path))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}") from error
        if is_elf(data):
            self.add_needed(path, data)
            self._add_modules(path)
        elif data.startswith(b"#!"):
            self._add_interpreter(path, data)
        else:
            raise Unusable(f"{path} is neither an ELF file nor a script")
        guest_path = self._added[str(path)] = self._copy(path)
        if str(path.parent) not in PATH and guest_path == str(path):
            self._tree.symlink(f"usr/local/bin/{path.name}", str(path))
        return guest_path

    def add_needed(self, path: Path, data: bytes) -> None:
        """Add the libraries of a program that is added elsewhere. Raises as ``add`` does."""
        try:
            elf = read_elf(data, str(path))
        except InputError as error:
            raise Unusable(error.message) from error
        if elf.machine != MACHINES[self._arch]:
            raise Unusable(f"{path} is not a program for {self._arch}")
        self._add_libraries(Path(os.path.realpath(path)), elf)

    def _copy(self, path: Path) -> str:
        """Add one file, and return its path in the guest: its own if it belongs to the system."""
        if self._has_root or not os.path.realpath(path).startswith(_SYSTEM):
            guest_path = (
                str(path) if str(path).startswith(_SYSTEM) else f"/usr/local/bin/{path.name}"
            )
            if not (self._has_root and self._tree.resolve(guest_path) in self._tree):
                self._put(path, guest_path)
            return guest_path
        # As the kernel looks it up, with each link on the way.
        resolved = PurePosixPath("/")
        waiting = list(reversed(path.parts[1:]))
        links = 0
        while waiting:
            name = waiting.pop()
            step = resolved.parent if name == ".." else resolved / name
            if not os.path.islink(step):
                resolved = step
                continue
            links += 1
            if links > _MOST_LINKS:
                raise Unusable(f"the symbolic links of {path} form a loop")
            target = os.readlink(step)
            self._tree.symlink(str(step).lstrip("/"), target)
            resolved = PurePosixPath("/") if target.startswith("/") else resolved
            waiting += [part for part in target.split("/")[::-1] if part not in ("", ".")]
        self._put(Path(resolved), str(resolved))
        return str(path)

    def _put(self, path: Path, guest_path: str) -> None:
        if guest_path in self._copied:
            return
        if not may_be_copied(path):
            raise Unusable(f"{path} is not of the system")
        with failing(f"cannot read {path} for the guest", hint="check that you may read it."):
            data = path.read_bytes()
            mode = path.stat().st_mode
        self._copied[guest_path] = len(data)
        if self.size > MOST_BYTES:
            raise InputError(
                "the guest needs more than "
                f"{MOST_BYTES >> 20} MB of programs of this host: {path} is over the limit",
                hint="name fewer programs, or give a root file system that has them (--root).",
            )
        self._tree.file(guest_path.lstrip("/"), data, mode & 0o7777 | 0o400)

    def _add_libraries(self, real: Path, elf: Elf) -> None:
        if elf.interpreter:
            if elf_of(Path(elf.interpreter), elf.machine) is None:
                raise Unusable(
                    f"the dynamic loader of {real}, {elf.interpreter}, is not on this host"
                )
            self._copy(Path(elf.interpreter))
        try:
            path_by_name = dict(libraries(real, elf))
        except InputError as error:
            raise Unusable(error.message) from error
        absent = [name for name, path in path_by_name.items() if path is None]
        if absent:
            raise Unusable(f"libraries of {real} are not on this host: {', '.join(absent)}")
        paths = {name: path for name, path in path_by_name.items() if path is not None}
        # The guest has no /etc/ld.so.conf: its loader always looks where the C library is.
        default = next(
            (path.parent for name, path in paths.items() if name.startswith("libc.")), Path("/lib")
        )
        if default != Path("/lib") and (unwinding := find_library(_UNWINDING, elf.machine)):
            paths.setdefault(_UNWINDING, unwinding)
        for name, path in paths.items():
            guest_path = self._copy(path)
            if Path(guest_path).parent != default and "/" not in name:
                self._tree.symlink(f"{default}/{name}".lstrip("/"), guest_path)

    def _add_interpreter(self, path: Path, data: bytes) -> None:
        try:
            line = shebang(data, str(path))
        except InputError as error:
            raise Unusable(error.message) from error
        program = None
        if line is not None:
            program = (
                Path(line.program) if line.program.startswith("/") else self.find(line.program)
            )
        if line is None or program is None or not _is_program(program):
            raise Unusable(f"{path} is a script, and its interpreter is not on this host")
        self.add(program)
        if line.is_shell:
            for name, likely in candidates(data[:_TEXT_BYTES].decode(errors="replace")).items():
                self.add_if_there(name, likely=likely)

    def add_if_there(self, word: str, *, likely: bool = True) -> None:
        """Add the program that a text names, if there is one that the guest can run.

        A large one is not added for a word that may be data, such as ``node``.
        """
        if word.startswith("/") and not (self.native and word.startswith(_SYSTEM)):
            return
        path = Path(word) if word.startswith("/") else self.find(word)
        if path is None or not _is_program(path):
            return
        if not likely and str(path) not in self._added and path.stat().st_size > _LARGE_BYTES:
            self.left_out[path.name] = None
            return
        with suppress(Unusable):
            self.add(path)

    def _add_modules(self, path: Path) -> None:
        """Add the standard library of an interpreter."""
        real = Path(os.path.realpath(path))
        if _PYTHON.fullmatch(real.name):
            for library in ("lib", "lib64"):
                self._add_folder(real.parents[1] / library / real.name)
        elif path.name == "perl":
            # Debian's has the modules that the system needs; the others are too many.
            for folder in sorted(Path("/usr/lib").glob("*/perl-base")):
                self._add_folder(folder)

    def _add_folder(self, folder: Path) -> None:
        for where, folders, names in os.walk(folder):
            folders[:] = sorted(
                name for name in folders if name not in _NOT_NEEDED and "config-" not in name
            )
            for name in sorted(names):
                path = Path(where, name)
                if not os.path.isfile(path) or path.suffix == ".a":
                    continue
                try:
                    if name.endswith(".so"):
                        self.add_needed(path, path.read_bytes())
                    self._copy(path)
                except (OSError, Unusable):
                    # A module that does not work on this host either.
                    continue


def may_be_copied(path: Path) -> bool:
    """Return whether a guest may get a file of this host: with ``KTEARDOWN_SYSTEM_PROGRAMS`` only
    one of the system, or of the user's folder of programs.

    A script of someone else could otherwise name, and read, any program of the user's.
    """
    if not os.environ.get("KTEARDOWN_SYSTEM_PROGRAMS"):
        return True
    real = os.path.realpath(path)
    folder = programs_dir()
    return real.startswith(_SYSTEM) or bool(folder and Path(real).is_relative_to(folder.resolve()))


def _is_program(path: Path) -> bool:
    # Path.is_file() raises for folders that the user may not read.
    return os.path.isfile(path) and os.access(path, os.X_OK) and may_be_copied(path)
