"""The root file system of a guest that runs scripts: what to run, its files, and programs of this
host.

It is an archive that is added to that of the agent. /script/NAME says what is run for the workload
NAME, one directive a line, which is a word, a blank and a text: ``argument``, ``environment
NAME=VALUE``, ``positional``, ``allow``, ``limit_ms``. The scripts and their files are in /files.

Without a root of the user's, the guest has the programs of this host that the texts name, and
applets of busybox under all other names. Where a host's program is there, ``sh`` is the host's,
too: busybox's own shell prefers its applets to other programs of the same name. A guest of another
architecture has only busybox.

A C file of the user's is compiled into a static program, in the sandbox of the builds.
"""

import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.door import Entry
from kteardown.errors import InputError, LabError, MissingError, failing
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.arch import Arch, host_arch
from kteardown.model.workload import Script, Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.rundir.directory import GUEST_FILE
from kteardown.rundir.snapshot import read_json
from kteardown.script.beside import beside, read_file
from kteardown.script.compile_static import compile_static
from kteardown.script.elf import MACHINES, is_elf, read_elf
from kteardown.script.host import PATH, HostPrograms, may_be_copied
from kteardown.script.root import GuestTree, add_root
from kteardown.script.words import Shebang, candidates, direct, shebang
from kteardown.vm.initramfs import archive

_ENVIRONMENT = {"PATH": ":".join(("/files", *PATH)), "HOME": "/root", "LC_ALL": "C", "TERM": "dumb"}
_FOLDERS = (
    *(
        "dev",
        "proc",
        "sys",
        "run",
        "etc",
        "root",
        "var",
        "var/tmp",
        "tmp",
        "files",
        "script",
        "usr/bin",
    ),
    # Where scripts mount something.
    *("mnt", "media", "opt", "home"),
)
_STICKY = ("tmp", "var/tmp")
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"  # words: quote
_GROUP = "root:x:0:\nnogroup:x:65534:\n"
_SUDO = b'#!/bin/sh\nexec env "$@"\n'
_TEXT_BYTES = 1 << 20
_APPLETS = re.compile(rb"[a-z0-9._\[-]{1,32}")
_MOST_APPLETS = 1000
_MAIN = re.compile(rb"\bmain\s*\(")
_ARCHIVE = "guest.cpio"


@dataclass(frozen=True)
class GuestFiles:
    """The archive, which is the same for the same files."""

    archive: bytes
    hashes: dict[str, str]
    """Of each regular file, by its path in the guest: the sha256 of its contents."""
    notes: tuple[str, ...]
    """What the user should know."""


def guest_files(
    workloads: Mapping[str, Workload],
    folder: Path,
    *,
    arch: Arch,
    reporter: Reporter,
    busybox: Path | None = None,
) -> GuestFiles:
    """Return the files of guests that run ``workloads``, which are scripts, of
    ``folder``/workloads.

    ``busybox`` is the program for guests of ``arch``; None: that of the folder of programs, or this
    host. Raises InputError if a file is missing or damaged, a program cannot run in the guest, or
    all is too large; MissingError if busybox or a compiler is not installed; BuildError if a C file
    does not compile.
    """
    where = folder / "workloads"
    scripts = {name: workload.script for name, workload in sorted(workloads.items())}
    roots = {
        str(where / script.root) if script.root else "" for script in scripts.values() if script
    }
    if len(roots) > 1:
        raise InputError(
            f"the workloads {', '.join(scripts)} need different root file systems, but they run in "
            "the same guest",
            hint="write one experiment for each root.",
        )
    root = next(iter(roots), "")
    guest = _Guest(where, arch, reporter, has_root=bool(root))
    if root:
        guest.notes += add_root(guest.tree, Path(root))
    guest.begin(busybox)
    for name, script in scripts.items():
        if script is not None:
            guest.add(name, script)
    return guest.end()


