"""The root file systems of guests; programs run in them as in a guest, with bubblewrap."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError, MissingError
from kteardown.model.arch import Arch, host_arch
from kteardown.model.workload import Script, Workload
from kteardown.progress import SilentReporter
from kteardown.script.elf import MACHINES
from kteardown.script.files import GuestFiles, guest_files
from unit.script.test_elf import NUMBERS
from unit.vm.test_initramfs import read

HOST: Arch = "arm64" if host_arch() == "arm64" else "x86_64"
OTHER: Arch = "x86_64" if HOST == "arm64" else "arm64"


class Lab:
    """A folder with scripts, and what is made of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workloads = folder, dict[str, Workload]()
        (folder / "workloads").mkdir()

    def write(self, name: str, text: str | bytes, mode: int = 0o644) -> Path:
        path = self.folder / "workloads" / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return path

    def add(self, name: str, **script: object) -> None:
        self.workloads[name] = Workload(
            name=name, summary="s", silence_s=10, metrics={}, script=Script.model_validate(script)
        )

    def made(self, busybox: Path | None = None) -> GuestFiles:
        return guest_files(
            self.workloads, self.folder, arch=HOST, reporter=SilentReporter(), busybox=busybox
        )

    def lines(self, name: str) -> list[str]:
        members = {entry.path: entry for entry in read(self.made().archive)}
        return members[f"script/{name}"].data.decode().splitlines()

    def argv(self, name: str) -> list[str]:
        return [
            line.removeprefix("argument ")
            for line in self.lines(name)
            if line.startswith("argument ")
        ]

    def run(self, name: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Unpack the archive, and run the workload in it."""
        root = self.folder / "root"
        root.mkdir()
        (self.folder / "archive").write_bytes(self.made().archive)
        subprocess.run(
            ["cpio", "-idm", "--quiet", "-F", self.folder / "archive"], cwd=root, check=True
        )
        environment = [
            line.split(" ", 1)[1].split("=", 1) for line in self.lines(name) if line[:4] == "envi"
        ]
        words = [word for pair in environment for word in ("--setenv", *pair)]
        box = [
            "bwrap",
            "--unshare-all",
            "--bind",
            str(root),
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]
        argv = [*box, "--clearenv", *words, "--chdir", "/files", *self.argv(name), *more]
        return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_bash_script_runs_with_the_programs_that_it_names_and_busybox(lab: Lab) -> None:
    lab.write(
        "x.sh",
        "#!/bin/bash -e\nfor ((i = 0; i < 2; i++)); do date +%N; done\nsort --version | head -n "
        "1\nvi\n",
    )
    text = lab.folder / "workloads/x.sh"
    text.write_text(text.read_text().replace("vi\n", "echo $1 | rev\ncat data\n"))
    lab.write("data", "content\n")
    lab.add("x", file="x.sh", files=["data"])
    done = lab.run("x", "abc")
    assert done.returncode == 0, done.stderr
    first, second, version, word, data = done.stdout.splitlines()
    assert (
        len(first) == len(second) == 9
        and "GNU coreutils" in version
        and (word, data) == ("cba", "content")
    )
    assert lab.argv("x") == ["/bin/bash", "-e", "/files/x.sh"]


def test_a_guest_has_the_usual_places_to_mount_at(lab: Lab) -> None:
    lab.write("x.sh", "#!/bin/sh\nls -d /mnt /media /opt /home /tmp /var/tmp\n")
    lab.add("x", file="x.sh")
    assert lab.run("x").stdout.split() == ["/home", "/media", "/mnt", "/opt", "/tmp", "/var/tmp"]


def test_a_script_that_names_the_first_process_does_not_replace_it(lab: Lab) -> None:
    lab.write(
        "x.sh", "#!/bin/sh\nmount -t tmpfs none /mnt\ncd /mnt\nexec chroot . /init\n/own/rev\n"
    )
    lab.add("x", file="x.sh")
    paths = {entry.path for entry in read(lab.made().archive)}
    assert "own/rev" in paths
    assert not {"init", "plan"} & paths


def test_the_directives_say_all_that_the_agent_needs(lab: Lab) -> None:
    lab.write("x", "#!/usr/bin/env sh\ntrue\n")
    lab.add("x", file="x", allow=["exit 3", "signal 2"], limit_s=1.5)
    lines = lab.lines("x")
    assert lines[1] == "argument /files/x" and lines[0].endswith("/sh")
    assert {"environment HOME=/root", "environment LC_ALL=C", "positional", "limit_ms 1500"} <= set(
        lines
    )
    assert lines[-3:-1] == ["allow exit 3", "allow signal 2"]


def test_the_archive_has_what_a_guest_needs_and_is_the_same_again(lab: Lab) -> None:
    lab.write("x.sh", "#!/bin/sh\nls\n")
    lab.add("x", file="x.sh")
    made = lab.made()
    members = {entry.path: entry for entry in read(made.archive)}
    assert lab.made() == made
    assert {"dev", "proc", "sys", "run", "root", "var/tmp", "etc/passwd", "usr/bin/busybox"} <= set(
        members
    )
    assert (
        stat.S_IMODE(members["tmp"].mode) == 0o1777
        and stat.S_IMODE(members["files/x.sh"].mode) == 0o755
    )
    assert set(made.hashes) == {
        f"/{path}" for path, each in members.items() if stat.S_ISREG(each.mode)
    }
    assert stat.S_ISLNK(members["bin"].mode) == os.path.islink("/bin")
    for path in members:
        above = path.rpartition("/")[0]
        assert not above or stat.S_ISDIR(members[above].mode), path
    assert members["usr/bin/vi"].data == b"busybox"
    assert any("ls" in note for note in made.notes)


def test_a_file_without_a_first_line_is_noted(lab: Lab) -> None:
    lab.write("x.sh", "true\n")
    lab.add("x", file="x.sh")
    assert any("has no #!" in note for note in lab.made().notes)


def test_programs_of_a_further_script_are_there(lab: Lab) -> None:
    lab.write("lib.sh", "log_all() { tac /etc/group; }\n")
    lab.write("x.sh", "#!/bin/sh\n. ./lib.sh\nlog_all\n")
    lab.add("x", file="x.sh", files=["lib.sh"])
    assert any("tac" in note for note in lab.made().notes)


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="this host's Python is elsewhere")
def test_a_large_program_is_added_only_where_it_is_run(lab: Lab) -> None:
    lab.write("x.sh", "#!/bin/sh\ncp python3 /tmp\n")
    lab.add("x", file="x.sh")
    assert any(note.endswith("(add them with --programs): python3") for note in lab.made().notes)
    lab.write("x.sh", "#!/bin/sh\ntimeout 5 python3 /tmp\n")
    assert any("MB: " in note and "python3" in note for note in lab.made().notes)


def test_the_users_folder_of_programs_comes_first(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = lab.folder / "own"
    own.mkdir()
    (own / "schbench").write_text("#!/bin/sh\necho own\n")
    (own / "schbench").chmod(0o755)
    monkeypatch.setenv("KTEARDOWN_PROGRAMS", str(own))
    lab.write("x.sh", "#!/bin/sh\nschbench -r 1\n")
    lab.add("x", file="x.sh")
    assert lab.run("x").stdout == "own\n"


@pytest.mark.parametrize("ours", [False, True])
def test_a_guest_may_be_limited_to_programs_of_the_system(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    home = lab.folder / "home"
    home.mkdir()
    (home / "deploy").write_text("#!/bin/sh\necho secret\n")
    (home / "deploy").chmod(0o755)
    (home / "password").write_text("secret")
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    lab.write("x.sh", "#!/bin/sh\ndate +%N\ndeploy\n")
    lab.add("x", file="x.sh")
    assert b"echo secret" in lab.made().archive
    monkeypatch.setenv("KTEARDOWN_SYSTEM_PROGRAMS", "1")
    if ours:
        monkeypatch.setenv("KTEARDOWN_PROGRAMS", str(home))
    made = lab.made()
    assert (b"echo secret" in made.archive) == ours
    assert any(path.endswith("/date") for path in made.hashes)
    # Whether a file is there is not told either.
    for name in () if ours else ("deploy", "password", "nothing"):
        lab.write("x.sh", f"#!{home}/{name}\n")
        with pytest.raises(InputError, match=f"{home}/{name}, which runs x.sh, is not on this"):
            lab.made()


def test_sudo_runs_the_command(lab: Lab) -> None:
    lab.write("x.sh", "#!/bin/sh\nsudo A=7 sh -c 'echo $A'\n")
    lab.add("x", file="x.sh")
    assert lab.run("x").stdout == "7\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo a", "a\n"),
        ("seq 2 | wc -l", "2\n"),
        ("printf a\nprintf b\n", "ab"),
        ("./tool 'a b'", "a b\n"),
    ],
)
def test_a_command_runs_directly_or_in_a_shell(command: str, expected: str, lab: Lab) -> None:
    lab.write("tool", '#!/bin/sh\necho "$1"\n', 0o755)
    lab.add("x", command=command, files=["tool"])
    done = lab.run("x")
    assert (done.stdout, done.stderr) == (expected, "")
    assert "positional" not in lab.lines("x")


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="this host's Python is elsewhere")
def test_python_has_its_library(lab: Lab) -> None:
    lab.write(
        "x.py", "#!/usr/bin/env python3\nimport json, re, subprocess\nprint(json.dumps([1]))\n"
    )
    lab.add("x", file="x.py")
    assert lab.run("x").stdout == "[1]\n"


@pytest.mark.skipif(
    not list(Path("/usr/lib").glob("*/perl-base")), reason="perl is packaged differently"
)
def test_perl_has_its_library(lab: Lab) -> None:
    lab.write("x.pl", "#!/usr/bin/perl -w\nuse strict; use POSIX; print POSIX::floor(1.5);\n")
    lab.add("x", file="x.pl")
    assert lab.run("x").stdout == "1"


def test_c_files_are_compiled(lab: Lab) -> None:
    lab.write(
        "x.c",
        'int main(int c, char **v) { puts(v[1]); fflush(stdout); return system("./helper"); }\n',
    )
    lab.write("helper.c", 'int main(void) { write(1, "h\\n", 2); return 0; }\n')
    lab.write("y.sh", "#!/bin/sh\n./helper\n")
    lab.add("x", file="x.c")
    lab.add("y", file="y.sh", files=["helper.c"])
    assert lab.argv("x") == ["/files/x"]
    assert lab.run("x", "word").stdout == "word\nh\n"
    notes = lab.made().notes
    assert "helper.c was compiled; the program is /files/helper" in notes
    assert any("#include <stdio.h>" in note for note in notes)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({}, "neither a file nor a command"),
        ({"file": "../x.sh"}, "not a file beside"),
        ({"file": "/etc/passwd"}, "not a file beside"),
        ({"file": "link"}, "not a file beside"),
        ({"file": "none.sh"}, "cannot read"),
        ({"file": "a\nb"}, "not a file beside"),
        ({"file": "folder"}, "not a file of at most"),
        ({"file": "zsh.sh"}, "/bin/no-such-shell, which runs zsh.sh"),
        (
            {"command": "true", "programs": ["no-such-program-here"]},
            "no program no-such-program-here",
        ),
        ({"command": "true", "programs": ["/etc/passwd"]}, "neither an ELF file nor a script"),
        (
            {"command": "no-such-program-here 1"},
            "no-such-program-here, which runs the command of x",
        ),
        ({"command": "./none"}, "not in the guest"),
        ({"command": "a\0"}, "null byte"),
        ({"command": "true", "files": ["../../etc/passwd"]}, "not a file beside"),
        ({"command": "true", "root": "none"}, "cannot read the root"),
    ],
)
def test_wrong_descriptions_are_input_errors(
    script: dict[str, object], message: str, lab: Lab
) -> None:
    lab.write("zsh.sh", "#!/bin/no-such-shell\n")
    (lab.folder / "workloads/link").symlink_to("/etc/passwd")
    (lab.folder / "workloads/folder").mkdir()
    lab.add("x", **script)
    with pytest.raises(InputError, match=message):
        lab.made()


def test_a_root_is_kept_and_gets_only_the_named_programs(lab: Lab) -> None:
    root = lab.folder / "workloads/tree"
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    shutil.copy("/bin/busybox", root / "usr/bin/sh")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("own\n")
    lab.write("x.sh", "#!/bin/sh\ncat /etc/passwd\ndate --version | head -n 1\nls\n")
    lab.add("x", file="x.sh", root="tree", programs=["date"])
    members = {entry.path: entry for entry in read(lab.made().archive)}
    assert members["etc/passwd"].data == b"own\n" and "usr/bin/date" in members
    assert "usr/bin/busybox" not in members and "usr/bin/ls" not in members
    lab.add("y", command="true")
    with pytest.raises(InputError, match="different root file systems"):
        lab.made()


def test_an_interpreter_that_a_root_lacks_is_an_error(lab: Lab) -> None:
    (lab.folder / "workloads/tree").mkdir()
    lab.write("x.sh", "#!/bin/bash\n")
    lab.add("x", file="x.sh", root="tree")
    with pytest.raises(InputError, match=r"/bin/bash, which runs x\.sh, is not in the root"):
        lab.made()


def test_two_files_of_one_name_are_an_error(lab: Lab) -> None:
    lab.write("x.c", "int main(void) { return 0; }\n")
    lab.write("x", "#!/bin/sh\n")
    lab.add("x", file="x.c", files=["x"])
    with pytest.raises(InputError, match="two files of the guest are named /files/x"):
        lab.made()


def test_a_loader_that_is_no_program_is_not_copied(lab: Lab) -> None:
    data = bytearray(Path(shutil.which("bash") or "").read_bytes())
    loader = data.index(b"/lib64/ld-linux")
    data[loader : loader + 12] = b"/etc/passwd\0"
    lab.write("x", bytes(data))
    lab.add("x", file="x")
    with pytest.raises(InputError, match="/etc/passwd, is not on this host"):
        lab.made()


def test_a_guest_without_busybox_is_an_error_that_names_the_package(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write("x.sh", "#!/bin/sh\n")
    lab.add("x", file="x.sh")
    with pytest.raises(InputError, match="not a program"):
        lab.made(busybox=lab.folder / "workloads/x.sh")
    monkeypatch.delenv("KTEARDOWN_PROGRAMS", raising=False)
    with pytest.raises(MissingError) as error:
        guest_files(lab.workloads, lab.folder, arch=OTHER, reporter=SilentReporter())
    assert error.value.packages == ("busybox-static",)


def test_a_guest_of_another_architecture_has_only_busybox(lab: Lab) -> None:
    data = bytearray(Path("/bin/busybox").read_bytes())
    data[18:20] = NUMBERS[MACHINES[OTHER]].to_bytes(2, "little")
    # What is before the table of its applets differs between builds.
    data[data.find(b"[\0[[\0") - 1] = ord("]")
    busybox = lab.write("foreign", bytes(data))
    lab.write("x.sh", "#!/bin/sh\ndate\n")
    lab.add("x", file="x.sh")
    made = guest_files(
        lab.workloads, lab.folder, arch=OTHER, reporter=SilentReporter(), busybox=busybox
    )
    members = {entry.path: entry for entry in read(made.archive)}
    assert members["usr/bin/date"].data == members["usr/bin/sh"].data == b"busybox"
    programs = [
        path
        for path, each in members.items()
        if path.startswith("usr/") and stat.S_ISREG(each.mode)
    ]
    assert programs == ["usr/bin/busybox"]
    lab.write("x.sh", "#!/bin/bash\n")
    with pytest.raises(InputError, match=f"not on this host for {OTHER}"):
        guest_files(
            lab.workloads, lab.folder, arch=OTHER, reporter=SilentReporter(), busybox=busybox
        )
