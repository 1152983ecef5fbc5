from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels.build_plan import choose_backport
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import Selection, known_series, parts, patches_in, resolve, subject
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter

DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new {}\n"


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
def test_a_suffix_that_selects_no_patch_or_a_missing_one_is_an_error(
    part: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        resolve(f"{three_patches(tmp_path)}{part}")


def test_an_ablation_has_every_prefix_and_leaves_out_every_patch_once(tmp_path: Path) -> None:
    whole = resolve(str(three_patches(tmp_path)))
    found = {part.label: part.numbers for part in parts(whole)}
    assert found == {"three@1": (1,), "three@2": (1, 2), "three@-1": (2, 3), "three@-2": (1, 3)}
    for part in parts(whole):
        again = resolve(f"{tmp_path}/{part.label}")
        assert (again.label, again.patches) == (part.label, part.patches)


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


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Subject: [PATCH 1/2] mm: für", "mm: für"),
        ("Subject: =?utf-8?q?=5BPATCH=5D_mm=3A_f=C3=BCr?=", "mm: für"),
        ("Subject: =?no-charset?q?x?= mm", "=?no-charset?q?x?= mm"),
        ("From: a@example.org", "0001-x"),
    ],
)
def test_the_subject_of_a_patch(header: str, expected: str, tmp_path: Path) -> None:
    patch = tmp_path / "0001-x.patch"
    patch.write_text(f"{header}\n\ntext\n")
    assert subject(patch) == expected


def test_a_subject_that_no_patch_has_is_cut(tmp_path: Path) -> None:
    patch = tmp_path / "0001-x.patch"
    patch.write_text(f"Subject: [PATCH] x{1_000_000 * ' very'}\n\ntext\n")
    assert len(subject(patch)) < 10_000


def write_backport(folder: Path, *steps: tuple[str, str]) -> None:
    folder.mkdir(parents=True)
    for number, (old, new) in enumerate(steps, 1):
        (folder / f"{number:04}-step.patch").write_text(
            f"Subject: [PATCH {number}/{len(steps)}] {new}\n---\n"
            f"--- a/f.c\n+++ b/f.c\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        )


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two patches, with a backport to kernels with ``folio`` and one to kernels with ``page``."""
    series = tmp_path / "both"
    write_backport(series / "folio", ("folio", "folio one"), ("folio one", "folio two"))
    write_backport(series / "page", ("page", "page one"), ("page one", "page two"))
    (series / "0000-cover-letter.md").write_text("why")
    return series


def request(tmp_path: Path, text: str, chosen: Selection) -> tuple[KernelRequest, Sources]:
    tree = tmp_path / "linux"
    tree.mkdir()
    for name in ("Kconfig", "Kbuild"):
        (tree / name).touch()
    (tree / "f.c").write_text(f"{text}\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", "-C", tree, *command], check=True)
    wanted = KernelRequest(
        "v",
        f"git:{tree}",
        patches=chosen.patches,
        patch_set=chosen.patch_set,
        backports=chosen.backports,
    )
    return wanted, Sources(tmp_path / "cache", SilentReporter())


@pytest.mark.parametrize("kernel", ["folio", "page"])
def test_a_prefix_takes_its_patches_from_the_backport_that_applies(
    tmp_path: Path, series: Path, kernel: str
) -> None:
    wanted, sources = request(tmp_path, kernel, resolve(f"{series}@1"))
    found = choose_backport(wanted, sources.identify(wanted.source), sources)
    assert found.patches == (series / kernel / "0001-step.patch",)


def test_the_error_gives_the_reason_for_each_backport_if_none_applies(
    tmp_path: Path, series: Path
) -> None:
    wanted, sources = request(tmp_path, "buffer", resolve(str(series)))
    with pytest.raises(BuildError, match=r"(?s)no backport of both .*folio: 0001.*page: 0001"):
        choose_backport(wanted, sources.identify(wanted.source), sources)


def test_the_patches_of_a_series_are_counted_once_for_all_backports(series: Path) -> None:
    whole = resolve(str(series))
    assert (len(whole.backports), whole.numbers) == (2, (1, 2))
    assert all(part.backports == whole.backports for part in parts(whole))


def test_backports_must_have_equally_many_patches(series: Path) -> None:
    (series / "page" / "0002-step.patch").unlink()
    with pytest.raises(InputError, match="folio 2, page 1"):
        resolve(str(series))
