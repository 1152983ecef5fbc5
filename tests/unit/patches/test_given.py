"""What a word names, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.patches.given import check, commit_range, diff_of


@pytest.mark.parametrize(
    ("what", "path", "span"),
    [
        ("git:~/linux@v6.12..topic", "~/linux", "v6.12..topic"),
        ("git:/srv/a@b/linux@v6.12..", "/srv/a@b/linux", "v6.12.."),
        ("git:v6.12..topic", ".", "v6.12..topic"),
        ("git:../linux@v6.12...topic", "../linux", "v6.12...topic"),
        ("v6.12..topic", ".", "v6.12..topic"),
        ("origin/master..feature/x", ".", "origin/master..feature/x"),
        ("@{u}..", ".", "@{u}.."),
    ],
)
def test_a_range_has_a_tree_and_two_ends(what: str, path: str, span: str) -> None:
    found = commit_range(what)
    assert found is not None
    assert (found.typed, found.path, found.span) == (what, path, span)
    assert found.is_bare != what.startswith("git:")


@pytest.mark.parametrize(
    "what",
    [
        *("../my.patch", "./a..b", "/srv/v1..v2", "a/../b.patch", "..topic", "~/a..b", "--all..x"),
        *("lore:1..2@example.org", "HEAD", "-"),
    ],
)
def test_what_is_a_path_or_a_mail_is_no_range(what: str) -> None:
    assert commit_range(what) is None


def test_a_file_with_the_name_of_a_range_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert commit_range("v1..v2")
    (tmp_path / "v1..v2").write_text("")
    assert commit_range("v1..v2") is None
    check("v1..v2")


@pytest.mark.parametrize(
    ("what", "example"),
    [
        ("git:~/linux", "git:~/linux@v6.12..my-topic"),
        ("git:~/linux@freeze", "git:~/linux@v6.12..freeze"),
        ("git:../linux", "git:../linux@v6.12..my-topic"),
        ("git:a/../linux", "git:a/../linux@v6.12..my-topic"),
    ],
)
def test_a_git_tree_without_a_range_is_refused_with_one(what: str, example: str) -> None:
    with pytest.raises(InputError) as refused:
        check(what)
    assert refused.value.message.startswith(what) and example in refused.value.hint


def test_what_names_nothing_is_refused(tmp_path: Path) -> None:
    for what in ("", str(tmp_path / "nothing.patch"), "my-topic"):
        with pytest.raises(InputError) as refused:
            check(what)
        assert "BASE..TOPIC" in refused.value.hint
    for what in ("-", "lore:1@example.org", str(tmp_path), "v1..v2"):
        check(what)


def test_changes_without_a_commit_are_piped() -> None:
    assert diff_of(".") == "git diff HEAD | kteardown try -"
    assert diff_of("~/linux") == "git -C ~/linux diff HEAD | kteardown try -"
    assert diff_of("/my linux") == "git -C '/my linux' diff HEAD | kteardown try -"


@pytest.mark.parametrize("span", ["@{u}..", "u@h/t..HEAD", "v6.12..u@h/t", "v6.12.."])
@pytest.mark.parametrize("folder", ["linux", "a@b/linux"])
def test_names_of_git_in_a_tree_that_exists_may_have_an_at(
    folder: str, span: str, tmp_path: Path
) -> None:
    path = tmp_path / folder
    path.mkdir(parents=True)
    (tmp_path / "a").mkdir()
    found = commit_range(f"git:{path}@{span}")
    assert found is not None
    assert (found.path, found.span) == (str(path), span)
