"""The texts of the shipped series: cover letters and messages have the form of mails to a kernel
list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kteardown.kernels.series import backports_in

ROOT = Path(__file__).parents[3]
WIDTH = 75
"""The columns of a line of prose: what checkpatch.pl accepts in a message."""
SIGNED_OFF = "Signed-off-by: kteardown developers <kteardown@localhost>"
COVERS = sorted(ROOT.glob("series/*/0000-cover-letter.md"))
PATCHES = sorted(ROOT.glob("series/**/*.patch"))
# Tables, code, links, and what scripts/splice.py writes around a table.
_NOT_PROSE = re.compile(
    r"\||    |\t|Subject: |Fixes: |.*https?://|Measured with `kteardown |\*\*Not measured\*\*"
)
_BASE = re.compile(r"base: v(\d+\.\d+)\.\d+ \(Debian linux-source-\1\)(?:, backport (\S+))?")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "series").as_posix()


every_cover = pytest.mark.parametrize("cover", COVERS, ids=name_of)
every_patch = pytest.mark.parametrize("patch", PATCHES, ids=name_of)


def message(patch: str) -> str:
    """What git keeps of a patch: all in front of the line that ends the message."""
    return patch.partition("\n---\n")[0]


def too_long(text: str) -> list[str]:
    """The lines of prose that have more columns than a mail."""
    return [line for line in text.splitlines() if len(line) > WIDTH and not _NOT_PROSE.match(line)]


def bases(cover: str, backports: Iterable[str] = ()) -> list[str]:
    """The versions in the last lines of a cover letter. Raises ValueError if a line has another
    form.

    Each backport must be named, and no other.
    """
    lines = cover.rstrip("\n").rpartition("\n\n")[2].splitlines()
    found = [_BASE.fullmatch(line) for line in lines]
    versions = [match[1] for match in found if match]
    if len(versions) != len(lines):
        raise ValueError(f"not every line is the base of a source: {lines}")
    if {match[2] or "" for match in found if match} != (set(backports) or {""}):
        raise ValueError(f"the backports are {sorted(backports)}: {lines}")
    return versions


def test_every_series_has_a_cover_letter_and_patches() -> None:
    folders = {path for path in (ROOT / "series").iterdir() if path.is_dir()}
    assert {cover.parent for cover in COVERS} == folders
    assert {ROOT / "series" / name_of(patch).split("/")[0] for patch in PATCHES} == folders


@every_cover
def test_the_prose_of_a_cover_letter_fits_a_mail(cover: Path) -> None:
    assert too_long(cover.read_text()) == []


@every_patch
def test_the_prose_of_a_message_fits_a_mail(patch: Path) -> None:
    assert too_long(message(patch.read_text())) == []


@every_patch
def test_every_patch_is_signed_off(patch: Path) -> None:
    assert SIGNED_OFF in message(patch.read_text()).splitlines()


@every_cover
def test_a_cover_letter_ends_with_the_sources_to_which_it_applies(cover: Path) -> None:
    folders = [files[0].parent for files in backports_in(cover.parent)]
    versions = bases(
        cover.read_text(), [folder.name for folder in folders if folder != cover.parent]
    )
    assert versions == sorted(set(versions), key=lambda version: [*map(int, version.split("."))])


@every_cover
def test_a_cover_letter_credits_its_origin_or_says_that_there_was_none(cover: Path) -> None:
    text = cover.read_text()
    assert "\nWhat was posted\n---------------\n" in text
    assert ("\nLink: https://" in text) != ("\nThere was no posting: " in text)


def test_long_prose_is_found_and_what_is_no_prose_is_not() -> None:
    word, long = "word " * 16, "x" * WIDTH
    assert too_long(f"{word}\n- {word}\n   {word}\n") == [word, f"- {word}", f"   {word}"]
    assert too_long(long) == []
    others = (
        f"| {long} |",
        f"    {long}",
        f"\t{long}",
        f"Subject: {long}",
        f"Fixes: {long}",
        f"Link: https://a.org/{long}",
    )
    assert too_long("\n".join((*others, f"Measured with `kteardown run {long}` (1)."))) == []


def test_only_the_message_of_a_patch_counts() -> None:
    assert message(f"Subject: a\n\nText.\n\nSigned-off-by: b\n---\n\n{SIGNED_OFF}\n").endswith(
        ": b"
    )


def test_the_base_of_each_source_and_backport_is_found() -> None:
    one, two = "base: v6.12.1 (Debian linux-source-6.12)", "base: v7.2.9 (Debian linux-source-7.2)"
    assert bases(f"Text.\n\n{one}\n{two}\n") == ["6.12", "7.2"]
    assert bases(f"Text.\n\n{one}, backport page\n{two}, backport desc\n", ["desc", "page"]) == [
        "6.12",
        "7.2",
    ]


@pytest.mark.parametrize(
    "end",
    (
        "",
        "For Linux 6.12.",
        "base: v6.12.1",
        "base: v6.12.1 (Debian linux-source-7.2)",
        "base: v6.12.1 (Debian linux-source-6.12), backport page",
        "base: v6.12.1 (Debian linux-source-6.12)\nMore text.",
        "base: v6.12.1 (Debian linux-source-6.12)\n\nMore text.",
    ),
)
def test_a_cover_letter_without_its_base_is_refused(end: str) -> None:
    with pytest.raises(ValueError, match=r"base of a source|backports"):
        bases(f"Text.\n\n{end}\n")


def test_a_backport_that_is_not_named_is_refused() -> None:
    with pytest.raises(ValueError, match="backports"):
        bases("Text.\n\nbase: v6.12.1 (Debian linux-source-6.12)\n", ["page"])
