"""Whom the mails go to: the script of a tree says it, and cannot do anything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.flows.mail_series.person import NOBODY, Person
from kteardown.flows.mail_series.recipients import Recipients, find_recipients
from kteardown.progress import SilentReporter
from unit.flows.mail_series.small_series import GET_MAINTAINER, make_series, make_tree


def asked(
    folder: Path,
    script: str = GET_MAINTAINER,
    texts: Sequence[str] = (),
    prefix: str = "PATCH",
    sender: Person = NOBODY,
) -> Recipients:
    tree = make_tree(folder, maintainers=script)
    patches = make_series(folder).files
    return find_recipients(tree, patches, texts, prefix, sender, SilentReporter())


def test_people_are_in_to_and_lists_in_cc_each_once(tmp_path: Path) -> None:
    found = asked(tmp_path, texts=["Suggested-by: Sue <sue@example.org>\nCc: RICK@example.org\n"])
    assert found.to == (
        '"Roe, Rick" <rick@example.org>',
        "=?utf-8?q?J=C3=B6rg_Muster?= <joerg@example.org>",
    )
    assert found.cc == ("linux-kernel@vger.kernel.org", "Sue <sue@example.org>")


def test_the_sender_is_not_a_recipient(tmp_path: Path) -> None:
    found = asked(tmp_path, sender=Person("Rick Roe", "rick@example.org"))
    assert [name for name in found.to if "rick" in name] == []


def test_a_patch_for_a_stable_kernel_goes_to_its_list(tmp_path: Path) -> None:
    assert "stable@vger.kernel.org" in asked(tmp_path, prefix="PATCH 6.12").cc


def test_a_script_cannot_leave_the_sandbox_or_make_a_header(tmp_path: Path) -> None:
    outside = tmp_path / "written"
    script = (
        f"open(F, '>', '{outside}') and print F 'x';\n"
        f"open(F, '>>', $ARGV[-1]) and print F 'x';\n"
        'print "A\\x1b[2J <a\\@b.org>\\nB\\r\\nBcc: <c\\@d.org>\\nE <e\\@f.org>\\n";\n'
    )
    found = asked(tmp_path, script)
    assert not outside.exists()
    assert not any("\x1b" in name or "\r" in name for name in (*found.to, *found.cc))
    assert "E <e@f.org>" in found.to


def test_a_script_that_is_absent_or_says_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="names nobody"):
        asked(tmp_path, "exit 0;\n")
    tree = tmp_path / "linux"
    (tree / "scripts/get_maintainer.pl").unlink()
    with pytest.raises(InputError, match=r"has no scripts/get_maintainer\.pl"):
        find_recipients(tree, [], [], "PATCH", NOBODY, SilentReporter())
