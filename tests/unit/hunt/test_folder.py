"""The folder of a hunt keeps the fragments of the user's own, so that it can be finished from any
folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.paths import runs_dir
from kteardown_hunt.folder import HuntFolder, Request, requests_of


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a fragment in the current folder."""
    file = tmp_path / "here" / "kernels" / "fragments" / "mine.config"
    file.parent.mkdir(parents=True)
    file.write_text("CONFIG_X=y\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    return file


def test_a_hunt_keeps_the_fragments_that_are_not_shipped(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(
        source="debian:6.12", config=("mine", "debug", "CONFIG_NET=y"), command="kteardown hunt"
    )
    folder = HuntFolder.begin(request)
    mine.unlink()
    monkeypatch.chdir(tmp_path)
    folder.extend(["debian:7.3"], "")
    moved = HuntFolder(folder.path.rename(tmp_path / "moved"))
    found = moved.request()
    kept = moved.path / "fragments" / "mine.config"
    assert (found.config, found.against) == ((str(kept), "debug", "CONFIG_NET=y"), ("debian:7.3",))
    assert kept.read_text() == "CONFIG_X=y\n"
    assert requests_of(found.source, found.against, found.config)[1].fragments == found.config


def test_the_folder_of_own_kinds_may_have_fragments_too(mine: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "kernels" / "fragments" / "theirs.config"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("CONFIG_Y=y\n")
    request = Request(source="debian:6.12", config=("theirs", "mine"), own=str(tmp_path / "theirs"))
    folder = HuntFolder.begin(request)
    assert [Path(one).read_text() for one in folder.request().config] == [
        "CONFIG_Y=y\n",
        "CONFIG_X=y\n",
    ]


def test_a_wrong_fragment_leaves_no_folder(mine: Path) -> None:
    with pytest.raises(InputError, match="no fragment 'mien'; did you mean 'mine'") as unknown:
        HuntFolder.begin(Request(source="debian:6.12", config=("mien",)))
    assert str(mine.parent) in unknown.value.message
    assert not list(runs_dir().glob("*"))
