"""What is read in a cover letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.flows.mail_series.letter import letter_of, parse
from kteardown.kernels.series import known_series, resolve
from unit.flows.mail_series.small_series import LETTER, make_series


def test_a_letter_has_its_text_without_what_only_the_lab_reads() -> None:
    letter = parse(LETTER)
    assert (letter.prefix, letter.title, letter.is_numbered) == (
        "RFC PATCH",
        "exit: two lines are slow",
        True,
    )
    assert letter.text.startswith("Two lines are slow")
    assert letter.text.endswith("Suggested-by: Sue Ggest <sue@example.org>")
    assert "SPDX" not in letter.text and "base:" not in letter.text


@pytest.mark.parametrize(
    ("tags", "prefix", "is_numbered"),
    [
        ("[PATCH 0/3]", "PATCH", True),
        ("[PATCH]", "PATCH", False),
        ("[PATCH 6.12]", "PATCH 6.12", False),
        ("[PATCH 6.12 0/1]", "PATCH 6.12", True),
        ("[RFC PATCH v2 0/10]", "RFC PATCH v2", True),
        ("[PATCH 0/$total]", "PATCH", True),
        ("[0/2]", "PATCH", True),
    ],
)
def test_the_prefix_is_what_is_left_without_the_count(
    tags: str, prefix: str, is_numbered: bool
) -> None:
    letter = parse(f"Subject: {tags} exit: a title with 1/2 in it\n\nText.\n")
    assert (letter.prefix, letter.is_numbered) == (prefix, is_numbered)
    assert letter.title == "exit: a title with 1/2 in it"


def test_the_bases_are_sorted_by_their_numbers() -> None:
    lines = [
        "base: v6.12.117 (Debian linux-source-6.12), backport old",
        "base: v6.1.192 (Debian linux-source-6.1), backport old",
        "base: v7.3.4 (Debian linux-source-7.3), backport new",
        "base: a line for each source",
    ]
    bases = parse("\n".join(["Subject: [PATCH] a: b", "", "Text.", "", *lines])).bases
    assert [(base.name, base.source, base.backport) for base in bases] == [
        ("v6.1.192", "debian:6.1", "old"),
        ("v6.12.117", "debian:6.12", "old"),
        ("v7.3.4", "debian:7.3", "new"),
    ]
    for name in ("v6.1.192", "6.1.192", "6.1", "v6.1", "debian:6.1"):
        assert [base.is_called(name) for base in bases] == [True, False, False]


@pytest.mark.parametrize(
    "text", ["", "Text.", "Subject: no tags\n\nText.", "Subject: [PATCH]\n\nA"]
)
def test_a_letter_without_a_subject_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="has no subject"):
        parse(text)


@given(st.text(), st.sampled_from(["", "Subject: [PATCH] a\n", "Subject: [PATCH] a\n\nbase:"]))
def test_any_text_is_a_letter_or_is_refused(text: str, head: str) -> None:
    try:
        letter = parse(head + text)
    except InputError:
        return
    assert letter.title and letter.prefix


def test_every_shipped_series_has_a_letter_with_its_bases() -> None:
    for known in known_series():
        assert letter_of(resolve(known.name)).bases, known.name


def test_the_letter_may_be_above_the_backports(tmp_path: Path) -> None:
    series = make_series(tmp_path)
    folder = series.files[0].parent
    for name in ("new", "old"):
        (folder / name).mkdir()
        for file in series.files:
            (folder / name / file.name).write_bytes(file.read_bytes())
    for file in series.files:
        file.unlink()
    assert letter_of(resolve(str(folder))).title == "exit: two lines are slow"


def test_a_letter_that_is_absent_or_endless_is_refused(tmp_path: Path) -> None:
    series = make_series(tmp_path)
    letter = series.files[0].parent / "0000-cover-letter.md"
    letter.write_text("Subject: [PATCH] a: b\n" + "a\n" * 60_000)
    with pytest.raises(InputError, match="more than 100 kB"):
        letter_of(series)
    letter.unlink()
    with pytest.raises(InputError, match="has no cover letter"):
        letter_of(series)
