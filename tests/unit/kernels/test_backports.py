"""A series with several backports: the one that applies is chosen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels.build_plan import choose_backport
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import Selection, parts, resolve
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter


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
