"""Forms of mails that people really send, each as a small thread that is written here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels import apply_patches
from kteardown.kernels.git import store
from kteardown.kernels.source import Sources
from kteardown.patches.find_base import code_only, find_base
from kteardown.patches.merging import blob_id
from kteardown.patches.posted import PostedSeries, read_series
from kteardown.progress import SilentReporter

AUTHOR = "A. Author <author@example.org>"


def hunk(number: int) -> str:
    return (
        f"@@ -{4 * number + 1},3 +{4 * number + 1},3 @@\n \tint before_{number};\n-\tint "
        f"old_{number};\n"
        f"+\tint new_{number};\n \tint after_{number};\n"
    )


def diff(number: int, old: str = "a/kernel/ours.c", new: str = "b/kernel/ours.c") -> str:
    return f"diff --git {old} {new}\n--- {old}\n+++ {new}\n{hunk(number)}"


def mail(
    subject: str,
    text: str,
    *,
    day: int = 1,
    month: str = "May",
    sender: str = AUTHOR,
    name: str = "",
) -> str:
    text = re.sub("^From ", ">From ", text, flags=re.MULTILINE)
    name = name or f"{abs(hash((subject, day, month)))}@example.org"
    return (
        f"From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: {sender}\nDate: {day} {month} 2026 "
        "10:00:00 +0000\n"
        f"Subject: {subject}\nMessage-ID: <{name}>\nContent-Type: text/plain; "
        f"charset=UTF-8\n\n{text}\n"
    )


def patch(subject: str, number: int, **more: int | str) -> str:
    return mail(subject, f"Why.\n---\n{diff(number)}-- \n2.50\n", **more)  # type: ignore[arg-type]


def posted(mails: Sequence[str] | str, folder: Path, sources: Sequence[str] = ()) -> PostedSeries:
    file = folder / "given.mbox"
    file.write_bytes("".join(mails).encode())
    return read_series(
        str(file), cache_dir=folder / "cache", reporter=SilentReporter(), sources=sources
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The file to which every ``diff`` applies."""
    tree = tmp_path / "tree"
    (tree / "kernel").mkdir(parents=True)
    lines = [
        f"\tint {word}_{n};\n" for n in range(40) for word in ("before", "old", "after", "between")
    ]
    (tree / "kernel" / "ours.c").write_text("".join(lines))
    (tree / "Documentation").mkdir()
    (tree / "Documentation" / "ours.rst").write_text("one\ntwo\nthree\n")
    return tree


def applied(series: PostedSeries, tree: Path, out: Path) -> tuple[str, ...]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    return apply_patches.apply(tree, series.patches, out, "here").changed


def numbers(series: PostedSeries) -> list[str]:
    return [subject.removeprefix("ours: ") for subject in series.subjects]


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


@pytest.mark.parametrize(
    ("old", "new", "head"),
    [
        ("slab.orig/kernel/ours.c", "slab/kernel/ours.c", ""),
        (
            "slab.orig/kernel/ours.c\t2026-05-01 10:00:00 +0000",
            "slab/kernel/ours.c\t2026-05-02 10:00:00 +0000",
            "",
        ),
        (
            "slab.orig/kernel/ours.c",
            "slab/kernel/ours.c",
            "Index: slab/kernel/ours.c\n" + 67 * "=" + "\n",
        ),
        (
            "old/kernel/ours.c",
            "new/kernel/ours.c",
            "diff -urN old/kernel/ours.c new/kernel/ours.c\n",
        ),
        ("linux-6.12/kernel/ours.c", "linux/kernel/ours.c", ""),
        ("linux/kernel/ours.c", "linux/kernel/ours.c", ""),
        ("kernel/ours.c.orig", "kernel/ours.c", ""),
        ("kernel/ours.c", "kernel/ours.c", "diff --git kernel/ours.c kernel/ours.c\n"),
        (
            "kernel/ours.c",
            "kernel/ours.c",
            "diff --git kernel/ours.c kernel/ours.c\nindex 1234567..89abcde 100644\n",
        ),
        ("i/kernel/ours.c", "w/kernel/ours.c", "diff --git i/kernel/ours.c w/kernel/ours.c\n"),
        ("c/kernel/ours.c", "i/kernel/ours.c", "diff --git c/kernel/ours.c i/kernel/ours.c\n"),
        ("a/kernel/ours.c", "b/kernel/ours.c", ""),
    ],
)
def test_every_prefix_of_a_name_is_taken_off(
    old: str, new: str, head: str, tree: Path, tmp_path: Path
) -> None:
    side = (
        old.replace("kernel/ours.c", "Documentation/ours.rst"),
        new.replace("kernel/ours.c", "Documentation/ours.rst"),
    )
    doc = f"--- {side[0]}\n+++ {side[1]}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    text = (
        f"{head}--- {old}\n+++ {new}\n{hunk(1)}"
        + head.replace("kernel/ours.c", "Documentation/ours.rst")
        + doc
    )
    series = posted(mail("[PATCH] ours: a", f"Why.\n---\n{text}"), tmp_path)
    assert set(applied(series, tree, tmp_path / "out")) == {
        "kernel/ours.c",
        "Documentation/ours.rst",
    }
    kept, dropped = code_only(series.patches)
    assert dropped == ["Documentation/ours.rst"]
    assert b"ours.rst" not in kept[0][1].partition(b"+++ ")[2]


