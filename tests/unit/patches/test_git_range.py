"""Which part of a range of commits is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.patches import git_range
from kteardown.patches.given import commit_range
from kteardown.patches.posted import read_series
from kteardown.progress import SilentReporter


def git(tree: Path, *argv: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "-C", str(tree), *identity, *argv], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """v7.3, and the branch freeze with one commit more. It is the current folder."""
    tree = tmp_path / "linux"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "freeze")
    for text in ("one", "two"):
        (tree / "a.c").write_text(f"{text}\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", text)
        if text == "one":
            git(tree, "tag", "v7.3")
    monkeypatch.chdir(tree)
    return tree


def refused(what: str) -> InputError:
    given = commit_range(what)
    assert given is not None
    with pytest.raises(InputError) as error:
        git_range.check(given)
    assert what in error.value.message
    return error.value


def test_a_range_with_commits_is_a_series(tree: Path, tmp_path: Path) -> None:
    for what in ("v7.3..freeze", "v7.3..", f"git:{tree}@v7.3..", "git:v7.3..freeze", "v7.3...HEAD"):
        series = read_series(what, cache_dir=tmp_path / "cache", reporter=SilentReporter())
        assert series.subjects == ("two",)
        assert series.source.startswith(f"git:{tree}@")


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("v7.3..freez", "did you mean 'freeze'"),
        ("v7.4..freeze", "did you mean 'v7.3'"),
        ("freeze..v7.3", "freeze has all those of v7.3"),
        ("git:/nowhere/linux@v7.3..freeze", "/nowhere/linux is not a folder"),
    ],
)
def test_the_part_that_is_wrong_is_named(what: str, word: str, tree: Path) -> None:
    error = refused(what)
    assert word in error.message
    assert "--source" not in error.hint and "--branch" not in error.message


def test_the_changes_of_a_branch_without_commits_are_piped(tree: Path) -> None:
    git(tree, "tag", "start")
    assert refused("start..").hint.endswith("git diff HEAD | kteardown try -")
    assert f"git -C {tree} diff HEAD |" in refused(f"git:{tree}@start..HEAD").hint


def test_a_folder_that_is_no_git_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no file v7.3..freeze" in refused("v7.3..freeze").message
    assert "is not a git tree" in refused(f"git:{tmp_path}@v7.3..freeze").message


def test_a_merge_is_named_with_the_range_as_it_was_typed(tree: Path, tmp_path: Path) -> None:
    git(tree, "checkout", "-q", "-b", "other", "v7.3")
    git(tree, "commit", "-q", "--allow-empty", "-m", "three")
    git(tree, "merge", "-q", "--no-edit", "freeze")
    with pytest.raises(InputError, match=r"^v7\.3\.\.other: [0-9a-f]{12} is a merge commit"):
        read_series("v7.3..other", cache_dir=tmp_path / "cache", reporter=SilentReporter())


def test_a_git_tree_is_no_folder_of_patches(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(tree), "bare")
    for folder in (tree, tmp_path / "bare"):
        assert git_range.is_tree(folder)
        with pytest.raises(InputError, match="is a git tree, not a folder of patches") as error:
            read_series(str(folder), cache_dir=tmp_path / "cache", reporter=SilentReporter())
        assert f"git:{folder}@BASE..TOPIC" in error.value.hint
    assert not git_range.is_tree(tmp_path)
