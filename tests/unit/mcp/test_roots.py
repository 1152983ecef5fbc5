"""Which paths a client may name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown_mcp.roots import Roots


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def repository(folder: Path, *words: str) -> None:
    subprocess.run(["git", "init", "-q", *words, str(folder)], check=True)


def test_a_file_below_any_root_is_read(root: Path, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / "second/b").write_bytes(b"second")
    (root / "a").write_bytes(b"first")
    roots = Roots([root, tmp_path / "second"])
    assert roots.content("a", 10) == ("a", b"first")
    assert roots.content(str(tmp_path / "second/b"), 10) == ("b", b"second")
    assert roots.content("x/../a", 10) == ("a", b"first")
    with pytest.raises(InputError, match="more than 0 MB"):
        roots.content("a", 4)


def test_a_root_may_be_named_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (root / "a").write_bytes(b"first")
    roots = Roots([tmp_path / "link"])
    assert roots.folders == (root,)
    for path in (tmp_path / "link/a", root / "a", Path("a")):
        assert roots.content(str(path), 10)[1] == b"first"


@pytest.mark.parametrize("path", ["../secret", "link", "folder/secret", "/etc/passwd", "pipe", ""])
def test_what_leads_out_or_is_no_file_is_refused(root: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    roots = Roots([root])
    for way in (roots.plain, lambda path: roots.content(path, 100)):
        with pytest.raises(InputError, match="is refused"):
            way(path)


def test_a_refused_path_is_quoted_on_one_line(root: Path) -> None:
    with pytest.raises(InputError) as error:
        Roots([root]).content("/\x1b[2J\n" + "a" * 5000, 10)
    assert "\x1b" not in error.value.message
    assert "\n" not in error.value.message
    assert len(error.value.message) < 300


def test_a_git_tree_has_its_objects_below_a_root(root: Path, tmp_path: Path) -> None:
    repository(tmp_path / "elsewhere")
    repository(root / "tree")
    repository(root / "bare.git", "--bare")
    roots = Roots([root])
    assert roots.tree("tree") == root / "tree"
    assert roots.tree("bare.git") == root / "bare.git"
    (root / "worktree").mkdir()
    (root / "worktree/.git").write_text(f"gitdir: {tmp_path}/elsewhere/.git\n")
    (root / "linked").mkdir()
    (root / "linked/.git").symlink_to(tmp_path / "elsewhere/.git")
    alternates = root / "bare.git/objects/info/alternates"
    alternates.write_text(f"{tmp_path}/elsewhere/.git/objects\n")
    for path in ("worktree", "linked", "bare.git", ".", "missing"):
        with pytest.raises(InputError, match="is refused"):
            roots.tree(path)


@pytest.mark.parametrize("way", ["quoted", "pack", "folder", "upwards", "gitdir"])
def test_no_tree_leads_git_out_of_the_root(root: Path, tmp_path: Path, way: str) -> None:
    repository(tmp_path / "elsewhere")
    repository(root / "tree")
    objects = root / "tree/.git/objects"
    if way == "quoted":
        (objects / "info/alternates").write_text(
            f'"\\057{str(tmp_path)[1:]}/elsewhere/.git/objects"\n'
        )
    elif way == "gitdir":
        (root / "link").symlink_to(tmp_path / "elsewhere")
        (root / "other").mkdir()
        (root / "other/.git").write_text("gitdir: ../link/../elsewhere/.git\n")
    elif way == "upwards":
        repository(root.parent)
        for name in ("objects", "refs"):
            (root / "other" / name).mkdir(parents=True)
        (root / "other/HEAD").write_text("rubbish\n")
    else:
        place = objects / ("pack" if way == "pack" else "ab")
        if place.is_dir():
            place.rmdir()
        place.symlink_to(tmp_path / "elsewhere/.git/objects")
    with pytest.raises(InputError):
        Roots([root]).tree("other" if way in ("gitdir", "upwards") else "tree")


def test_a_worktree_of_a_tree_below_a_root_is_taken(root: Path) -> None:
    repository(root / "tree")
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in ((*author, "commit", "-q", "--allow-empty", "-m", "a"), ("worktree", "add", "-q")):
        more = [str(root / "other")] if "add" in words else []
        subprocess.run(["git", "-C", str(root / "tree"), *words, *more], check=True)
    assert Roots([root]).tree("other") == root / "other"


@pytest.mark.parametrize("name", ["a@b", "a on git:", "a,b", "a b", "~"])
def test_a_path_is_no_other_source(root: Path, name: str) -> None:
    (root / name / "x").mkdir(parents=True)
    repository(root / name / "x")
    (root / name / "x/bzImage").write_text("kernel")
    roots = Roots([root])
    with pytest.raises(InputError, match="other characters"):
        roots.tree(f"{name}/x")
    with pytest.raises(InputError, match="other characters"):
        roots.plain(f"{name}/x/bzImage")


def test_the_default_is_the_current_folder_but_not_that_of_everything(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert Roots.of([]).folders == (root,)
    monkeypatch.setenv("HOME", str(root))
    for folder in (root, root.parent, Path("/")):
        monkeypatch.chdir(folder)
        with pytest.raises(InputError, match="below which is everything"):
            Roots.of([])
    assert Roots.of([root]).folders == (root,)
    with pytest.raises(InputError, match="no such folder"):
        Roots.of([root / "missing"])
