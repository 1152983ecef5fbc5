"""The agent is built for both architectures, once, and reproducibly."""

from __future__ import annotations

import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest

from kteardown.errors import BuildError, LabError
from kteardown.model.arch import Arch
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from unit.vm.few_workloads import copy_agent

# e_machine of an ELF file: EM_X86_64, EM_AARCH64.
_MACHINE: dict[Arch, int] = {"x86_64": 62, "arm64": 183}


def build(arch: Arch, cache: Path, sources: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kteardown.vm.agent.data_dir", lambda kind: sources)
        return build_agent(arch, cache=cache, reporter=SilentReporter())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the agent's sources, which no test changes."""
    return copy_agent(tmp_path_factory.mktemp("sources") / "agent")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A cache with the agent of these sources."""
    folder = tmp_path_factory.mktemp("cache")
    build("x86_64", folder, shared)
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the agent's sources for one test."""
    return copy_agent(tmp_path / "somewhere else" / "agent")


def check_static_program(program: Path, arch: Arch) -> None:
    content = program.read_bytes()
    assert content[:4] == b"\x7fELF"
    assert int.from_bytes(content[18:20], "little") == _MACHINE[arch]
    assert b"/lib64/ld-linux" not in content and b"/lib/ld-linux" not in content


@pytest.mark.parametrize("arch", get_args(Arch))
def test_static_program_for_the_architecture(arch: Arch, cache: Path, shared: Path) -> None:
    check_static_program(build(arch, cache, shared), arch)


@pytest.mark.parametrize("arch", get_args(Arch))
def test_the_shipped_agent_is_built_for_the_architecture(arch: Arch) -> None:
    """Whenever its sources change: the cache is that of the user, as for guests."""
    check_static_program(build_agent(arch, cache=cache_dir(), reporter=SilentReporter()), arch)


def test_the_agent_does_not_depend_on_the_folder_of_its_sources(
    tmp_path: Path, cache: Path, shared: Path, sources: Path
) -> None:
    here = build("x86_64", cache, shared).read_bytes()
    there = build("x86_64", tmp_path / "with blanks", sources).read_bytes()
    assert here == there


def test_the_agent_is_built_again_only_when_the_sources_change(
    cache: Path, shared: Path, sources: Path
) -> None:
    first = build("x86_64", cache, shared)
    written = first.stat().st_mtime_ns
    assert build("x86_64", cache, sources) == first
    assert first.stat().st_mtime_ns == written
    shutil.rmtree(sources / "workloads" / "zombies_cgroup")
    second = build("x86_64", cache, sources)
    assert second != first
    listed = subprocess.run([second, "--list"], capture_output=True, text=True, check=True).stdout
    assert "zombies:" in listed and "zombies_cgroup" not in listed


def test_the_agent_that_counts_is_another_one_with_the_same_workloads(
    cache: Path, shared: Path
) -> None:
    plain = build("x86_64", cache, shared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kteardown.vm.agent.data_dir", lambda kind: shared)
        counting = build_agent("x86_64", also="counts", cache=cache, reporter=SilentReporter())
    assert counting != plain and build("x86_64", cache, shared) == plain
    message = b"hardware counts: "
    assert message in counting.read_bytes() and message not in plain.read_bytes()
    lists = [
        subprocess.run([agent, "--list"], capture_output=True, text=True, check=True).stdout
        for agent in (plain, counting)
    ]
    assert lists[0] == lists[1]


def test_concurrent_builds_make_one_agent(tmp_path: Path, sources: Path) -> None:
    with ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr("kteardown.vm.agent.data_dir", lambda kind: sources)
        paths = set(
            pool.map(
                lambda _: build_agent("x86_64", cache=tmp_path, reporter=SilentReporter()), range(3)
            )
        )
    assert len(paths) == 1
    subprocess.run([paths.pop(), "--help"], check=True, capture_output=True)
    assert len([path for path in (tmp_path / "agent").iterdir() if path.is_file()]) == 1


def test_a_build_error_has_the_message_of_the_compiler(tmp_path: Path, sources: Path) -> None:
    (sources / "workloads" / "broken.c").write_text("int broken(void) { return missing; }\n")
    with pytest.raises(BuildError, match=r"(?s)broken\.c:1.*missing"):
        build("x86_64", tmp_path, sources)
    assert list((tmp_path / "agent").iterdir()) == []


@pytest.mark.parametrize("arch", get_args(Arch))
def test_the_error_for_a_missing_compiler_names_the_package(
    arch: Arch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as caught:
        build(arch, tmp_path, data_dir("agent"))
    assert arch in caught.value.message
    native = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine()) == arch
    assert ("apt install gcc " if native else "apt install gcc-") in caught.value.hint


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("a file where a folder should be")
    with pytest.raises(LabError, match="cannot build the agent in"):
        build("x86_64", tmp_path, data_dir("agent"))
