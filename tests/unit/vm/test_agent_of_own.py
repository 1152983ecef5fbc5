"""Agents with C files that are not shipped: these see no other file, and execute nothing on the
host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kteardown import sandbox
from kteardown.errors import BuildError, InputError, LabError
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent, build_kinds_program
from kteardown_hunt.catalogue import load_kinds, own_kinds
from unit.vm.few_workloads import copy_agent

SECRET = "secret_of_the_user"
KIND = """#include "hunt/kind.h"
static int one(int64_t i) { return i; }
KIND(mine, "files", "x", .open = one);
"""
UNNAMED = """#include "hunt/kind.h"
static const struct kind it = {.name = "NAME", .part = "files", .object = "x", .exit = true};
static const struct kind *const listed __attribute__((used, section("kinds"))) = &it;
"""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's sources with two workloads and one kind, which are compiled in a moment."""
    folder = copy_agent(tmp_path_factory.mktemp("sources") / "agent")
    ignored = shutil.ignore_patterns(
        "[a-oq-z]*.c", "p[a-hj-z]*.c", "pi[a-oq-z]*.c", "pipe_*.c", "*_*.c"
    )
    shutil.copytree(data_dir("agent") / "hunt" / "kinds", folder / "hunt" / "kinds", ignore=ignored)
    for part in ("", "lib"):
        for file in (data_dir("agent") / "hunt" / part).glob("*.[ch]"):
            (folder / "hunt" / part).mkdir(exist_ok=True)
            shutil.copy(file, folder / "hunt" / part)
    return folder


@pytest.fixture(autouse=True)
def only_few(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kteardown.vm.agent.data_dir", lambda kind: few)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of the user's own kinds."""
    (tmp_path / "mine" / "kinds").mkdir(parents=True)
    return tmp_path / "mine"


def build(cache: Path, *own: Path) -> Path:
    return build_agent("x86_64", cache=cache, reporter=SilentReporter(), own=own)


@pytest.mark.parametrize("line", ['#include "{file}"', 'asm(".incbin \\"{file}\\"");'])
def test_a_c_file_includes_no_file_of_the_user(tmp_path: Path, mine: Path, line: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    (mine / "kinds" / "mine.c").write_text(f"{line.format(file=secret)}\n{KIND}")
    with pytest.raises(BuildError) as caught:
        load_kinds(own_kinds(mine), SilentReporter())
    assert SECRET not in caught.value.message
    assert str(secret) in caught.value.message


def test_the_name_of_a_file_is_no_command(tmp_path: Path) -> None:
    workload = tmp_path / "a`cd$IFS..&&>executed&&cd$IFS..&&>executed`.c"
    workload.write_text("int a_part_of_it;\n")
    with pytest.raises(BuildError):
        build(tmp_path / "cache", workload)
    assert not list(tmp_path.rglob("executed"))


def test_a_program_of_the_sandbox_is_that_of_the_host_and_belongs_to_the_user(
    tmp_path: Path, mine: Path, few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine / "kinds" / "mine.c").write_text(KIND)

    def built(cache: str, *kinds: Path) -> Path:
        return build_kinds_program(cache=tmp_path / cache, reporter=SilentReporter(), kinds=kinds)

    confined = built("one", *own_kinds(mine))
    about = confined.stat()
    assert (about.st_uid, about.st_mode & 0o7777) == (os.geteuid(), 0o755)
    with_it = shutil.copytree(few, tmp_path / "agent")
    shutil.copy(mine / "kinds" / "mine.c", with_it / "hunt" / "kinds")
    monkeypatch.setattr("kteardown.vm.agent.data_dir", lambda kind: with_it)
    assert built("other").read_bytes() == confined.read_bytes()


def test_a_constructor_of_a_kind_has_no_effect_on_the_host(tmp_path: Path, mine: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    canary = open_to_all / "executed"
    evil = f'__attribute__((constructor)) static void evil(void) {{ fopen("{canary}", "w"); }}\n'
    (mine / "kinds" / "mine.c").write_text(KIND + evil)
    kinds = load_kinds(own_kinds(mine), SilentReporter())
    assert [kind.name for kind in kinds] == ["mine", "pipes"]
    assert not canary.exists()
    # It is executed, where it sees nothing: the same program on the host makes the file.
    (program,) = (
        file
        for file in (cache_dir() / "agent").glob("*-kinds")
        if str(canary).encode() in file.read_bytes()
    )
    subprocess.run([program], check=True, capture_output=True)
    assert canary.exists()


@pytest.mark.parametrize("name", ["../mine", "a-b", ""])
def test_the_name_of_a_kind_is_no_path(mine: Path, name: str) -> None:
    (mine / "kinds" / "mine.c").write_text(UNNAMED.replace("NAME", name))
    with pytest.raises(InputError, match="a kind declares something invalid"):
        load_kinds(own_kinds(mine), SilentReporter())


def test_what_is_no_file_of_the_folder_is_not_read(tmp_path: Path, mine: Path) -> None:
    secret, file = tmp_path / "secret.c", mine / "kinds" / "mine.c"
    secret.write_text(f"{SECRET}\n")
    file.symlink_to(secret)
    with pytest.raises(InputError, match="it is a link to"):
        build_agent(
            "x86_64", cache=tmp_path, reporter=SilentReporter(), own=own_kinds(mine), also="hunt"
        )
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match="it is not a file"):
        load_kinds(own_kinds(mine), SilentReporter())


def test_without_a_sandbox_own_files_are_compiled_only_if_that_is_permitted(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine / "kinds" / "mine.c").write_text(KIND)
    monkeypatch.setattr("kteardown.sandbox.problem", lambda: "bwrap is not installed")
    assert [kind.name for kind in load_kinds((), SilentReporter())] == ["pipes"]
    with pytest.raises(LabError, match=r"mine\.c would be compiled without a sandbox"):
        load_kinds(own_kinds(mine), SilentReporter())
    monkeypatch.setattr(sandbox, "unsafe_build", True)
    assert len(load_kinds(own_kinds(mine), SilentReporter())) == 2
