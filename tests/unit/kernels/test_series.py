from __future__ import annotations

import email.message
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.kernels.series import known_series, parts, patches_in, resolve, split_mailbox

DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new {}\n"


def mail(subject: str, body: str, encoding: str = "8bit") -> bytes:
    message = email.message.EmailMessage()
    message["From"] = "A. Author <author@example.org>"
    message["Subject"] = subject
    message.set_content(body, cte=encoding)
    return b"From git@z Thu Jan  1 00:00:00 1970\n" + message.as_bytes() + b"\n"


def patch(number: int, total: int, revision: str = "", encoding: str = "8bit") -> bytes:
    return mail(f"[PATCH{revision} {number}/{total}] part {number}", DIFF.format(number), encoding)


@given(st.integers(1, 12).flatmap(lambda n: st.permutations(range(1, n + 1))), st.booleans())
def test_the_patches_of_a_mailbox_are_sorted_by_number(order: list[int], cover: bool) -> None:
    mails = [patch(number, len(order)) for number in order]
    if cover:
        mails.insert(len(mails) // 2, mail(f"[PATCH 0/{len(order)}] all", "why\n\n" + DIFF.format(0)))
    found = split_mailbox(b"".join(mails), "box")
    assert [m.number for m in found] == list(range(1, len(order) + 1))
    for m in found:
        assert f"+new {m.number}\n".encode() in m.content
        assert m.title == f"part {m.number}"


@pytest.mark.parametrize("encoding", ["7bit", "8bit", "quoted-printable", "base64"])
def test_transfer_encodings_are_decoded(encoding: str) -> None:
    (found,) = split_mailbox(patch(1, 1, encoding=encoding), "box")
    assert DIFF.format(1).encode() in found.content


def test_text_that_begins_with_from_does_not_split_a_mail() -> None:
    body = "From here on it is slow.\n\n" + DIFF.format(1)
    (found,) = split_mailbox(mail("[PATCH] one", body), "box")
    assert DIFF.format(1).encode() in found.content


def test_replies_are_not_patches() -> None:
    quoted = "".join(f"> {line}\n" for line in DIFF.format(1).splitlines())
    box = patch(1, 1) + mail("Re: [PATCH 1/1] part 1", quoted) + mail("Re: [PATCH 1/1] no", DIFF.format(9))
    assert [m.title for m in split_mailbox(box, "box")] == ["part 1"]


def test_only_the_latest_revision_is_used() -> None:
    box = patch(1, 2, " v2") + patch(1, 2) + patch(2, 2) + patch(2, 2, " v2")
    assert len(split_mailbox(box, "box")) == 2


def test_a_missing_patch_is_an_error() -> None:
    with pytest.raises(InputError, match="box contains patches 1, 3, but expected 1 to 3"):
        split_mailbox(patch(1, 3) + patch(3, 3), "box")


def test_a_folder_is_ordered_by_number_without_the_cover_letter(tmp_path: Path) -> None:
    for name in (
        "0010-j.patch",
        "0002-b.patch",
        "0000-cover-letter.patch",
        "0001-a.patch",
        "v2-0003-c.patch",
        "x.txt",
    ):
        (tmp_path / name).write_text(DIFF.format(name))
    names = [path.name for path in patches_in(tmp_path)]
    assert names == ["0001-a.patch", "0002-b.patch", "v2-0003-c.patch", "0010-j.patch"]


def test_a_path_can_be_a_patch_a_folder_or_a_mailbox(tmp_path: Path) -> None:
    folder = tmp_path / "My Series"
    folder.mkdir()
    plain = folder / "0001-Fix It.patch"
    plain.write_text(DIFF.format(1))
    box = tmp_path / "v2_20260101_author_faster.mbx"
    box.write_bytes(patch(2, 2) + patch(1, 2))

    cache = tmp_path / "cache"
    for path, label in ((plain, "fix-it"), (folder, "my-series")):
        found = resolve(str(path), cache_dir=cache)
        assert (found.label, found.patches) == (label, (plain,))
    found = resolve(str(box), cache_dir=cache)
    assert found.label == "author-faster"
    assert [path.name for path in found.patches] == ["0001-part-1.patch", "0002-part-2.patch"]
    assert "+new 1" in found.patches[0].read_text()
    assert found.patch_set.subjects == ("part 1", "part 2")
    assert resolve(str(box), cache_dir=cache) == found


def test_a_prefix_takes_the_first_patches(tmp_path: Path) -> None:
    folder = three_patches(tmp_path)
    found = resolve(f"{folder}@2")
    assert found.label == "three@2"
    assert [path.name for path in found.patches] == ["0001-p.patch", "0002-p.patch"]
    with pytest.raises(InputError, match="has 3 patches, not 4"):
        resolve(f"{folder}@4")
    with pytest.raises(InputError, match="selects no patches"):
        resolve(f"{folder}@0")


@pytest.mark.parametrize(("part", "numbers"), [("@-1", (2, 3)), ("@-3", (1, 2)), ("@2-1", (2,))])
def test_a_patch_is_left_out(part: str, numbers: tuple[int, ...], tmp_path: Path) -> None:
    found = resolve(f"{three_patches(tmp_path)}{part}")
    assert (found.label, found.numbers) == (f"three{part}", numbers)


@pytest.mark.parametrize("part", ["@-0", "@-4", "@1-1", "@0-1"])
def test_a_suffix_that_selects_no_patch_or_a_missing_one_is_an_error(part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        resolve(f"{three_patches(tmp_path)}{part}")


def test_an_ablation_has_every_prefix_and_leaves_out_every_patch_once(tmp_path: Path) -> None:
    whole = resolve(str(three_patches(tmp_path)))
    found = {part.label: part.numbers for part in parts(whole)}
    assert found == {"three@1": (1,), "three@2": (1, 2), "three@-1": (2, 3), "three@-2": (1, 3)}
    for part in parts(whole):
        again = resolve(f"{tmp_path}/{part.label}")
        assert (again.label, again.patches) == (part.label, part.patches)
    assert parts(resolve(f"{tmp_path / 'three' / '0001-p.patch'}")) == []


def three_patches(tmp_path: Path) -> Path:
    folder = tmp_path / "three"
    folder.mkdir()
    for number in (1, 2, 3):
        (folder / f"000{number}-p.patch").write_text(DIFF.format(number))
    return folder


def test_the_known_series_are_found_by_name() -> None:
    shipped = known_series()
    assert shipped
    for series in shipped:
        found = resolve(series.name)
        assert (found.label, found.patches) == (series.name, series.patches)
        assert series.patches


def test_an_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(InputError) as caught:
        resolve("freezer-skip-exitd")
    assert "freezer-skip-exited" in caught.value.hint


def test_a_file_without_a_patch_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("nothing here\n")
    with pytest.raises(InputError, match="contains no patch"):
        resolve(str(tmp_path / "note.txt"), cache_dir=tmp_path)
