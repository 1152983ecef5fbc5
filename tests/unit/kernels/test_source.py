from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.kernels.git import of_branch
from kteardown.kernels.source import Sources
from kteardown.kernels.source_name import is_source, split, with_short_commit
from kteardown.progress import SilentReporter
from unit.vm.test_seal import Notes


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the files of a kernel tree and one tag."""
    path = tmp_path / "linux"
    path.mkdir()
    for name in ("Kconfig", "Kbuild", "Makefile"):
        (path / name).write_text(f"{name} one\n")
    commit(path, "init", "-q", "-b", "main")
    commit(path, "add", ".")
    commit(path, "commit", "-q", "-m", "one")
    commit(path, "tag", "v1")
    return path


def commit(path: Path, *argv: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(path), *identity, *argv], check=True, capture_output=True)


def test_a_repository_in_a_folder_that_all_have_is_named_after_the_one_above(
    repository: Path,
) -> None:
    lab = sources(repository.parent)
    commit = lab.identify(f"git:{repository}@v1").id.rpartition("@")[2]
    assert lab.identify(f"git:{repository}/.git@v1").id == f"git:linux@{commit}"
    assert with_short_commit(f"git:linux@{commit}") == f"git:linux@{commit[:12]}"
    assert with_short_commit("debian:6.12") == "debian:6.12"


def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path / "cache", SilentReporter())


def test_a_branch_is_resolved_each_time_and_a_tree_unpacked_once(
    tmp_path: Path, repository: Path
) -> None:
    lab = sources(tmp_path)
    first = lab.identify(f"git:{repository}@main")
    tree = lab.tree(first)
    assert (tree / "Makefile").read_text() == "Makefile one\n"
    assert not (tree / ".git").exists()
    assert stat.S_IMODE((tree / "Makefile").stat().st_mode) & 0o222 == 0
    before = (tree / "Makefile").stat().st_ctime_ns
    assert lab.tree(lab.identify(f"git:{repository}@v1")) == tree
    assert (tree / "Makefile").stat().st_ctime_ns == before

    (repository / "Makefile").write_text("Makefile two\n")
    commit(repository, "commit", "-q", "-a", "-m", "two")
    second = lab.identify(f"git:{repository}@main")
    assert second.id != first.id
    assert (lab.tree(second) / "Makefile").read_text() == "Makefile two\n"
    assert lab.identify(f"git:{repository}") == second


@pytest.mark.parametrize("packed", ["gz", "xz", "plain"])
def test_a_tarball_is_identified_by_its_contents(
    tmp_path: Path, repository: Path, packed: str
) -> None:
    option = {"gz": "-z", "xz": "-J", "plain": "-v"}[packed]
    ball = tmp_path / "linux-6.12.tar"
    argv = ["tar", "-c", option, "-f", str(ball), "-C", str(tmp_path), "--exclude=.git", "linux"]
    subprocess.run(argv, check=True, capture_output=True)
    lab = sources(tmp_path)
    first = lab.identify(f"tar:{ball}")
    assert (lab.tree(first) / "Kconfig").read_text() == "Kconfig one\n"
    os.utime(ball)
    assert lab.identify(f"tar:{ball}") == first


def test_a_tarball_that_was_replaced_by_one_of_equal_size_and_time_is_another(
    tmp_path: Path,
) -> None:
    """A program that downloads it sets the time that the server gives."""
    file, sources = tmp_path / "linux.tar", Sources(tmp_path / "cache", SilentReporter())
    ids = []
    for text in (b"one", b"two"):
        file.write_bytes(text)
        os.utime(file, (1e9, 1e9))
        ids.append(sources.identify(f"tar:{file}").id)
    assert ids[0] != ids[1]


def test_a_tarball_that_cannot_be_unpacked_leaves_nothing_behind(tmp_path: Path) -> None:
    ball = tmp_path / "linux.tar.xz"
    ball.write_bytes(b"\xfd7zXZ\0 and then nothing")
    lab = sources(tmp_path)
    source = lab.identify(f"tar:{ball}")
    with pytest.raises(InputError, match=r"cannot unpack .*linux\.tar\.xz"):
        lab.tree(source)
    assert [path.name for path in (tmp_path / "cache/sources").iterdir()] == [".locks"]


def test_a_repository_that_is_not_a_kernel_tree_is_an_error(
    tmp_path: Path, repository: Path
) -> None:
    commit(repository, "rm", "-q", "Kbuild")
    commit(repository, "commit", "-q", "-m", "gone")
    lab = sources(tmp_path)
    with pytest.raises(InputError, match="is not a kernel tree"):
        lab.tree(lab.identify(f"git:{repository}@main"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("6.12", "not a kernel source"),
        ("debain:6.12", "not a kernel source"),
        ("debian:", "not a kernel source"),
        ("debian:six", "not a kernel version"),
        ("git:/nowhere@main", "is not a folder"),
        ("tar:/nowhere.tar", "no such file"),
    ],
)
def test_a_malformed_or_missing_source_is_an_error(tmp_path: Path, spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sources(tmp_path).identify(spec)


def test_an_unknown_revision_is_an_error(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(InputError, match="'v9' is not a commit"):
        sources(tmp_path).identify(f"git:{repository}@v9")


def test_an_answer_is_remembered_until_the_facts_change(tmp_path: Path) -> None:
    lab = sources(tmp_path)
    answers = iter([{"a": "1"}, {"a": "2"}])
    assert lab.remember("x", (1, 2), lambda: next(answers)) == {"a": "1"}
    assert lab.remember("x", (1, 2), lambda: next(answers)) == {"a": "1"}
    assert lab.remember("x", (1, 3), lambda: next(answers)) == {"a": "2"}


@pytest.mark.parametrize(
    "damage", [b"", b"[" * 100_000, b"{}", b'{"spec": "x", "answer": {"a": 2}}', b"\xff"]
)
def test_a_damaged_answer_is_found_again(tmp_path: Path, damage: bytes) -> None:
    reporter = Notes()
    lab = Sources(tmp_path / "cache", reporter)
    lab.remember("x", 1, lambda: {"a": "1"})
    (file,) = (tmp_path / "cache/answers").iterdir()
    file.write_bytes(damage)
    for _ in range(2):
        assert lab.remember("x", 1, lambda: {"a": "3"}) == {"a": "3"}
    assert len(reporter.notes) == 1 and "x again" in reporter.notes[0]
    file.write_text('{"spec": "x", "answer": {"a": "4"}}')
    assert lab.remember("x", 1, lambda: {"a": "5"}) == {"a": "4"}, "as an earlier version wrote it"


def test_a_tree_that_is_not_what_was_unpacked_is_unpacked_again(
    tmp_path: Path, repository: Path
) -> None:
    reporter = Notes()
    source = Sources(tmp_path / "cache", reporter).identify(f"git:{repository}@v1")
    tree = Sources(tmp_path / "cache", reporter).tree(source)
    inode = tree.stat().st_ino

    def unpacked_again() -> bool:
        nonlocal inode
        assert Sources(tmp_path / "cache", reporter).tree(source) == tree
        assert (tree / "Makefile").read_text() == "Makefile one\n"
        notes, reporter.notes = len(reporter.notes), []
        before, inode = inode, tree.stat().st_ino
        assert notes == (before != inode)
        return before != inode

    assert not unpacked_again()
    (tree / "build").mkdir()
    assert not unpacked_again(), "an empty folder, on which a build mounts its own"
    os.chmod(tree / "Makefile", 0o644)
    os.chmod(tree / "Makefile", 0o444)
    assert not unpacked_again(), "another ctime, and the same contents"
    times = (tree / "Makefile").stat()
    os.chmod(tree / "Makefile", 0o644)
    (tree / "Makefile").write_text("Makefile two\n")
    os.chmod(tree / "Makefile", 0o444)
    os.utime(tree / "Makefile", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert unpacked_again(), "the same size and time"
    (tree / "more").symlink_to("/etc")
    assert unpacked_again()
    (tree / "Kbuild").unlink()
    assert unpacked_again()
    for file in (tmp_path / "cache/sources/.digests").iterdir():
        file.unlink()
    assert unpacked_again(), "as an earlier version left it"


def test_sources_are_distinguished_from_series() -> None:
    assert is_source("debian:7.2") and is_source("git:x@y")
    assert not is_source("freezer-skip-exited") and not is_source("./a:b.patch")
    assert split("git:a:b@c") == ("git", "a:b@c")


def test_nothing_of_the_configuration_of_a_repository_is_executed(
    tmp_path: Path, repository: Path
) -> None:
    (repository / ".gitattributes").write_text("* filter=x diff=x\nMakefile export-subst\n")
    (repository / "Makefile").write_text("$Format:%H$\n")
    commit(repository, "add", ".")
    commit(repository, "commit", "-q", "-m", "two")
    for key in (
        "filter.x.smudge",
        "filter.x.process",
        "diff.external",
        "diff.x.textconv",
        "core.fsmonitor",
    ):
        commit(repository, "config", key, f"touch {tmp_path}/executed; cat")
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    hook.chmod(0o755)
    lab = sources(tmp_path)
    tree = lab.tree(lab.identify(f"git:{repository}@main~0"))
    assert (tree / "Makefile").read_text() == "$Format:%H$\n"
    _, folder = of_branch("v1..HEAD", repository, tmp_path / "cache")
    assert [path.name for path in folder.iterdir()] == ["0001-two.patch"]
    assert not (tmp_path / "executed").exists()


def test_a_work_tree_of_a_repository_has_its_own_head(tmp_path: Path, repository: Path) -> None:
    commit(repository, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "other"))
    (tmp_path / "other" / "Makefile").write_text("Makefile topic\n")
    commit(tmp_path / "other", "commit", "-q", "-a", "-m", "topic")
    lab = sources(tmp_path)
    assert lab.identify(f"git:{tmp_path}/other") == replace(
        lab.identify(f"git:{repository}@topic"),
        id=lab.identify(f"git:{repository}@topic").id.replace("git:linux", "git:other"),
        origin=str(tmp_path / "other"),
    )
    assert lab.identify(f"git:{repository}") != lab.identify(f"git:{repository}@topic")


def test_a_folder_that_is_not_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a git tree"):
        sources(tmp_path).identify(f"git:{tmp_path}")
