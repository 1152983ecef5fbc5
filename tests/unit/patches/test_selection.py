from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.kernels.series import parts
from kteardown.patches.posted import resolve

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