class _Guest:
    """The files of one guest, while they are collected."""

    def __init__(self, where: Path, arch: Arch, reporter: Reporter, *, has_root: bool) -> None:
        self._where, self._arch, self._reporter = where, arch, reporter
        self._has_root = has_root
        self._applets: frozenset[str] = frozenset()
        self._paths = {"/bin/sh"}  # system() in a C program uses this one.
        self.tree, self.notes = GuestTree(), list[str]()

    def begin(self, busybox: Path | None) -> None:
        """Make the folders, and add busybox unless there is a root."""
        self._host = HostPrograms(self.tree, self._arch, has_root=self._has_root)
        for name in _FOLDERS:
            self.tree.folder(name, 0o1777 if name in _STICKY else 0o755)
        for path, text in (("etc/passwd", _PASSWD), ("etc/group", _GROUP)):
            if self.tree.resolve(path) not in self.tree:
                self.tree.file(path, text.encode())
        if self._has_root:
            return
        program = busybox or self._host.find("busybox")
        if program is None:
            raise MissingError(
                f"a guest that runs a script needs busybox for {self._arch}", ["busybox-static"]
            )
        with failing(f"cannot read {program}", hint="check that you may read it."):
            data = program.read_bytes()
        if read_elf(data, str(program)).machine != MACHINES[self._arch]:
            raise InputError(
                f"{program} is not a program for {self._arch}",
                hint=f"set KTEARDOWN_PROGRAMS to a folder with a static busybox for {self._arch}.",
            )
        self._applets = frozenset(_applets(data))
        if read_elf(data, str(program)).interpreter:
            self._host.add(program)
            self.tree.symlink("usr/bin/busybox", str(program))
        else:
            self.tree.file("usr/bin/busybox", data, 0o755)

    def add(self, name: str, script: Script) -> None:
        """Add what the workload ``name`` needs. Raises as ``guest_files`` does."""
        for file in script.files:
            self._add_file(file, compiled=not script.file.endswith(".c"))
        for program in script.programs:
            self._add_program(program)
        if script.command:
            argv = self._command(name, script.command)
        elif script.file.endswith(".c"):
            self._compile(script.file, name, [self._where / file for file in script.files])
            argv = [f"/files/{name}"]
        elif script.file:
            argv = self._script(script.file)
        else:
            raise InputError(
                f"the workload {name} has neither a file nor a command",
                hint="write `file` or `command` into its table [script].",
            )
        lines = [f"argument {word}" for word in (*argv, *script.arguments)]
        lines += [f"environment {key}={value}" for key, value in _ENVIRONMENT.items()]
        lines += [] if script.command else ["positional"]
        lines += [f"allow {end}" for end in script.allow]
        lines.append(f"limit_ms {math.ceil(script.limit_s * 1000)}")
        if wrong := next((line for line in lines if "\n" in line or "\0" in line), None):
            raise InputError(
                f"the workload {name} has a line break in a word of its command: {wrong!r}",
                hint="put the command into a script.",
            )
        self._put(f"script/{name}", "".join(f"{line}\n" for line in lines).encode(), 0o644)

    def end(self) -> GuestFiles:
        """Add what depends on everything else, and return all."""
        names = self._host.names
        if names and not self._has_root:
            self._host.add_if_there("/bin/sh")
        # The names of busybox that no other program has.
        for name in sorted(self._applets - {"bash", "busybox"}):
            if self._which(name) is None:
                self.tree.symlink(f"usr/bin/{name}", "busybox")
        for word in sorted(self._paths):
            if Path(word).name in self._applets and self._which(word) is None:
                self.tree.symlink(word[1:], "/usr/bin/busybox")
        if names:
            self.notes.append(
                f"programs of this host with their libraries, {self._host.size / 1e6:.1f} MB: "
                f"{', '.join(names)}"
            )
        if large := [name for name in self._host.left_out if self._which(name) is None]:
            self.notes.append(
                "left out, because they are large and may not be needed (add them with "
                f"--programs): {', '.join(large)}"
            )
        return GuestFiles(
            archive(list(self.tree.entries())), self.tree.hashes(), tuple(dict.fromkeys(self.notes))
        )

    def _which(self, name: str) -> str | None:
        """Return the path of a program of the guest, as it will be found."""
        paths = (
            [name] if name.startswith("/") else [f"{folder}/{name}" for folder in ("/files", *PATH)]
        )
        return next((path for path in paths if self.tree.resolve(path) in self.tree), None)

    def _script(self, file: str) -> list[str]:
        """Add a script or a program, and return what runs it."""
        data = read_file(beside(self._where, file))[0]
        path = f"/files/{file}"
        self._put(path[1:], data, 0o755)
        if is_elf(data):
            self._host.add_needed(self._where / file, data)
            return [path]
        line = shebang(data, file)
        if line is None:
            # As a shell does with such a file.
            bash = self._which("bash") if self._has_root else self._host.find("bash")
            line = Shebang("bash" if bash else "/bin/sh")
            self.notes.append(
                f"the first line of {file} has no #!, so {line.program} runs the script"
            )
        program = self._interpreter(line.program, file)
        self._add_named(
            candidates(data[:_TEXT_BYTES].decode(errors="replace"), shell=line.is_shell)
        )
        return [program, *line.arguments, path]

    def _interpreter(self, program: str, file: str) -> str:
        """Add the program of a first line, and return its path in the guest."""
        name = Path(program).name
        if self._has_root:
            in_root = program if program.startswith("/") else self._which(name)
            if in_root is not None and self.tree.resolve(in_root) in self.tree:
                return in_root
            raise InputError(
                f"{program}, which runs {file}, is not in the root file system",
                hint="add it to the root, or change the first line of the script.",
            )
        path: Path | None = Path(program)
        is_there = program.startswith("/") and os.path.isfile(program)
        if not (self._host.native and is_there and may_be_copied(Path(program))):
            path = self._host.find(name)
        if path is not None:
            guest_path = self._host.add(path)
        elif name in self._applets:
            guest_path = f"/usr/bin/{name}"
            self.tree.symlink(guest_path[1:], "busybox")
        else:
            raise InputError(
                f"{program}, which runs {file}, is not on this host"
                + ("" if self._host.native else f" for {self._arch}"),
                hint="install the program, or give a root file system that has it (--root).",
            )
        if program.startswith("/") and self.tree.resolve(program) not in self.tree:
            self.tree.symlink(program[1:], guest_path)
        return program if program.startswith("/") else guest_path

    def _command(self, name: str, text: str) -> list[str]:
        """Return what runs a command line: its program or, if it needs one, a shell."""
        if "\0" in text:
            raise InputError(
                f"the command of {name} contains a null byte",
                hint="remove that byte from `command`.",
            )
        self._add_named(candidates(text))
        if words := direct(text):
            program = words[0]
            path = f"/files/{program.removeprefix('./')}"
            if self.tree.resolve(path) in self.tree:
                return [path, *words[1:]]
            if "/" in program and not program.startswith("/"):
                raise InputError(
                    f"the command of {name} runs {program}, which is not in the guest",
                    hint="add the file with --file.",
                )
            return [self._interpreter(program, f"the command of {name}"), *words[1:]]
        shell = self._interpreter("/bin/sh", f"the command of {name}")
        if "\n" not in text:
            return [shell, "-c", text]
        # A directive is one line.
        self._put(f"script/{name}.sh", text.encode(), 0o755)
        return [shell, f"/script/{name}.sh"]

    def _compile(self, file: str, name: str, extra_files: Sequence[Path] = ()) -> None:
        read_file(beside(self._where, file))
        program, added = compile_static(self._where / file, self._arch, self._reporter, extra_files)
        if added:
            includes = ", ".join(f"#include <{header}>" for header in added)
            self.notes.append(f"{file} did not compile, so these lines were added: {includes}")
        self._put(f"files/{name}", program, 0o755)

    def _add_file(self, name: str, *, compiled: bool) -> None:
        """Add a further file of a workload; a program in C is compiled."""
        path = beside(self._where, name)
        data, permissions = read_file(path)
        self._put(f"files/{Path(name)}", data, permissions)
        if is_elf(data):
            self._host.add_needed(path, data)
        elif data.startswith(b"#!") or path.suffix == ".sh":
            line = shebang(data, name) or Shebang("sh")
            self._add_named(
                candidates(data[:_TEXT_BYTES].decode(errors="replace"), shell=line.is_shell)
            )
        elif compiled and path.suffix == ".c" and _MAIN.search(data):
            self._compile(name, path.stem)
            self.notes.append(f"{name} was compiled; the program is /files/{path.stem}")

    def _add_program(self, word: str) -> None:
        """Add a program that the user named. Raises InputError if there is none."""
        path = Path(word) if "/" in word else self._host.find(word)
        if path is None or not os.path.isfile(path):
            raise InputError(
                f"there is no program {word} on this host"
                + ("" if self._host.native else f" for {self._arch}"),
                hint="install its package, or give the path of the program with --programs.",
            )
        self._host.add(path.absolute())

    def _add_named(self, named: Mapping[str, bool]) -> None:
        """Add the programs of this host that a text names; a root has its own."""
        for word, likely in named.items() if not self._has_root else ():
            if word in ("sudo", "/usr/bin/sudo"):
                # That of the host needs its configuration, and all of the guest is root's.
                self.tree.file(
                    word.lstrip("/") if "/" in word else "usr/local/bin/sudo", _SUDO, 0o755
                )
            else:
                self._host.add_if_there(word, likely=likely)
        self._paths.update(word for word in named if word.startswith("/"))

    def _put(self, path: str, data: bytes, permissions: int) -> None:
        """Add a file of a workload. Raises InputError if another has the same name."""
        before = self.tree.node(path)
        if before is not None and before.data != data:
            raise InputError(
                f"two files of the guest are named /{path}",
                hint="rename the file, or the workload.",
            )
        self.tree.file(path, data, permissions)


