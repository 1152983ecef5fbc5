"""Patches as they are sent: who signs them, and what stands below the ---."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.flows.mail_series.patch_text import (
    commits_in,
    new_files_in,
    notes_of,
    people_in,
    sent_patch,
    with_base,
    with_notes,
)
from kteardown.flows.mail_series.person import NOBODY, PLACEHOLDER, Person
from unit.flows.mail_series.small_series import patch

JANE = Person("Jane Doe", "jane@example.org")
MAIL = b"Subject: a\n\nText.\n---\n a | 1 +\n\ndiff --git a/a b/a\n@@\n+1\n\n-- \n2.39\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "0001-a.patch"
    file.write_text(text)
    return file


def test_the_author_takes_the_place_of_the_placeholder(tmp_path: Path) -> None:
    sent = sent_patch(written(tmp_path, patch(1, 3)), 1, 2, JANE)
    text = sent.text.decode()
    assert f"From: {JANE}\n" in text and f"\nSigned-off-by: {JANE}\n---\n" in text
    assert "kteardown" not in text
    assert "Subject: [PATCH 1/2] exit: make line 3 fast\n" in text
    assert sent.author == JANE


def test_nobody_signs_a_draft_off(tmp_path: Path) -> None:
    sent = sent_patch(written(tmp_path, patch(1, 3)), 1, 2, None)
    assert f"From: {PLACEHOLDER}\n" in sent.text.decode()
    assert "Signed-off-by" not in sent.message
    assert sent.message.endswith("Link: https://example.org/3")
    assert sent.author == NOBODY


def test_another_author_keeps_the_name(tmp_path: Path) -> None:
    text = patch(1, 3).replace(PLACEHOLDER, "Rick Roe <rick@example.org>")
    draft = sent_patch(written(tmp_path, text), 1, 1, None)
    assert str(draft.author) == "Rick Roe <rick@example.org>" and b"From: Rick" in draft.text
    sent = sent_patch(written(tmp_path, text), 1, 1, JANE)
    assert b"From: Rick Roe" in sent.text
    signed = "Signed-off-by: Rick Roe <rick@example.org>\nSigned-off-by: Jane Doe"
    assert signed in sent.message


def test_a_message_without_any_sign_off_gets_one(tmp_path: Path) -> None:
    lines = [line for line in patch(1, 3).splitlines() if "off-by" not in line]
    sent = sent_patch(written(tmp_path, "\n".join(lines) + "\n"), 1, 1, JANE)
    assert sent.message.endswith(f"https://example.org/3\nSigned-off-by: {JANE}")
    bare = [line for line in lines if not line.startswith("Link: ")]
    sent = sent_patch(written(tmp_path, "\n".join(bare) + "\n"), 1, 1, JANE)
    assert sent.message.endswith(f'lines").\n\nSigned-off-by: {JANE}')


def test_of_what_stands_below_the_cut_only_the_words_of_people_stay() -> None:
    above = (
        "---\nSPDX-License-Identifier: GPL-2.0\nOrigin: of this lab\nBase: 7.3\n\n"
        "v2: rebased, as Rick | asked.\n\n a/b.c          | 12 ++--\n "
        ".../{c => d}/e.bin | Bin 0 -> 9 bytes\n"
        " 2 files changed, 1 insertion(+)\n create mode 100644 a/f.c\n\n"
    )
    diff = "diff --git a/a/b.c b/a/b.c\n--- a/a/b.c\n+++ b/a/b.c\n@@ -1 +1 @@\n-a\n+b\n"
    assert notes_of((above + diff).encode()) == "v2: rebased, as Rick | asked."
    assert notes_of(diff.encode()) == ""


def test_people_are_found_in_tags_and_nowhere_else() -> None:
    text = "Cc: stable@vger.kernel.org\nText by Rick <r@example.org>\nReviewed-by: A <a@b.org>\n"
    assert people_in(text) == ["stable@vger.kernel.org", "A <a@b.org>"]


def test_commits_are_found_by_their_ids() -> None:
    text = 'Since commit 0123456789ab ("a"), in\ncommit\nabcdef012345 as well.\n'
    text += 'A commit deadbeefisnone.\n\nFixes: fedcba987654 ("b")\nFixes: fedcba987654 ("b")\n'
    assert commits_in(text) == ["0123456789ab", "abcdef012345", "fedcba987654"]


def test_notes_stand_above_the_diffstat_and_change_nothing_else() -> None:
    assert with_notes(MAIL, "") == MAIL
    assert with_notes(MAIL, "v2: new") == MAIL.replace(b"---\n a", b"---\nv2: new\n---\n a")
    with_umlaut = with_notes(MAIL, "Jörg")
    assert b"\nContent-Type: text/plain; charset=UTF-8\n" in with_umlaut.partition(b"\n\n")[0]
    encoded = b"MIME-Version: 1.0\n" + MAIL
    assert with_notes(b"A: b\n" + encoded, "Jörg").count(b"MIME-Version") == 1


def test_the_base_stands_above_the_signature() -> None:
    expected = MAIL.replace(b"\n-- \n", b"\nbase: v7.3.4\n-- \n")
    assert with_base(MAIL, "base: v7.3.4") == expected


@pytest.mark.parametrize("text", ["no patch", "From: a\nSubject: b\n\nText.\n"])
def test_a_file_without_a_patch_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 patches"):
        sent_patch(written(tmp_path, text), 1, 1, None)


def test_the_files_that_a_patch_makes() -> None:
    new = b"--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int x;\n"
    changed = b"--- a/mm/old.c\n+++ b/mm/old.c\n@@ -1 +1 @@\n-int x;\n+int y;\n"
    assert new_files_in(changed + new) == ["mm/new.c"]
