"""Mails as they come. The files of ``tests/data/mail`` are written for these tests."""

from __future__ import annotations

import email.message
import email.policy
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.patches.choice import choose_series
from kteardown.patches.mails import DIFF_START, parse, split_mbox
from kteardown.patches.posted import PostedSeries, read_series
from kteardown.progress import SilentReporter

MAILS = Path(__file__).parents[2] / "data" / "mail"
ONE = "ours: free the counter earlier"
CAFE = "ours: free the café counter earlier"
BASE = "0123456789abcdef0123456789abcdef01234567"


def posted(name: str, cache: Path) -> PostedSeries:
    return read_series(str(MAILS / name), cache_dir=cache, reporter=SilentReporter())


@pytest.mark.parametrize("name", ["thread.mbox", "thread.mbox.gz"])
def test_mails_are_read_from_the_standard_input(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (MAILS / name).open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        found = read_series("-", cache_dir=tmp_path, reporter=SilentReporter())
    assert [file.read_bytes() for file in found.patches] == [
        file.read_bytes() for file in posted("thread.mbox", tmp_path).patches
    ]


def hunk(number: int) -> str:
    return (
        f"@@ -{number},3 +{number},3 @@\n int before_{number};\n-int old_{number};\n+int "
        f"new_{number};\n"
        f" int after_{number};\n"
    )


@pytest.mark.parametrize(
    ("name", "subjects", "hunks"),
    [
        ("quoted-printable.eml", [ONE], [1]),
        ("base64.eml", [ONE], [1]),
        ("flowed.eml", [ONE], [1]),
        ("attachment.eml", [ONE], [1]),
        ("inline-and-attached.eml", [ONE], [1]),
        ("unknown-charset.eml", [ONE], [1]),
        ("sent-for-another.eml", [ONE], [1]),
        ("bare.diff", ["bare"], [1]),
        ("in-a-reply.eml", ["ours: something"], [1]),
        ("encoded-subject.eml", [CAFE], [2]),
        ("two-attachments.eml", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("crlf.mbox", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("from-lines.mbox", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("thread.mbox", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("thread.mbox.gz", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("maildir", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("unrelated.mbox", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("sent-again.mbox", ["ours: part 1", "ours: part 2"], [1, 2]),
        ("revisions.mbox", ["ours: part 1", "ours: part 2", "ours: part 3"], [1, 2, 3]),
        ("partial-revision.mbox", ["ours: part 1", "ours: part 2", "ours: part 3"], [1, 2, 3]),
        ("incomplete.mbox", ["ours: part 1", "ours: part 3"], [1, 3]),
    ],
)
def test_every_form_of_a_mail_gives_its_patches(
    name: str, subjects: list[str], hunks: list[int], tmp_path: Path
) -> None:
    series = posted(name, tmp_path)
    assert list(series.subjects) == subjects
    for patch, number in zip(series.patches, hunks, strict=True):
        text = patch.read_bytes()
        assert hunk(number).encode() in text
        assert b"\r" not in text
    apply(series, hunks, tmp_path / "tree")


def test_a_mail_of_a_maildir_may_have_flags_in_its_name(tmp_path: Path) -> None:
    """They come after a colon, which a file of the tree must not have: archives refuse it."""
    (tmp_path / "maildir" / "cur").mkdir(parents=True)
    mail = (MAILS / "maildir" / "cur" / "1.host").read_bytes()
    (tmp_path / "maildir" / "cur" / "1.host:2,S").write_bytes(mail)
    found = read_series(str(tmp_path / "maildir"), cache_dir=tmp_path, reporter=SilentReporter())
    assert found.subjects == ("ours: part 2",)


def apply(series: PostedSeries, numbers: list[int], tree: Path) -> None:
    """Let git am apply the patches to the file that they were made from."""
    (tree / "kernel").mkdir(parents=True)
    text = "".join(f"int before_{n};\nint old_{n};\nint after_{n};\n" for n in numbers)
    (tree / "kernel" / "ours.c").write_text(text)
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    for argv in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", "-C", str(tree), *argv], check=True)
    subprocess.run(
        ["git", "-C", str(tree), *identity, "am", "-q", *map(str, series.patches)], check=True
    )
    assert (tree / "kernel" / "ours.c").read_text() == text.replace("old_", "new_")


def test_a_mail_with_two_diffs_is_one_patch(tmp_path: Path) -> None:
    (patch,) = posted("two-diffs.eml", tmp_path).patches
    assert patch.read_text().count("diff --git") == 2


def test_author_title_and_date(tmp_path: Path) -> None:
    series = posted("thread.mbox", tmp_path)
    assert (series.title, series.revision) == ("ours: free counters earlier", "")
    assert (series.message_id, series.date) == ("202603-1-0@example.org", "2026-03-05")
    assert (series.author, series.base_commit) == ("A. Author <author@example.org>", BASE)
    assert series.cover.startswith("This series frees counters earlier.")
    assert posted("revisions.mbox", tmp_path).revision == "v2"
    assert posted("encoded-subject.eml", tmp_path).author == "Jörg Author <author@example.org>"
    assert posted("sent-for-another.eml", tmp_path).author == "B. Writer <writer@example.org>"


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        (
            "thread.mbox",
            [
                "left out: the diff in a reply, 'Re: [PATCH 2/2] ours: part 2' by "
                "reviewer@example.org",
                "left out: the diff without [PATCH], '+ ours-part-1.patch added to a tree' by "
                "maintainer@example.org",
            ],
        ),
        ("revisions.mbox", ["left out: 2 patches of revision v1"]),
        ("partial-revision.mbox", ["patch 2 is taken from revision v1.1"]),
        ("incomplete.mbox", ["the series is incomplete: patch 2 of 3 is missing"]),
        (
            "sent-again.mbox",
            ["two mails are '[PATCH RESEND 2/2] ours: part 2'; the later mail is used"],
        ),
        (
            "unrelated.mbox",
            [
                "left out: the diff of another series, '[PATCH 1/3] theirs: another one' by "
                "other@example.org"
            ],
        ),
        ("in-a-reply.eml", ["the patch is from a reply, because no other mail has a diff"]),
        ("quoted-printable.eml", []),
    ],
)
def test_what_is_left_out_is_reported(name: str, notes: list[str], tmp_path: Path) -> None:
    assert list(posted(name, tmp_path).notes) == notes


def test_missing_patches_are_known_by_number(tmp_path: Path) -> None:
    assert posted("incomplete.mbox", tmp_path).missing == (2,)
    assert posted("encoded-subject.eml", tmp_path).missing == (1, 3, 4, 5, 6, 7, 8, 9)
    assert posted("thread.mbox", tmp_path).missing == ()


def test_a_named_mail_decides_the_revision() -> None:
    mails = [parse(raw, "") for raw in split_mbox((MAILS / "revisions.mbox").read_bytes())]
    assert [mail.number for mail in choose_series(mails, "202603-1-0@example.org").patches] == [
        1,
        2,
    ]
    assert [mail.number for mail in choose_series(mails, "202603-2-1@example.org").patches] == [
        1,
        2,
        3,
    ]
    assert [mail.number for mail in choose_series(mails, "unknown@example.org").patches] == [
        1,
        2,
        3,
    ]


def _backport(number: int) -> bytes:
    """Return one of several mails of a thread for stable kernels, which have no numbers."""
    return f"""From: Maintainer <m@example.org>
Subject: [PATCH AUTOSEL 6.19-5.10] part {number} is fixed
Message-ID: <backport-{number}@example.org>
In-Reply-To: <backport-1@example.org>

---
diff --git a/file_{number}.c b/file_{number}.c
--- a/file_{number}.c
+++ b/file_{number}.c
@@ -1 +1 @@
-int old_{number};
+int new_{number};
""".encode()


def test_a_named_patch_without_a_number_is_a_series_of_its_own() -> None:
    mails = [parse(_backport(number), "") for number in (1, 2, 3)]
    found = choose_series(mails, "backport-2@example.org")
    assert [mail.title for mail in found.patches] == ["part 2 is fixed"]
    assert len(found.notes) == 2 and "part 3 is fixed" in found.notes[1]
    assert [mail.title for mail in choose_series(mails).patches] == [
        f"part {n} is fixed" for n in (1, 2, 3)
    ]


def test_a_mail_without_a_patch_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no patch"):
        posted("no-patch.eml", tmp_path)
    with pytest.raises(InputError, match="there is no file"):
        posted("not-there.eml", tmp_path)


def test_a_damaged_patch_is_named_by_the_mail_that_it_is_in(tmp_path: Path) -> None:
    text = (MAILS / "thread.mbox").read_bytes()
    file, folder = tmp_path / "cut.mbox", tmp_path / "mails"
    file.write_bytes(text.replace(b"\n int after_2;\n", b"\n"))
    with pytest.raises(InputError) as caught:
        read_series(str(file), cache_dir=tmp_path / "cache", reporter=SilentReporter())
    assert caught.value.message.startswith(
        f"{file}, mail 4 of 7 ('[PATCH 2/2] ours: part 2') is a damaged"
    )
    folder.mkdir()
    for number, mail in enumerate(split_mbox(file.read_bytes()), 1):
        (folder / f"{number}.eml").write_bytes(mail)
    with pytest.raises(InputError, match=f"^{folder}/4.eml \\('\\[PATCH 2/2"):
        read_series(str(folder), cache_dir=tmp_path / "cache", reporter=SilentReporter())


def test_a_damaged_patch_of_the_archive_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "thread.mbx"
    file.write_bytes((MAILS / "thread.mbox").read_bytes().replace(b"\n int after_2;\n", b"\n"))
    monkeypatch.setattr("kteardown.patches.posted.fetch", lambda *_: file)
    with pytest.raises(InputError, match=r"^lore:a@b, mail 4 of 7"):
        read_series("lore:a@b", cache_dir=tmp_path, reporter=SilentReporter())


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "thread.mbox.gz"
    file.write_bytes((MAILS / "thread.mbox.gz").read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be read"):
        read_series(str(file), cache_dir=tmp_path, reporter=SilentReporter())


def test_a_folder_that_has_only_a_folder_of_mails_is_read(tmp_path: Path) -> None:
    (tmp_path / "series" / "mails").mkdir(parents=True)
    (tmp_path / "series" / "mails" / "0001.eml").write_bytes((MAILS / "base64.eml").read_bytes())
    found = read_series(str(tmp_path / "series"), cache_dir=tmp_path, reporter=SilentReporter())
    assert found.subjects == (ONE,)


def test_equal_mails_are_one_entry_of_the_cache(tmp_path: Path) -> None:
    assert posted("thread.mbox", tmp_path).patches == posted("thread.mbox.gz", tmp_path).patches


WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=60)
ENCODINGS = st.sampled_from(["8bit", "quoted-printable", "base64"])


@given(WORDS, st.lists(WORDS, max_size=6), ENCODINGS)
def test_the_text_of_a_mail_does_not_change_its_diff(
    title: str, body: list[str], encoding: str
) -> None:
    message = email.message.EmailMessage()
    message["From"] = "A. Author <author@example.org>"
    message["Subject"] = "[PATCH v2 3/4] x" + " ".join(title.split())
    text = "\n".join(f". {line}" for line in body)
    diff = (
        "diff --git a/kernel/ours.c b/kernel/ours.c\n--- a/kernel/ours.c\n+++ b/kernel/ours.c\n"
        + hunk(1)
    )
    message.set_content(f"{text}\n---\n{diff}", cte=encoding)
    mail = parse(message.as_bytes(policy=email.policy.SMTPUTF8), "x")
    assert (mail.number, mail.total, mail.revision, mail.is_posted) == (3, 4, (2, 0), True)
    assert [hunk(1).encode() in found.text for found in mail.diffs] == [True]


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"Subject: [PATCH 1/2] a\n", b"Content-Type: text/plain\n"]),
)
def test_no_mail_ends_the_program(noise: bytes, header: bytes) -> None:
    for raw in split_mbox(header + noise):
        mail = parse(raw, "noise")
        choose_series([mail, mail])


@given(st.integers(1, 12).flatmap(lambda n: st.permutations(range(1, n + 1))))
def test_the_patches_of_a_thread_are_sorted_by_number(order: list[int]) -> None:
    diff = "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    mails = [
        parse(
            f"From: a@x\nSubject: [PATCH {n}/{len(order)}] p\n\n---\n{diff}{hunk(n)}".encode(), ""
        )
        for n in order
    ]
    found = choose_series(mails).patches
    assert [mail.number for mail in found] == list(range(1, len(order) + 1))
    assert all(DIFF_START.search(mail.diffs[0].text) for mail in found)