def test_a_line_that_a_mail_program_wrapped_between_both_names(tree: Path, tmp_path: Path) -> None:
    wrapped = diff(1).replace(" b/kernel/ours.c\n", "\nb/kernel/ours.c\n", 1)
    assert wrapped != diff(1)
    series = posted(mail("[PATCH] ours: 1", f"Why.\n---\n{wrapped}"), tmp_path)
    assert applied(series, tree, tmp_path / "out") == ("kernel/ours.c",)


def test_files_that_a_diff_without_git_adds_and_removes(tree: Path, tmp_path: Path) -> None:
    text = (
        "--- /dev/null\n+++ slab/kernel/more.c\n@@ -0,0 +1 @@\n+int more;\n"
        "--- slab.orig/kernel/other.c\t1970-01-01 01:00:00 +0100\n+++ slab/kernel/other.c\n"
        "@@ -0,0 +1 @@\n+int other;\n"
        "--- slab.orig/Documentation/ours.rst\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
    )
    series = posted(mail("[PATCH] ours: a", f"Why.\n---\n{text}"), tmp_path)
    assert set(applied(series, tree, tmp_path / "out")) == {"kernel/more.c", "kernel/other.c"}
    assert code_only(series.patches)[1] == ["Documentation/ours.rst"]


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
    note = "the series is incomplete: patch 1-32, 35, 37-311 of 311 is missing"
    assert posted(mails, tmp_path).notes == (note,)


NOTICE = (
    "The patch below does not apply.\n\n--------- original commit ---------\n\n"
    f"From {'ab12' * 10} Mon Sep 17 00:00:00 2001\nFrom: {AUTHOR}\nDate: Fri, 1 May 2026 10:00:00 "
    "+0000\n"
    f"Subject: [PATCH] ours: a\n\nWhy.\n\n{diff(1)}"
)
FAILED = 'FAILED: patch "[PATCH] ours: a" failed to apply to 6.1-stable tree'


def test_a_notice_that_a_patch_failed_to_apply(tree: Path, tmp_path: Path) -> None:
    series = posted(mail(FAILED, NOTICE, sender="S. Table <stable@example.org>"), tmp_path)
    assert (series.title, series.author, series.subjects) == ("ours: a", AUTHOR, ("ours: a",))
    assert b"does not apply" not in series.patches[0].read_bytes()
    assert applied(series, tree, tmp_path / "out") == ("kernel/ours.c",)
    # What was then posted for that release is used, not the notice.
    mails = [
        mail(FAILED, NOTICE.replace("new_1", "no_1")),
        patch("[PATCH 6.1.y] ours: a", 1, day=3),
    ]
    assert b"new_1" in posted(mails, tmp_path).patches[0].read_bytes()


def test_a_patch_with_its_header_in_a_reply(tmp_path: Path) -> None:
    series = posted(mail("Re: [PATCH 8/8] theirs: h", NOTICE), tmp_path)
    assert (series.title, series.subjects, series.missing) == ("ours: a", ("ours: a",), ())


