"""A git branch as a series, in real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.kernels.git import of_branch, store
from kteardown.patches.posted import resolve
from kteardown.run.resolve import base_and_variants


def git(path: Path, *argv: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(path), *identity, *argv], check=True, capture_output=True, text=True
    )
    return done.stdout


def change(path: Path, text: str) -> None:
    (path / "file.c").write_text(text)
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", f"file: say {text.rsplit(maxsplit=1)[-1]}")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """v1, then two commits of ``my/topic`` (checked out) and one of ``main``."""
    path = tmp_path / "linux"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    # Settings of a user that change the format of patches.
    git(path, "config", "diff.noprefix", "true")
    git(path, "config", "format.coverLetter", "true")
    git(path, "config", "format.attach", "true")
    change(path, "one\n")
    git(path, "tag", "v1")
    change(path, "one\nmain\n")
    git(path, "checkout", "-q", "-b", "my/topic", "v1")
    change(path, "one\ntwo\n")
    change(path, "one\ntwo\nthree\n")
    return path


@pytest.mark.parametrize(
    "span", ["v1..my/topic", "main..my/topic", "v1..", "v1...my/topic", "v1..HEAD"]
)
def test_the_commits_become_the_series(tree: Path, tmp_path: Path, span: str) -> None:
    found = of_branch(span, tree, tmp_path / "cache")
    fork, folder = found
    selection = resolve(str(folder), cache_dir=tmp_path / "cache")
    assert selection.label == "my-topic"
    assert selection.patch_set.subjects == ("file: say two", "file: say three")
    assert "--- a/file.c" in selection.patches[0].read_text()
    assert git(tree, "rev-parse", fork) == git(tree, "rev-parse", "v1")
    assert of_branch(span, tree, tmp_path / "cache") == found


def test_equal_patches_of_two_names_and_others_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    first = store([("0001-a.patch", b"one")], "series", tmp_path)
    others = [
        store([("0001-a.patch", b"one")], "same-patches", tmp_path),
        store([("0001-a.patch", b"two")], "series", tmp_path),
        store([("0001-a.patch", b"one"), ("0002-b.patch", b"two")], "series", tmp_path),
    ]
    assert [path.read_bytes() for path in first] == [b"one"]
    assert [[path.read_bytes() for path in other] for other in others] == [
        [b"one"],
        [b"two"],
        [b"one", b"two"],
    ]
    assert len({path.parent.parent for path in (first[0], *(other[0] for other in others))}) == 4


def test_a_relative_path_of_the_cache_is_relative_to_the_working_folder(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.parent)
    _, folder = of_branch("v1..my/topic", Path("linux"), Path("cache"))
    assert folder.parents[2] == tree.parent / "cache"
    assert len(list(folder.glob("*.patch"))) == 2


def test_the_patches_apply_to_their_base(tree: Path, tmp_path: Path) -> None:
    patches = resolve(str(of_branch("v1..my/topic", tree, tmp_path)[1]), cache_dir=tmp_path).patches
    git(tree, "checkout", "-q", "v1")
    git(tree, "-c", "diff.noprefix=false", "am", "-q", *map(str, patches))
    assert (tree / "file.c").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("v1", "expected BASE..TOPIC"),
        ("v9..my/topic", "'v9' is not a commit"),
        ("my/topic..v1", "contains no commits"),
        ("v1..merged", "is a merge"),
        ("v1..apart", "no commit in common"),
    ],
)
def test_a_range_that_is_not_a_series_is_an_error(
    tree: Path, tmp_path: Path, span: str, expected: str
) -> None:
    git(tree, "checkout", "-q", "-b", "merged")
    git(tree, "merge", "-q", "-s", "ours", "-m", "merge", "main")
    git(tree, "checkout", "-q", "--orphan", "apart")
    git(tree, "commit", "-q", "-m", "apart")
    with pytest.raises(InputError, match=expected):
        of_branch(span, tree, tmp_path)


def test_the_base_is_derived_from_the_branch(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tree.parent / "cache"))
    source, (folder,) = base_and_variants("", [], ["v1..my/topic"])
    assert source == f"git:{tree}@v1"
    assert base_and_variants(f"git:{tree}", [], ["v1..my/topic"]) == (source, [folder])
    # A base that moved on since: the commit that the branch left it at.
    assert (
        base_and_variants("", [], ["main..my/topic"])[0]
        == f"git:{tree}@{git(tree, 'rev-parse', 'v1').strip()}"
    )
    # A source of its own, and other series beside the branch.
    assert base_and_variants("debian:6.12", ["./my.mbox"], ["v1.."]) == (
        "debian:6.12",
        ["./my.mbox", folder],
    )
    assert base_and_variants(f"git:{tree}@main", [], ["v1.."]) == (f"git:{tree}@main", [folder])
    assert base_and_variants(f"git:{tree}", ["./my.mbox"], []) == (f"git:{tree}", ["./my.mbox"])


@pytest.mark.parametrize(
    ("series", "branches", "expected"),
    [
        ([], [], "nothing to compare with base"),
        (["./my.mbox"], [], "--source is missing"),
        ([], ["v1..my/topic", "v1~0..main", "my/topic~1..my/topic"], "different commits"),
    ],
)
def test_options_that_do_not_determine_base_and_variants_are_errors(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    series: list[str],
    branches: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tree)
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tree.parent / "cache"))
    with pytest.raises(InputError, match=expected):
        base_and_variants("", series, branches)
