"""Mails that are made to take all memory, or to crash a parser."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels import apply_patches
from kteardown.patches import reading
from kteardown.patches.failing_hunks import failing_hunks
from kteardown.patches.given import message_id
from kteardown.patches.posted import read_series, resolve
from kteardown.patches.tried_source import TriedSource
from kteardown.progress import SilentReporter

DIFF = "---\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"
DIGITS = 5000 * "9"


def mail(path: Path, subject: str = "[PATCH] x", body: str = DIFF) -> str:
    path.write_text(f"From: A <a@example.org>\nSubject: {subject}\n\nwhy\n{body}")
    return str(path)


@pytest.mark.parametrize("tag", ["1/1000000000", f"1/{DIGITS}", f"v{DIGITS} 1/2", "v3.1 2/1001"])
def test_a_number_of_patches_that_is_too_large_is_an_error(tag: str, tmp_path: Path) -> None:
    what = mail(tmp_path / "one.patch", f"[PATCH {tag}] x")
    with pytest.raises(InputError, match=r"one\.patch is damaged: .*a number above 1,000"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_parts_in_parts_in_parts_are_an_error(tmp_path: Path) -> None:
    parts = "".join(
        f'Content-Type: multipart/mixed; boundary="{n}"\n\n--{n}\n' for n in range(2000)
    )
    (tmp_path / "deep.eml").write_text(f"From: a@example.org\nSubject: [PATCH] x\n{parts}\n{DIFF}")
    with pytest.raises(InputError, match=r"deep\.eml is damaged: .*more than 8 deep"):
        read_series(str(tmp_path / "deep.eml"), cache_dir=tmp_path, reporter=SilentReporter())


@pytest.mark.parametrize("size", [33_000_000, 129_000_000])
def test_a_compressed_mail_is_read_up_to_a_limit(size: int, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as stream:
        stream.write(b"Subject: [PATCH] x\n\n")
        for _ in range(size // 1_000_000):
            stream.write(1_000_000 * b" ")
    with pytest.raises(
        InputError, match=r"bomb\.gz is damaged: it is larger than 128 MB, or a mail of it"
    ):
        read_series(str(tmp_path / "bomb.gz"), cache_dir=tmp_path, reporter=SilentReporter())


def test_a_mail_of_a_million_lines_is_an_error(tmp_path: Path) -> None:
    what = mail(tmp_path / "long.patch", body=1_000_001 * "\n")
    with pytest.raises(InputError, match="1,000,000 lines"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_a_message_id_is_never_an_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'--help' is not a message id"):
        read_series("lore:--help", cache_dir=tmp_path, reporter=SilentReporter())
    assert message_id("lore:--help") == "--help"


def test_an_empty_name_is_an_error_about_the_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name of the patches is empty"):
        resolve("", cache_dir=tmp_path)
    with pytest.raises(InputError, match="the name of the patches is empty"):
        read_series("", cache_dir=tmp_path, reporter=SilentReporter())


@pytest.mark.parametrize("start", ["From 0 Mon Sep 17 00:00:00 2001\n", ""])
def test_a_full_disk_of_temporary_files_is_named(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text(
        "#!/bin/sh\necho 'fatal: No space left on device' >&2\nexit 128\n"
    )
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    what = mail(tmp_path / "x.mbox")
    (tmp_path / "x.mbox").write_text(start + (tmp_path / "x.mbox").read_text())
    with pytest.raises(LabError, match="there is no space left in") as caught:
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())
    assert "TMPDIR" in caught.value.hint


@pytest.mark.parametrize(
    "body", [150_000 * "--- a", 150_000 * "depends on\n", "depends on [1]\n" * 900 + 900_000 * "\n"]
)
def test_text_that_nearly_is_a_diff_or_names_another_series_is_read_quickly(
    body: str, tmp_path: Path
) -> None:
    """With expressions that go back over all of the text these would take days."""
    what = mail(tmp_path / "text.eml", body=f"{body}\n")
    with pytest.raises(InputError, match="contains no patch"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())
    what = mail(tmp_path / "text.patch", body=f"{body}\n{DIFF}")
    assert read_series(what, cache_dir=tmp_path, reporter=SilentReporter()).made_on == ()


@pytest.mark.parametrize("tag", [f"6.{DIGITS}.y", f"2/2 fix {DIGITS}/1"])
def test_large_numbers_of_a_release_or_a_fix_are_read(tag: str, tmp_path: Path) -> None:
    what = mail(tmp_path / "one.patch", f"[PATCH {tag}] x")
    assert read_series(what, cache_dir=tmp_path, reporter=SilentReporter()).title == "x"


LONG = 150_000
ANSWERED = "x"
SLOW = {
    "a name in a line of a diff": (f"--- {LONG * 'a'}\n+++ b\n{DIFF}", ANSWERED),
    "a line of git": (f"diff --git a/{LONG * 'a'}\n{DIFF}", "is a damaged patch"),
    "names with spaces": (f"diff --git a/{LONG * ' a'}\n{DIFF}", "20 spaces"),
    "many folders": (f"{DIFF}\ndiff --git a/b a/b\n--- a/b\n+++ {LONG * 'a/'}\n", "200 folders"),
    "a new name": (f"{DIFF}\ndiff --git a/b a/c\nrename from b\nrename to {LONG * 'c'}\n", "4,000"),
    "a message id": (f"depends on <{LONG * '1'}\n{DIFF}", ANSWERED),
    "message ids": (f"depends on {LONG // 3 * '<1@'}\n{DIFF}", ANSWERED),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("body", "answer"), SLOW.values(), ids=SLOW.keys())
def test_a_long_line_is_read_once(
    body: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CPU_SECONDS", 3)
    what = mail(tmp_path / "long.patch", body=body)
    if answer == ANSWERED:
        assert read_series(what, cache_dir=tmp_path, reporter=SilentReporter()).title == answer
    else:
        with pytest.raises(InputError, match=answer):
            read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


HEADERS = {
    "folded": "Subject: [PATCH] x\n" + 20_000 * " very\n",
    "not ASCII": f"Subject: [PATCH] {60_000 * chr(233)}\n",
    "encoded words": f"Subject: [PATCH] {20_000 * '=?a?q?'}\n",
    "brackets": f"From: {20_000 * '('}\n",
    "quotes": f"From: {13_000 * chr(34)}\n",
    "a type": f"Content-Type: text/plain; {30_000 * (chr(34) + ';')}\n",
    "a name of a file": f"Content-Disposition: attachment; {30_000 * 'filename*0=a;'}\n",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_a_long_header_is_an_error(
    header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CPU_SECONDS", 3)
    (tmp_path / "long.mail").write_text(
        f"{header}Date: Thu, 1 Oct 2026 10:00:00 +0000\n\nwhy\n{DIFF}"
    )
    with pytest.raises(
        InputError, match=r"long\.mail is damaged: its header \S+ has more than 8,000 bytes"
    ):
        read_series(str(tmp_path / "long.mail"), cache_dir=tmp_path, reporter=SilentReporter())


def test_an_address_in_many_brackets_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.mail").write_text(f"From: {4_000 * '('}\nSubject: [PATCH] x\n\nwhy\n{DIFF}")
    with pytest.raises(InputError, match="is not the address of a person"):
        read_series(str(tmp_path / "x.mail"), cache_dir=tmp_path, reporter=SilentReporter())


def test_an_author_in_the_text_is_as_limited_as_a_header(tmp_path: Path) -> None:
    what = mail(tmp_path / "x.mail")
    text = (
        (tmp_path / "x.mail")
        .read_text()
        .replace("\n\nwhy", f"\n\nFrom: A <{9_000 * 'a'}@x.org>\n\nwhy")
    )
    (tmp_path / "x.mail").write_text(text)
    with pytest.raises(InputError, match="its email has more than 8,000 characters"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_a_charset_that_does_not_exist_leaves_the_subject_as_it_is(tmp_path: Path) -> None:
    raw = (
        b"From: A <a@example.org>\nSubject: =?\xd1tf-8?b?eA==?= [PATCH] x\n\nwhy\n" + DIFF.encode()
    )
    (tmp_path / "x.mail").write_bytes(raw)
    assert (
        "[PATCH] x"
        in read_series(
            str(tmp_path / "x.mail"), cache_dir=tmp_path, reporter=SilentReporter()
        ).title
    )


def test_an_mbox_of_many_empty_mails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "many.mbox").write_bytes(b"From a Thu Jan  1 00:00:00 1970\n\n" * 20_001)
    with pytest.raises(InputError, match="more than 20,000 mails"):
        read_series(str(tmp_path / "many.mbox"), cache_dir=tmp_path, reporter=SilentReporter())


def test_a_patch_of_more_files_than_a_tree_has_is_an_error(tmp_path: Path) -> None:
    names = "".join(
        f"diff --git a/{n} b/x{n}\nrename from {n}\nrename to x{n}\n" for n in range(20_002)
    )
    what = mail(tmp_path / "many.patch", body=f"---\n{names}")
    with pytest.raises(InputError, match="more than 20,000 files"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_a_patch_with_more_lines_between_its_hunks_than_files_need_is_an_error(
    tmp_path: Path,
) -> None:
    what = mail(tmp_path / "many.patch", body=f"---\n{DIFF}" + "rename to x\n" * 200_001)
    with pytest.raises(InputError, match="more than 200,000 lines outside of hunks"):
        read_series(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_a_patch_with_a_line_of_a_megabyte_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "long.patch").write_text(f"{1_000_000 * 'a'}\n{DIFF}")
    with pytest.raises(InputError, match="a line of more than 1,000,000 bytes"):
        apply_patches.read_patch(tmp_path / "long.patch")


@pytest.mark.timeout(120)
def test_a_file_that_a_patch_makes_many_times_has_its_hunks_once(tmp_path: Path) -> None:
    made = (
        "diff --git a/new.c b/new.c\nnew file mode 100644\n--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 "
        "@@\n+a\n"
    )
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/new.c").write_text("a\n")
    patch = tmp_path / "0001-x.patch"
    patch.write_text(f"---\n{1_000 * made}")
    failing = failing_hunks(
        TriedSource("tree", "tree", "fails"), tmp_path / "tree", [patch]
    ).failing
    assert len(failing) <= 1_000
