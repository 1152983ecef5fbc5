"""Which mails of a thread are the series: fixes, newer postings, copies, several releases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from unit.patches.small_mails import applied, diff, hunk, mail, numbers, patch, posted, tree_below


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tree_below(tmp_path)


def test_a_fix_is_applied_after_the_patch_that_it_fixes(tree: Path, tmp_path: Path) -> None:
    fix = diff(2).replace("+\tint new_2", "+\tint newer_2").replace("-\tint old_2", "-\tint new_2")
    mails = [
        mail(
            "[PATCH v3 2/3 fix 2/2] ours: c",
            fix.replace("new_2", "last_2").replace("newer_2", "new_2"),
            day=4,
        ),
        patch("[PATCH v3 1/3] ours: a", 1),
        patch("[PATCH v3 3/3] ours: d", 3),
        patch("[PATCH v3 2/3] ours: b", 2),
        mail("[PATCH v3 2/3 fix 1/2] ours: b2", fix.replace("newer_2", "last_2"), day=3),
        mail(
            "[PATCH v3 3/3 fix] ours: e",
            fix.replace("_2", "_3").replace("@@ -9,3 +9", "@@ -13,3 +13"),
            day=2,
        ),
    ]
    series = posted(mails, tmp_path)
    assert numbers(series) == ["a", "b", "b2", "c", "d", "e"]
    assert applied(series, tree, tmp_path / "out")
    assert "'[PATCH v3 3/3 fix] ours: e' is applied after patch 3" in series.notes
    assert series.missing == ()


def test_an_update_replaces_the_patch(tmp_path: Path) -> None:
    mails = [
        patch("[PATCH v5 update 2/2] ours: b anew", 3, day=3),
        patch("[PATCH v5 1/2] ours: a", 1),
        patch("[PATCH v5 2/2] ours: b", 2),
    ]
    assert numbers(posted(mails, tmp_path)) == ["a", "b anew"]


def test_a_series_of_fixes_is_a_series(tmp_path: Path) -> None:
    mails = [patch(f"[PATCH fix {n}/2] ours: {n}", n) for n in (2, 1)]
    series = posted(mails, tmp_path)
    assert (numbers(series), series.notes, series.missing) == (["1", "2"], (), ())


def test_a_branch_for_fixes_is_not_a_fix(tmp_path: Path) -> None:
    mails = [
        patch("[PATCH ours/for-7.2-fixes 1/2] ours: a", 1),
        patch("[PATCH ours/for-7.2-fixes 2/2] ours: b", 2),
    ]
    series = posted(mails, tmp_path)
    assert (numbers(series), series.notes) == (["a", "b"], ())


def test_of_two_postings_with_one_revision_the_newer_is_used(tmp_path: Path) -> None:
    mails = [
        mail("[PATCH 0/3 v3] ours: all", "Old."),
        *(patch(f"[PATCH {n}/3 v3] ours: {n}", n) for n in (1, 2, 3)),
        mail("[PATCH 0/2 v3] ours: all", "New.", month="Jun"),
        *(patch(f"[PATCH {n}/2 v3] ours: {n}", n + 3, month="Jun") for n in (1, 2)),
    ]
    series = posted(mails, tmp_path)
    assert (len(series.patches), series.date, series.cover.strip()) == (2, "2026-06-01", "New.")
    assert series.revision == "v3"


@pytest.mark.parametrize("tags", [("[PATCH 1/2]", "[PATCH 2/2]"), ("[PATCH]",)])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("first", [True, False])
def test_of_copies_of_one_mail_the_whole_one_is_used(
    tags: Sequence[str], cut: bool, first: bool, tree: Path, tmp_path: Path
) -> None:
    whole = [
        mail(f"{tag} ours: {n}", f"Why.\n---\n{diff(n)}{hunk(n + 4)}", name=f"{n}@example.org")
        for n, tag in enumerate(tags)
    ]
    short = mail(f"{tags[-1]} ours: {len(tags) - 1}", "Why.", name=f"{len(tags) - 1}@example.org")
    if cut:
        short = whole[-1].replace(hunk(len(tags) + 3), "")
    series = posted([short, *whole] if first else [*whole, short], tmp_path)
    assert (len(series.patches), series.missing, series.notes) == (len(tags), (), ())
    applied(series, tree, tmp_path / "out")
    text = (tmp_path / "out" / "kernel" / "ours.c").read_text()
    assert f"new_{len(tags) + 3};" in text


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        ("A. Poster <poster@example.org>", "A. Poster <poster@example.org>"),
        ("A. Author via Relay <relay@example.org>", "A. Author <author@example.org>"),
        ("poster@example.org", "A. Helper <helper@example.org>"),
    ],
)
def test_the_author_of_a_series_is_that_of_its_cover(
    sender: str, shown: str, tmp_path: Path
) -> None:
    mails = [
        mail("[PATCH 0/2] ours", "Both.", sender=sender),
        patch("[PATCH 1/2] ours: 1", 1, sender="A. Helper <helper@example.org>"),
        patch("[PATCH 2/2] ours: 2", 2),
    ]
    assert posted(mails, tmp_path).author == shown


def test_another_series_of_the_same_author_is_not_a_newer_posting(tmp_path: Path) -> None:
    mails = [
        *(patch(f"[PATCH {n}/3] ours: {n}", n) for n in (1, 2, 3)),
        *(patch(f"[PATCH {n}/2] theirs: {n}", n + 3, month="Jun") for n in (1, 2)),
    ]
    assert numbers(posted(mails, tmp_path)) == ["1", "2", "3"]


STABLE = [
    patch(f"[PATCH {branch}{count}] ours: {n} for {branch}", n + at)
    for at, branch in enumerate(("6.12.y", "6.1.y", "6.6.y"))
    for n, count in ((1, " 1/2"), (2, " 2/2"))
]


@pytest.mark.parametrize(
    ("sources", "used"),
    [
        (("debian:6.1",), "6.1.y"),
        (("debian:6.6.15-1",), "6.6.y"),
        (("git:/src/linux@v6.6.3",), "6.6.y"),
        (("debian:7.3", "debian:7.2", "debian:6.12", "debian:6.1"), "6.12.y"),
        (("tar:/src/linux-5.4.tar.xz",), "6.12.y"),
    ],
)
def test_of_series_for_several_releases_that_of_the_source_is_used(
    sources: Sequence[str], used: str, tmp_path: Path
) -> None:
    series = posted(STABLE, tmp_path, sources)
    assert numbers(series) == [f"1 for {used}", f"2 for {used}"]
    others = [name for name in ("6.12.y", "6.6.y", "6.1.y") if name != used]
    assert series.notes == (
        f"the series for {used} is used; the mails have others for {' and '.join(others)}",
    )


def test_single_patches_for_several_releases(tmp_path: Path) -> None:
    mails = [patch(f"[PATCH {name}] ours: a", 1) for name in ("v6.12.y", "6.6", "stable-6.1.y v2")]
    series = posted(mails, tmp_path, ["debian:6.1"])
    assert (len(series.patches), series.revision) == (1, "v2")


@pytest.mark.parametrize(
    "tag", ["PATCHSET ours/for-7.2", "PATCHSET v13.0 3/7", "PATCHSET", "PATCHSET v24.0 0/2", "RFC"]
)
def test_a_cover_without_the_numbers_of_its_patches_is_the_cover(tag: str, tmp_path: Path) -> None:
    mails = [
        mail(f"[{tag}] ours: free counters earlier", "It is 10% faster."),
        patch("[PATCH 1/2] ours: a", 1),
        patch("[PATCH 2/2] ours: b", 2),
    ]
    series = posted(mails, tmp_path)
    assert (series.title, series.cover.strip()) == (
        "ours: free counters earlier",
        "It is 10% faster.",
    )
    assert len(series.patches) == 2


def test_many_missing_patches_are_named_in_few_words(tmp_path: Path) -> None:
    mails = [patch(f"[PATCH 6.12 {n:03}/311] ours: {n}", n) for n in (33, 34, 36)]
    note = "the series is incomplete: patches 1-32, 35, 37-311 of 311 are missing"
    assert posted(mails, tmp_path).notes == (note,)
