"""What is left to do, and the file that keeps git from sending."""

from __future__ import annotations

from kteardown.flows.mail_series.before_sending import as_mail, steps
from kteardown.flows.mail_series.recipients import Recipients


def test_the_steps_fit_the_mails() -> None:
    plain = steps(is_draft=False, is_of_git=True, failed=(), commits=(), new_files=())
    draft = steps(is_draft=True, is_of_git=True, failed=(), commits=(), new_files=())
    assert draft[1:] == plain and "--author" in draft[0]
    rebased = steps(is_draft=False, is_of_git=False, failed=(), commits=(), new_files=())
    assert [text for text in rebased if text not in plain] == [
        text for text in rebased if text.startswith("Rebase")
    ]
    every = steps(
        is_draft=True,
        is_of_git=False,
        failed=["git am"],
        commits=["0123456789ab"],
        new_files=["mm/new.c"],
    )
    assert "git am" in every[0]
    assert [text for text in every if "0123456789ab" in text] != []
    assert [text for text in every if "mm/new.c" in text] != []


def test_git_send_email_refuses_the_file() -> None:
    people = Recipients(("Rick Roe <rick@example.org>",), ())
    text = as_mail(["Read it.", "Send it."], people)
    subject = next(line for line in text.splitlines() if line.startswith("Subject: "))
    # These words are in git-send-email.perl, which ends without them only if it is forced.
    assert "*** SUBJECT HERE ***" in subject
    assert "1. Read it." in text and "To:\n  Rick Roe <rick@example.org>\n" in text
    assert "Cc:" not in text
    assert not any(line.startswith(("To: ", "Cc: ")) for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= 75
