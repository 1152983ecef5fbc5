"""One series, written for several kernels: the edition is taken that applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels import backports
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import Selection, parts, resolve
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter


def edition(folder: Path, *steps: tuple[str, str]) -> None:
    folder.mkdir(parents=True)
    for number, (old, new) in enumerate(steps, 1):
        (folder / f"{number:04}-step.patch").write_text(
            f"Subject: [PATCH {number}/{len(steps)}] {new}\n---\n"
            f"--- a/f.c\n+++ b/f.c\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        )


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two patches, for a kernel with ``folio`` and for one with ``page``; a cover letter on top."""
    series = tmp_path / "both"
    edition(series / "folio", ("folio", "folio one"), ("folio one", "folio two"))
    edition(series / "page", ("page", "page one"), ("page one", "page two"))
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
        backports=chosen.editions,
    )
    return wanted, Sources(tmp_path / "cache", SilentReporter())


@pytest.mark.parametrize("kernel", ["folio", "page"])
def test_the_edition_that_applies_is_taken_and_of_a_prefix_its_patches(
    tmp_path: Path, series: Path, kernel: str
) -> None:
    wanted, sources = request(tmp_path, kernel, resolve(f"{series}@1"))
    settled = backports.settle(wanted, sources.identify(wanted.source), sources)
    assert settled.patches == (series / kernel / "0001-step.patch",)


def test_where_none_applies_it_is_said_what_each_expected(tmp_path: Path, series: Path) -> None:
    wanted, sources = request(tmp_path, "buffer", resolve(str(series)))
    with pytest.raises(BuildError, match=r"(?s)no edition of both .*folio: 0001.*page: 0001"):
        backports.settle(wanted, sources.identify(wanted.source), sources)


def test_a_series_with_editions_counts_the_patches_of_one(series: Path) -> None:
    whole = resolve(str(series))
    assert (len(whole.editions), whole.numbers) == (2, (1, 2))
    assert all(part.editions == whole.editions for part in parts(whole))


def test_editions_are_the_same_series_patch_by_patch(series: Path) -> None:
    (series / "page" / "0002-step.patch").unlink()
    with pytest.raises(InputError, match="folio 2, page 1"):
        resolve(str(series))
