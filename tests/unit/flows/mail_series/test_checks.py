"""The checks of mails: each finds what it is for, and says if it did not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.flows.mail_series.checks import (
    MailCheck,
    check_with_b4,
    check_with_checkpatch,
    check_with_git_am,
)
from kteardown.flows.mail_series.letter import parse
from kteardown.flows.mail_series.person import Person
from kteardown.flows.mail_series.repository import SERIES, MailRepository
from kteardown.progress import SilentReporter
from unit.flows.mail_series.small_series import (
    CHECKPATCH,
    LETTER,
    make_series,
    make_tree,
    patch,
)

JANE = Person("Jane Doe", "jane@example.org")
GOOD, BAD = patch(1, 3), patch(2, 12).replace("+int fast", "+int FIXME")
UNSIGNED = GOOD.replace("Signed-off-by: ", "Signed-off-for: ")


def checkpatch(folder: Path, *patches: str, script: str = CHECKPATCH, signed: bool) -> MailCheck:
    tree = make_tree(folder, checkpatch=script)
    files = make_series(folder, patches=patches).files
    return check_with_checkpatch(tree, files, SilentReporter(), signed=signed)


def b4(folder: Path, *patches: str, script: str = CHECKPATCH, signed: bool) -> MailCheck:
    tree = make_tree(folder, checkpatch=script)
    files = make_series(folder, patches=patches).files
    repository = MailRepository(folder / "repository", tree, files, JANE)
    assert repository.apply(SERIES, files) == ""
    return check_with_b4(
        tree, repository, parse(LETTER), folder, JANE, SilentReporter(), signed=signed
    )


def test_checkpatch_passes_good_patches(tmp_path: Path) -> None:
    check = checkpatch(tmp_path, GOOD, patch(2, 12), signed=True)
    assert (check.passed, check.summary) == (True, "no finding")


def test_a_finding_has_its_patch_its_text_and_its_place(tmp_path: Path) -> None:
    check = checkpatch(tmp_path, GOOD, BAD, signed=True)
    assert not check.passed
    assert check.findings == ("0002: WARNING:FIXME: a FIXME is added (kernel/exit.c:4)",)


def test_a_missing_sign_off_is_a_finding_except_in_a_draft(tmp_path: Path) -> None:
    (tmp_path / "draft").mkdir()
    assert checkpatch(tmp_path / "draft", UNSIGNED, signed=False).passed
    found = checkpatch(tmp_path, UNSIGNED, signed=True).findings
    assert [text for text in found if "MISSING_SIGN_OFF" in text] == list(found) != []


@pytest.mark.parametrize("script", ["exit 0;\n", "die 'no';\n", "this is no perl\n"])
def test_a_script_that_does_not_come_to_an_end_has_found_nothing_and_passes_nothing(
    script: str, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match="did not come to an end"):
        checkpatch(tmp_path, GOOD, script=script, signed=True)


def test_a_tree_without_the_script_is_refused(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "scripts/checkpatch.pl").unlink()
    with pytest.raises(InputError, match=r"has no scripts/checkpatch\.pl"):
        check_with_checkpatch(tree, [], SilentReporter(), signed=True)


def test_b4_checks_each_patch_without_the_network(tmp_path: Path) -> None:
    check = b4(tmp_path, GOOD, patch(2, 12), signed=True)
    assert (check.passed, check.summary) == (True, "2 of 2 passed")


def test_b4_says_what_it_finds(tmp_path: Path) -> None:
    check = b4(tmp_path, GOOD, BAD, signed=True)
    assert check.summary == "1 of 2 passed"
    assert check.findings == ("1: WARNING:FIXME: a FIXME is added",)


def test_b4_does_not_miss_the_sign_off_of_a_draft(tmp_path: Path) -> None:
    assert b4(tmp_path, UNSIGNED, signed=False).passed


def test_a_script_under_b4_changes_no_file_that_is_used_afterwards(tmp_path: Path) -> None:
    outside = tmp_path / "written"
    script = f"open(F, '>', '{outside}') and print F 'x';\nunlink glob('.git/refs/heads/*');\n"
    assert b4(tmp_path, GOOD, script=script, signed=True).passed and not outside.exists()
    heads = tmp_path / "repository/git/refs/heads"
    assert sorted(path.name for path in heads.iterdir()) == ["base", "series"]
    assert not (tmp_path / "b4/.git/refs/heads/base").exists()


def test_b4_that_does_not_come_to_an_end_passes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="b4 prep --check did not come to an end"):
        b4(tmp_path, GOOD, script="kill 9, getppid;\n", signed=True)


def test_git_am_must_make_the_files_of_the_series(tmp_path: Path) -> None:
    files = make_series(tmp_path).files
    repository = MailRepository(tmp_path / "repository", make_tree(tmp_path), files, JANE)
    repository.apply(SERIES, files)
    silent = SilentReporter()
    assert check_with_git_am(repository, files, silent) == MailCheck("git am", "2 patches applied")
    other = check_with_git_am(repository, files[:1], silent)
    assert "do not make the same files" in other.findings[0]
    assert "patch failed" in check_with_git_am(repository, [files[0]] * 2, silent).findings[0]