def test_a_forwarded_patch_without_its_tabs_is_named_as_that(tree: Path, tmp_path: Path) -> None:
    (tree / "Kconfig").write_text("config A\n")
    (tree / "Kbuild").write_text("obj-y += kernel/\n")
    text = NOTICE.replace("\t", "        ").replace("\n", "\r\n")
    series = posted(mail(f"Fwd: {FAILED}", text), tmp_path)
    assert series.title == "ours: a"
    assert "tabs" in advice(series, tree, tmp_path)


@pytest.mark.parametrize("index", ["", "index {blob}..0123456789ab 100644\n"])
def test_a_diff_that_the_files_of_its_author_do_not_take_is_damaged(
    index: str, tree: Path, tmp_path: Path
) -> None:
    (tree / "Kconfig").write_text("config A\n")
    (tree / "Kbuild").write_text("obj-y += kernel/\n")
    index = index.format(blob=blob_id(tree / "kernel" / "ours.c")[:12])
    damaged = diff(1).replace("\tint", "  int").replace("--- a", f"{index}--- a")
    series = posted(mail("[PATCH] ours: 1", f"Why.\n---\n{damaged}"), tmp_path)
    assert ("tabs" in advice(series, tree, tmp_path)) == bool(index)


def advice(series: PostedSeries, tree: Path, folder: Path) -> str:
    """What to do, of the error that ``tree`` does not take ``series``."""
    archive = shutil.make_archive(str(folder / "linux"), "tar", folder, tree.name)
    with pytest.raises(BuildError) as caught:
        find_base(
            series.patches,
            Sources(folder / "cache", SilentReporter()),
            lambda texts: store(texts, "series", folder / "cache"),
            specs=[f"tar:{archive}"],
        )
    return caught.value.hint or ""


@pytest.mark.parametrize("lost", ["PATCH 2/3]", "[PATCH 2/3", "PATCH 2/3", "PATCH 2/3:"])
def test_a_subject_that_lost_a_bracket(lost: str, tmp_path: Path) -> None:
    mails = [
        patch("[PATCH 1/3] ours: a", 1),
        patch(f"{lost} ours: b", 2),
        patch("[PATCH 3/3] ours: c", 3),
    ]
    series = posted(mails, tmp_path)
    assert (numbers(series), series.missing) == (["a", "b", "c"], ())


@pytest.mark.parametrize(
    "text",
    [
        "Does this help?\n\n" + "".join(f"    {line}\n" for line in diff(1).splitlines()),
        "Does this help?\n\n" + "".join(f"> {line}\n" for line in diff(1).splitlines()),
        "Does this help?\n\n-- \nR. Eviewer" + diff(1).replace("--- a", "x--- a"),
    ],
)
def test_a_diff_that_does_not_begin_at_the_start_of_its_lines_is_named(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"contains no patch.*start of its lines"):
        posted(mail("Re: [PATCH] ours: a", text), tmp_path)


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("Does this help?\n\nThanks\n", "'Does this help?'"),
        ("-- \nA. Author\n", "'A. Author'"),
        ("+\tint new_1,\nnew_2;\n \tint after_1;\n", "'new_2;'"),
        ("\tint after_1;\n", "'\\tint after_1;'"),
    ],
)
def test_what_is_in_place_of_the_end_of_a_hunk_is_shown(
    end: str, shown: str, tmp_path: Path
) -> None:
    cut = diff(1).replace(" \tint after_1;\n", "")
    text = (cut.replace("+\tint new_1;\n", "") if "new_1" in end else cut) + end
    with pytest.raises(InputError, match=r"ours: a'\) is a damaged patch") as caught:
        posted(mail("[PATCH] ours: a", f"Why.\n---\n{text}"), tmp_path)
    assert "the hunk @@ -5,3 +5,3 @@ has fewer lines" in caught.value.message
    assert shown in caught.value.message
    assert "text follows" in (caught.value.hint or "")


def test_a_hunk_that_is_cut_at_the_end_of_the_mail(tmp_path: Path) -> None:
    (tmp_path / "a.diff").write_text(diff(1).partition("+\tint")[0])
    with pytest.raises(InputError, match="in place of the next one the text ends"):
        read_series(
            str(tmp_path / "a.diff"), cache_dir=tmp_path / "cache", reporter=SilentReporter()
        )
