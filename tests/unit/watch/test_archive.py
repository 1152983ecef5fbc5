"""New series of a list: of git repositories as public-inbox writes them, and of saved mails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import InputError, LabError
from kteardown.patches.mails import raw_mails
from kteardown.progress import SilentReporter
from kteardown_watch import archive
from kteardown_watch.archive import Seen, as_mbox, mails_of_list, threads

DATA = Path(__file__).parents[2] / "data/mail"
FREEZER = b"""From: A <a@example.org>
Subject: [PATCH] freezer: one
Message-ID: <freezer@example.org>
Date: Thu, 05 Mar 2026 10:01:00 +0100

Text.
---
diff --git a/kernel/freezer.c b/kernel/freezer.c
--- a/kernel/freezer.c
+++ b/kernel/freezer.c
@@ -1,3 +1,3 @@
 int before;
-int old;
+int new;
 int after;
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CACHE", "QUEUE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))


def epoch(folder: Path, mails: list[bytes], date: str = "") -> Path:
    """A repository with a commit for each mail, which is its file ``m``."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    dates = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date} if date else {}
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q", "-b", "master", str(folder)], check=True)
    for mail in mails:
        (folder / "m").write_bytes(mail)
        for argv in (["add", "m"], ["commit", "-qm", "mail"]):
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **dates}
            subprocess.run(
                ["git", "-C", str(folder), *identity, *argv], check=True, env=environment
            )
    return folder


def watch(where: Path | str, *argv: str) -> str:
    done = CliRunner().invoke(app, ["watch", str(where), "--once", *argv])
    assert done.exit_code == 0, done.exception
    return done.stdout


def test_a_thread_has_its_patches_and_no_replies() -> None:
    mails = raw_mails(DATA / "thread.mbox")
    (thread,) = threads([FREEZER, *mails])[1:]
    assert [b"Subject: [PATCH %d/2]" % n in mail for n, mail in enumerate(thread)] == [True] * 3
    assert threads(mails[1:2] + mails[:1])[0] == [mails[1], mails[0]]


def test_a_later_revision_in_the_thread_of_the_first_is_of_that_thread() -> None:
    first = b"Subject: [PATCH] one\nMessage-ID: <1@example.org>\n\ntext"
    second = (
        b"Subject: [PATCH v2] one\nMessage-ID: <2@example.org>\nReferences: <1@example.org>\n\ntext"
    )
    third = (
        b"Subject: [PATCH v3] one\nMessage-ID: <3@example.org>\nIn-Reply-To: "
        b"<2@example.org>\n\ntext"
    )
    assert threads([third, second, first]) == [[third, second, first]]


def test_mails_that_answer_each_other_in_a_circle_end() -> None:
    mails = [
        b"Subject: [PATCH] x\nMessage-ID: <%d@x.org>\nReferences: <%d@x.org>\n\n" % (n, (n + 1) % 3)
        for n in range(3)
    ]
    assert sum(map(len, threads(mails))) == 3


@pytest.mark.parametrize(
    "text", [b"", b"\x00", b"Subject: [PATCH]\n\n", b"\xff" * 100, b"Message-ID: <\n\n"]
)
def test_a_mail_that_cannot_be_read_is_left_out(text: bytes) -> None:
    assert threads([text]) == []


def test_a_mail_with_headers_that_no_mail_has_is_left_out() -> None:
    mails = [b"Message-ID: <%d@x>\nSubject: [PATCH] x\n\ny" % number for number in range(3)]
    mails[1] = b"Message-ID: <1@x>\nSubject: [" + 200_000 * b"PATCH" + b"\n\ny"
    assert threads(mails) == [[mails[0]], [mails[2]]]


def test_a_long_chain_of_answers_is_one_thread() -> None:
    form = b"Message-ID: <%d@x>\nIn-Reply-To: <%d@x>\nSubject: [PATCH] x\n\ny"
    mails = [form % (number, number - 1) for number in range(3_000)]
    assert [len(thread) for thread in threads(mails)] == [3_000]


def test_an_mbox_keeps_each_mail(tmp_path: Path) -> None:
    mails = [FREEZER, FREEZER.replace(b"Text.", b"From here\n>From there")]
    file = tmp_path / "mbox"
    file.write_bytes(as_mbox(mails))
    once = raw_mails(file)
    assert [mail.partition(b"\n")[2].strip() for mail in once] == [mail.strip() for mail in mails]
    file.write_bytes(as_mbox(once))
    assert raw_mails(file) == once


def test_a_repository_has_the_mails_of_the_last_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = epoch(tmp_path / "0", [b"old"], "2020-01-01T00:00:00Z")
    epoch(tree, [FREEZER, b"x" * 100_000])
    found = mails_of_list(str(tree), 7, tmp_path / "cache", SilentReporter())
    assert found == [FREEZER, b"x" * 100_000]
    assert len(mails_of_list(str(tree), 10_000, tmp_path / "cache", SilentReporter())) == 3
    # What does not fit into memory is left out, the oldest first.
    monkeypatch.setattr(archive, "_MOST_BYTES", 100_000 + len(FREEZER) - 1)
    assert mails_of_list(str(tree), 7, tmp_path / "cache", SilentReporter()) == found[1:]


def test_a_folder_in_the_place_of_a_mail_is_left_out(tmp_path: Path) -> None:
    tree = epoch(tmp_path / "0", [FREEZER])
    (tree / "m").unlink()
    (tree / "m").mkdir()
    (tree / "m/file").write_text("no mail")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "mail"], check=True)
    assert mails_of_list(str(tree), 7, tmp_path / "cache", SilentReporter()) == [FREEZER]


def test_a_list_is_fetched_with_its_last_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    for number, mail in enumerate((b"zero", b"one", FREEZER)):
        epoch(tmp_path / "archive/cgroups" / str(number), [mail])
    cache = tmp_path / "cache"
    assert sorted(mails_of_list("cgroups", 7, cache, SilentReporter())) == sorted([b"one", FREEZER])
    epoch(tmp_path / "archive/cgroups/2", [b"new"])
    assert b"new" in mails_of_list("cgroups", 7, cache, SilentReporter())
    with pytest.raises(LabError, match="the list nothing cannot be fetched from"):
        mails_of_list("nothing", 7, cache, SilentReporter())
    for wrong in ("../x", "-x", "a b", "x/y"):
        with pytest.raises(InputError, match="there is no file or folder"):
            mails_of_list(wrong, 7, cache, SilentReporter())


def test_what_nothing_executes_is_counted_and_the_rest_would_be_tried(tmp_path: Path) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / "freezer.eml").write_bytes(FREEZER)
    shutil.copy(DATA / "quoted-printable.eml", folder)
    text = watch(folder, "--dry-run")
    assert "| freezer: one | A <a@example.org> |  | not tried |" in text
    assert "1 new series change what a workload executes.\n1 other new series do not." in text
    assert not (tmp_path / "queue/digests").exists()
    assert "1 new series" in watch(folder, "--dry-run")


def test_each_new_series_is_tried_once_and_the_digest_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "mbox"
    file.write_bytes(FREEZER)
    text = watch(file, "--source", f"tar:{tmp_path / 'absent.tar'}")
    assert "| freezer: one | A <a@example.org> | warn | not measured: " in text
    (kept,) = (tmp_path / "queue/digests").iterdir()
    assert text.startswith(kept.read_text())
    assert "no new series change" in watch(file)


def test_an_incomplete_series_waits_for_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "mbox"
    part = FREEZER.replace(b"[PATCH]", b"[PATCH 1/2]")
    rest = part.replace(b"1/2", b"2/2").replace(
        b"<freezer@example.org>", b"<two@example.org>\nIn-Reply-To: <freezer@example.org>"
    )
    file.write_bytes(part)
    assert "Left out: freezer: one: some of its patches are missing." in watch(file)
    file.write_bytes(as_mbox([part, rest]))
    assert "1 new series" in watch(file, "--dry-run")


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[" * 9, "\x00"])
def test_a_damaged_list_of_seen_series_is_begun_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "seen.json"
    file.write_text(text)
    seen = Seen(file)
    assert "a" not in seen
    seen.add("a")
    assert "a" in Seen(file)
