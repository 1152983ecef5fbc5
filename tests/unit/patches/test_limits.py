"""Mails that are made to take all memory, or to crash a parser."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.patches.posted import message_id, read, resolve
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
        read(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_parts_in_parts_in_parts_are_an_error(tmp_path: Path) -> None:
    parts = "".join(f'Content-Type: multipart/mixed; boundary="{n}"\n\n--{n}\n' for n in range(2000))
    (tmp_path / "deep.eml").write_text(f"From: a@example.org\nSubject: [PATCH] x\n{parts}\n{DIFF}")
    with pytest.raises(InputError, match=r"deep\.eml is damaged: .*recursion"):
        read(str(tmp_path / "deep.eml"), cache_dir=tmp_path, reporter=SilentReporter())


@pytest.mark.parametrize("size", [33_000_000, 129_000_000])
def test_a_compressed_mail_is_read_up_to_a_limit(size: int, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as stream:
        stream.write(b"Subject: [PATCH] x\n\n")
        for _ in range(size // 1_000_000):
            stream.write(1_000_000 * b" ")
    with pytest.raises(InputError, match=r"bomb\.gz is damaged: it is larger than 128 MB, or a mail of it"):
        read(str(tmp_path / "bomb.gz"), cache_dir=tmp_path, reporter=SilentReporter())


def test_a_mail_of_a_million_lines_is_an_error(tmp_path: Path) -> None:
    what = mail(tmp_path / "long.patch", body=1_000_001 * "\n")
    with pytest.raises(InputError, match="1,000,000 lines"):
        read(what, cache_dir=tmp_path, reporter=SilentReporter())


def test_a_message_id_is_never_an_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'--help' is not a message id"):
        read("lore:--help", cache_dir=tmp_path, reporter=SilentReporter())
    assert message_id("lore:--help") == "--help"


def test_an_empty_name_is_an_error_about_the_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name of the patches is empty"):
        resolve("", cache_dir=tmp_path)
    with pytest.raises(InputError, match="the name of the patches is empty"):
        read("", cache_dir=tmp_path, reporter=SilentReporter())


@pytest.mark.parametrize("start", ["From 0 Mon Sep 17 00:00:00 2001\n", ""])
def test_a_full_disk_of_temporary_files_is_named(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\necho 'fatal: No space left on device' >&2\nexit 128\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    what = mail(tmp_path / "x.mbox")
    (tmp_path / "x.mbox").write_text(start + (tmp_path / "x.mbox").read_text())
    with pytest.raises(LabError, match="there is no space left in") as caught:
        read(what, cache_dir=tmp_path, reporter=SilentReporter())
    assert "TMPDIR" in caught.value.hint


@pytest.mark.parametrize(
    "body", [2_000_000 * "--- a", 400_000 * "depends on\n", "depends on [1]\n" * 900 + 900_000 * "\n"]
)
def test_text_that_nearly_is_a_diff_or_names_another_series_is_read_quickly(
    body: str, tmp_path: Path
) -> None:
    """With expressions that go back over all of the text these would take days."""
    what = mail(tmp_path / "text.eml", body=f"{body}\n")
    with pytest.raises(InputError, match="contains no patch"):
        read(what, cache_dir=tmp_path, reporter=SilentReporter())
    what = mail(tmp_path / "text.patch", body=f"{body}\n{DIFF}")
    assert read(what, cache_dir=tmp_path, reporter=SilentReporter()).made_on == ()


@pytest.mark.parametrize("tag", [f"6.{DIGITS}.y", f"2/2 fix {DIGITS}/1"])
def test_large_numbers_of_a_release_or_a_fix_are_read(tag: str, tmp_path: Path) -> None:
    what = mail(tmp_path / "one.patch", f"[PATCH {tag}] x")
    assert read(what, cache_dir=tmp_path, reporter=SilentReporter()).title == "x"
