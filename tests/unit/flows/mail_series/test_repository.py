"""A repository with only the files of a series: git does in it what it does in a whole tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.flows.mail_series.person import NOBODY
from kteardown.flows.mail_series.repository import SERIES, MailRepository
from kteardown.kernels.series import Selection
from unit.flows.mail_series.small_series import git, make_series, make_tree, patch


@pytest.fixture
def series(tmp_path: Path) -> Selection:
    return make_series(tmp_path)


@pytest.fixture
def repository(tmp_path: Path, series: Selection) -> MailRepository:
    return MailRepository(tmp_path / "repository", make_tree(tmp_path), series.files, NOBODY)


def test_it_has_the_files_of_the_series_and_no_others(repository: MailRepository) -> None:
    assert repository.git("ls-files").text.split() == ["kernel/exit.c"]


def test_the_patches_are_commits(repository: MailRepository, series: Selection) -> None:
    assert repository.apply(SERIES, series.files) == ""
    subjects = repository.git("log", "--format=%s", "base..series").text.splitlines()
    assert subjects == ["exit: make line 12 fast", "exit: make line 3 fast"]


def test_a_refusal_is_said_and_leaves_the_repository_usable(
    repository: MailRepository, series: Selection, tmp_path: Path
) -> None:
    wrong = tmp_path / "0001-wrong.patch"
    wrong.write_text(patch(1, 3).replace(" int line_3;", " int other;"))
    assert "patch failed" in repository.apply("wrong", [wrong])
    assert repository.apply(SERIES, series.files) == ""
    assert repository.tree_of(SERIES) != repository.tree_of("base")


def test_a_tree_that_ignores_its_files_has_them_all(tmp_path: Path, series: Selection) -> None:
    tree = make_tree(tmp_path)
    (tree / ".gitignore").write_text("*.c\n")
    made = MailRepository(tmp_path / "repository", tree, series.files, NOBODY)
    assert made.git("ls-files").text.split() == ["kernel/exit.c"]


def test_the_description_is_the_cover_letter(
    repository: MailRepository, series: Selection, tmp_path: Path
) -> None:
    repository.apply(SERIES, series.files)
    text = 'exit: "two" lines \\ are slow; #1\n\n# No comment.\n\n  indented\nLast: line'
    repository.describe(SERIES, text)
    options = ("--cover-letter", "--cover-from-description=subject")
    cover, *_ = repository.write(SERIES, tmp_path / "out", *options)
    mail = cover.read_text()
    assert 'Subject: [PATCH 0/2] exit: "two" lines \\ are slow; #1\n' in mail
    assert text.partition("\n\n")[2] in mail
    assert " 1 file changed, 2 insertions(+), 2 deletions(-)\n" in mail
    assert mail.startswith(f"From {'0' * 40} ")


def test_a_failure_of_git_is_one_of_the_host(repository: MailRepository) -> None:
    with pytest.raises(LabError, match="git rev-parse failed"):
        repository.tree_of("absent")


def test_a_copy_is_an_ordinary_repository(
    repository: MailRepository, series: Selection, tmp_path: Path
) -> None:
    repository.apply(SERIES, series.files)
    repository.apply("other", [])
    repository.copy(tmp_path / "copy")
    assert git(tmp_path / "copy", "status", "--porcelain", "--branch") == "## series\n"
    assert git(tmp_path / "copy", "log", "-1", "--format=%cn") == "kteardown developers\n"
