"""Real repositories of every kind as sources: they are read, or one line says at once why not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels.source import Sources
from unit.kernels.test_source import commit
from unit.vm.test_seal import Notes

KERNEL = {name: f"{name} one\n" for name in ("Kconfig", "Kbuild", "Makefile", "kernel/exit.c")}


def repository(path: Path, *options: str) -> Path:
    """A repository with the files of a kernel, and a second commit after the tag v6.1."""
    path.mkdir(parents=True)
    commit(path, "init", "-q", "-b", "main", *options)
    for name, text in KERNEL.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    (path / "link").symlink_to("kernel/exit.c")
    (path / "tool").write_text("#!/bin/sh\n")
    (path / "tool").chmod(0o755)
    commit(path, "add", ".")
    commit(path, "commit", "-q", "-m", "one")
    commit(path, "tag", "v6.1")
    (path / "Makefile").write_text("Makefile two\n")
    commit(path, "commit", "-q", "-a", "-m", "two")
    return path


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    return repository(tmp_path / "a tree" / "linux")


def tree_of(spec: str, tmp_path: Path, notes: Notes | None = None) -> Path:
    lab = Sources(tmp_path / "cache", notes or Notes())
    return lab.tree(lab.identify(spec))


def files(tree: Path) -> dict[str, str]:
    found = (path for path in tree.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(p.relative_to(tree)): os.readlink(p) if p.is_symlink() else p.read_text() for p in found
    }


SECOND = {**KERNEL, "Makefile": "Makefile two\n", "link": "kernel/exit.c", "tool": "#!/bin/sh\n"}


@pytest.mark.parametrize(
    "kind", ["bare", "shallow", "shared", "relative", "sha256", "owner", "detached"]
)
def test_every_kind_of_repository_is_read(tmp_path: Path, linux: Path, kind: str) -> None:
    other = tmp_path / "other tree"
    if kind == "sha256":
        repository(other, "--object-format=sha256")
    elif kind == "detached":
        commit(linux, "worktree", "add", "-q", "--detach", str(other))
    elif kind == "owner":
        shutil.copytree(linux, other)
        if os.geteuid():
            pytest.skip("only root can give a file away")
        subprocess.run(["chown", "-R", "12345:12345", str(other)], check=True)
    else:
        options = {
            "bare": ["--bare"],
            "shallow": ["--depth=1"],
            "shared": ["-s"],
            "relative": ["-s"],
        }
        commit(
            tmp_path,
            "clone",
            "-q",
            *options[kind],
            f"file://{linux}" if kind == "shallow" else str(linux),
            str(other),
        )
        if kind == "relative":
            (other / ".git/objects/info/alternates").write_text(
                "../../../a tree/linux/.git/objects\n"
            )
    tree = tree_of(f"git:{other}", tmp_path)
    assert files(tree) == SECOND
    assert (tree / "tool").stat().st_mode & 0o777 == 0o555 and (
        tree / "Makefile"
    ).stat().st_mode & 0o777 == 0o444


def test_a_repository_without_a_branch_is_read_at_its_newest_release(
    tmp_path: Path, linux: Path
) -> None:
    for tag in ("v6.2-rc1", "v6.2", "v6.10", "v6.10-rc3", "next-20260101"):
        commit(linux, "tag", tag, "v6.1" if tag == "v6.10" else "main")
    other = tmp_path / "other"
    commit(tmp_path, "init", "-q", str(other))
    commit(other, "fetch", "-q", "--tags", str(linux))
    assert files(tree_of(f"git:{other}", tmp_path)) == {**SECOND, "Makefile": "Makefile one\n"}
    commit(other, "tag", "-d", "v6.1", "v6.2-rc1", "v6.2", "v6.10", "v6.10-rc3")
    with pytest.raises(InputError, match="'HEAD' is not a commit"):
        tree_of(f"git:{other}", tmp_path)


def test_the_next_commit_of_a_tree_is_linked_to_the_nearest(tmp_path: Path, linux: Path) -> None:
    for number in range(10):
        (linux / f"file{number}.c").write_text(f"{number}\n")
    commit(linux, "add", ".")
    commit(linux, "commit", "-q", "-m", "more")
    first = tree_of(f"git:{linux}", tmp_path)
    commit(linux, "rm", "-q", "-r", "kernel", "file0.c")
    (linux / "kernel").write_text("a file now\n")
    (linux / "link").unlink()
    (linux / "link").mkdir()
    (linux / "link/file").write_text("behind what was a link\n")
    (linux / "tool").chmod(0o644)
    commit(linux, "add", ".")
    commit(linux, "commit", "-q", "-m", "three")
    notes = Notes()
    second = tree_of(f"git:{linux}", tmp_path, notes)
    assert files(second) == {
        **{name: SECOND[name] for name in ("Kbuild", "Kconfig", "Makefile", "tool")},
        **{f"file{number}.c": f"{number}\n" for number in range(1, 10)},
        "kernel": "a file now\n",
        "link/file": "behind what was a link\n",
    }
    assert (second / "Kconfig").samefile(first / "Kconfig") and not (second / "tool").samefile(
        first / "tool"
    )
    assert (second / "tool").stat().st_mode & 0o777 == 0o444
    inode = first.stat().st_ino
    assert files(tree_of(f"git:{linux}@HEAD~1", tmp_path, notes))["file0.c"] == "0\n"
    assert first.stat().st_ino == inode and not notes.notes


def test_a_damaged_tree_is_not_linked_to(tmp_path: Path, linux: Path) -> None:
    first = tree_of(f"git:{linux}@v6.1", tmp_path)
    (first / "Kconfig").chmod(0o644)
    (first / "Kconfig").write_text("changed\n")
    assert files(tree_of(f"git:{linux}", tmp_path)) == SECOND


def test_a_branch_with_the_name_of_a_commit_is_not_that_commit(tmp_path: Path, linux: Path) -> None:
    first = tree_of(f"git:{linux}@v6.1", tmp_path)
    commit(linux, "branch", first.name.removeprefix("git-"), "main")
    assert files(tree_of(f"git:{linux}", tmp_path)) == SECOND


def test_a_commit_that_the_repository_replaces_is_itself(tmp_path: Path, linux: Path) -> None:
    commit(linux, "replace", "main", "v6.1")
    assert files(tree_of(f"git:{linux}@main", tmp_path)) == SECOND


def objects(path: Path, *names: str) -> list[Path]:
    """The files of the objects of ``names``, each unpacked."""
    found = []
    for name in names:
        done = subprocess.run(
            ["git", "-C", str(path), "rev-parse", name], check=True, capture_output=True, text=True
        )
        found.append(path / ".git/objects" / done.stdout[:2] / done.stdout[2:].strip())
    return found


def test_a_few_files_that_are_missing_are_left_out_and_named(tmp_path: Path, linux: Path) -> None:
    for number in range(1000):
        (linux / f"file{number}.c").write_text(f"{number}\n")
    commit(linux, "add", ".")
    commit(linux, "commit", "-q", "-m", "many")
    whole = tmp_path / "whole"
    shutil.copytree(linux, whole)
    (blob,) = objects(linux, "HEAD:file7.c")
    blob.unlink()
    notes = Notes()
    tree = tree_of(f"git:{linux}", tmp_path, notes)
    assert not (tree / "file7.c").exists() and (tree / "file8.c").read_text() == "8\n"
    assert len(notes.notes) == 1 and "lacks file7.c of" in notes.notes[0]
    # The whole repository is another source: that tree is not taken for it.
    other = tree_of(f"git:{whole}", tmp_path)
    assert other != tree and (other / "file7.c").read_text() == "7\n"
    assert (other / "file8.c").samefile(tree / "file8.c")
    for blob in objects(linux, *(f"HEAD:file{n}.c" for n in range(8, 12))):
        blob.unlink()
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(
        InputError, match="5 of its 1,006 files are not in the repository"
    ) as caught:
        tree_of(f"git:{linux}", tmp_path)
    assert "nothing was unpacked" in caught.value.hint
    assert not (tmp_path / "cache/sources").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HEAD", "'HEAD' is not a commit of .*"),
        ("HEAD^{tree}", "is incomplete or damaged: "),
        ("HEAD:kernel", "is incomplete or damaged: Could not read"),
        ("HEAD:Makefile", "1 of its 6 files are not in the repository"),
    ],
)
def test_a_missing_object_is_found_before_anything_is_unpacked(
    tmp_path: Path, linux: Path, name: str, expected: str
) -> None:
    (file,) = objects(linux, name)
    file.unlink()
    with pytest.raises(InputError, match=expected):
        tree_of(f"git:{linux}", tmp_path)
    assert not (tmp_path / "cache/sources").exists()


def test_what_git_says_of_a_damaged_object_is_shown(tmp_path: Path, linux: Path) -> None:
    (blob,) = objects(linux, "HEAD:Makefile")
    blob.chmod(0o644)
    blob.write_bytes(b"no zlib")
    with pytest.raises(LabError, match="inflate") as caught:
        tree_of(f"git:{linux}", tmp_path)
    assert "no file was kept" in caught.value.hint
    assert not [
        path for path in (tmp_path / "cache/sources").iterdir() if not path.name.startswith(".")
    ]


@pytest.mark.parametrize("remote", [True, False])
def test_a_partial_clone_says_how_to_fetch_the_rest(
    tmp_path: Path, linux: Path, remote: bool
) -> None:
    commit(linux, "config", "uploadpack.allowFilter", "true")
    other = tmp_path / "part"
    commit(tmp_path, "clone", "-q", "-n", "--filter=blob:none", f"file://{linux}", str(other))
    if not remote:
        shutil.move(linux, tmp_path / "moved")
    with pytest.raises(
        InputError, match="6 of its 6 files are not in the repository, a partial clone"
    ) as caught:
        tree_of(f"git:{other}", tmp_path)
    command = (
        caught.value.hint.partition(": ")[2].partition(",")[0].replace("DIR", f"'{tmp_path}/work'")
    )
    if remote:
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
        assert files(tree_of(f"git:{other}", tmp_path)) == SECOND


def test_submodules_and_attributes_change_nothing_in_a_tree(tmp_path: Path, linux: Path) -> None:
    (linux / ".gitattributes").write_text(
        "kernel/** export-ignore\nKbuild eol=crlf text\nMakefile ident export-subst\n"
        "*.bin filter=lfs diff=lfs\n"
    )
    (linux / "Makefile").write_text("$Id$ $Format:%H$\n")
    (linux / "blob.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    commit(linux, "config", "filter.lfs.smudge", f"touch {tmp_path}/executed; cat")
    commit(linux, "add", ".")
    commit(linux, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    commit(linux, "commit", "-q", "-m", "three")
    notes = Notes()
    found = files(tree_of(f"git:{linux}", tmp_path, notes))
    assert found["kernel/exit.c"] == "kernel/exit.c one\n" and found["Kbuild"] == "Kbuild one\n"
    assert found["Makefile"] == "$Id$ $Format:%H$\n" and "module" not in found
    assert [note.partition(": ")[2] for note in notes.notes] == [
        "kteardown does not fetch files that are kept with Git LFS"
    ]
    assert not (tmp_path / "executed").exists()
