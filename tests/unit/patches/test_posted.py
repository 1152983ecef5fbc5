"""Forms of mails that people really send, each as a small thread that is written here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels.git import store
from kteardown.kernels.series import parts
from kteardown.kernels.source import Sources
from kteardown.patches.find_base import code_only, find_base
from kteardown.patches.merging import blob_id
from kteardown.patches.posted import PostedSeries, read_series, resolve
from kteardown.progress import SilentReporter
from unit.patches.small_mails import (
    AUTHOR,
    applied,
    diff,
    hunk,
    mail,
    numbers,
    patch,
    posted,
    tree_below,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tree_below(tmp_path)


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


@pytest.mark.parametrize(
    ("changed", "index", "damaged"),
    [
        ("  int", False, True),
        ("int", False, True),
        ("\tlong", False, False),
        ("long", False, False),
        ("\tlong", True, True),
    ],
)
def test_a_diff_that_a_mail_program_changed_is_named_as_that(
    changed: str, index: bool, damaged: bool, tree: Path, tmp_path: Path
) -> None:
    """By the blanks in which it differs, or because the files of its author do not take it."""
    (tree / "Kconfig").write_text("config A\n")
    (tree / "Kbuild").write_text("obj-y += kernel/\n")
    blob = blob_id(tree / "kernel" / "ours.c")[:12]
    line = f"index {blob}..0123456789ab 100644\n" if index else ""
    text = diff(1).replace("\tint", changed).replace("--- a", f"{line}--- a")
    series = posted(mail("[PATCH] ours: 1", f"Why.\n---\n{text}"), tmp_path)
    assert ("tabs" in advice(series, tree, tmp_path)) == damaged


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
    with pytest.raises(InputError, match=r"contains no patch.*beginning of a line"):
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
    with pytest.raises(InputError, match="after its last line the text ends"):
        read_series(
            str(tmp_path / "a.diff"), cache_dir=tmp_path / "cache", reporter=SilentReporter()
        )


MAILS = Path(__file__).parents[2] / "data" / "mail"


def test_a_path_can_be_a_patch_a_folder_or_a_mailbox(tmp_path: Path) -> None:
    folder = tmp_path / "My Series"
    folder.mkdir()
    plain = folder / "0001-Fix It.patch"
    plain.write_bytes((MAILS / "bare.diff").read_bytes())
    box = tmp_path / "v2_20260101_author_faster.mbx"
    box.write_bytes((MAILS / "thread.mbox").read_bytes())

    found = resolve(str(folder), cache_dir=tmp_path / "cache")
    assert (found.label, found.patches) == ("my-series", (plain,))
    found = resolve(str(plain), cache_dir=tmp_path / "cache")
    assert (found.label, found.numbers) == ("fix-it", (1,))
    assert parts(found) == []
    found = resolve(str(box), cache_dir=tmp_path / "cache")
    assert found.label == "author-faster"
    assert [path.name for path in found.patches] == [
        "0001-ours-part-1.patch",
        "0002-ours-part-2.patch",
    ]
    assert found.patch_set.subjects == ("ours: part 1", "ours: part 2")
    assert resolve(str(box), cache_dir=tmp_path / "cache") == found


def test_a_part_of_a_mailbox_is_selected(tmp_path: Path) -> None:
    found = resolve(f"{MAILS / 'revisions.mbox'}@-2", cache_dir=tmp_path)
    assert (found.label, found.numbers) == ("revisions@-2", (1, 3))


def test_an_incomplete_mailbox_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="patch 2 is missing"):
        resolve(str(MAILS / "incomplete.mbox"), cache_dir=tmp_path)


def test_one_patch_of_a_series_may_be_given_alone(tmp_path: Path) -> None:
    assert len(resolve(str(MAILS / "encoded-subject.eml"), cache_dir=tmp_path).patches) == 1


def test_a_file_without_a_patch_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("nothing here\n")
    with pytest.raises(InputError, match="contains no patch"):
        resolve(str(tmp_path / "note.txt"), cache_dir=tmp_path)


def test_a_shipped_series_is_found_by_its_name() -> None:
    assert resolve("freezer-skip-exited@1").label == "freezer-skip-exited@1"