def script_archives(
    workloads: Mapping[str, Workload], folder: str, place: Entry, arch: Arch, reporter: Reporter
) -> tuple[Path, ...]:
    """Return the archive with the files of the scripts of ``workloads``: none if none is a script.

    It is made from ``folder``, where the descriptions are, unless ``place``, such as a run
    directory, has it already. ``guest.json`` there has the SHA-256 of each file. Raises InputError
    if the archive is damaged, or if a file cannot be read, BuildError if a C file does not compile,
    LabError.
    """
    scripts = {
        name: workload for name, workload in workloads.items() if workload.script is not None
    }
    if not scripts:
        return ()
    archive_entry = place / _ARCHIVE
    hashes = place / GUEST_FILE
    if hashes.exists():
        if not archive_entry.exists() or _hash(archive_entry) != read_json(hashes).get("archive"):
            raise InputError(
                f"{archive_entry} is damaged or missing, but all guests of a run must have "
                "the same files",
                hint="start the run anew.",
            )
        return (archive_entry.path,)
    busybox = None
    if arch != host_arch() or shutil.which("busybox") is None:
        (busybox,) = guest_programs(["busybox"], arch, Sources(cache_dir(), reporter), reporter)
    guest = guest_files(scripts, Path(folder), arch=arch, reporter=reporter, busybox=busybox)
    for note in guest.notes:
        reporter.note_once(note)  # The rehearsal has the same files as the run.
    with failing(f"cannot write {archive_entry}", hint="free some disk space.", kind=LabError):
        archive_entry.replace(guest.archive, synced=False)
        fields = {"archive": _hash(archive_entry), "files": guest.hashes, "notes": guest.notes}
        hashes.replace(json.dumps(fields, indent=1) + "\n")
    return (archive_entry.path,)


def _hash(entry: Entry) -> str:
    with failing(f"cannot read {entry}", hint="start the run anew."):
        return file_hash(entry.plain())


def _applets(busybox: bytes) -> Iterator[str]:
    """Yield the names of its applets: it has a sorted table of them, each with a zero at its
    end."""
    start = busybox.find(b"[\0[[\0")
    before = b""
    if start < 0:
        return
    for word in busybox[start : start + 33 * _MOST_APPLETS].split(b"\0"):
        if not _APPLETS.fullmatch(word) or word <= before:
            return
        before = word
        yield word.decode()


# Without its header, a function such as getenv() would return an int, and the program end with a
# signal.
