"""``kteardown hunt``: wrong input ends before anything is booted, and says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.hunt.folder import HuntFolder, Request
from kteardown.hunt.result import Find, GrowthResult, HuntResult
from unit.cli.test_main import kteardown


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a hunt that has been begun."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    HuntFolder.create(Request(source="debian-image:7.3", budget_minstr=300, command="kteardown hunt"))
    return tmp_path


def hunt(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = kteardown("hunt", *arguments, home=home)
    assert done.returncode == 2, done
    assert "what to do: " in done.stderr
    return done


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        # The default, but the hunt was begun with another source.
        (("--resume", "last", "--source", "debian-image:6.12"), "--source cannot be changed"),
        (("--show", "last", "--budget", "300"), "--budget cannot be changed"),
        (("--show", "last", "--against", "debian-image:6.1"), "--against cannot be changed"),
        (("--show", "last", "--resume", "last"), "--show prints a result, and --resume measures the rest"),
        (("--show", "last"), "has no result yet"),
        (("--show", "nothing"), "nothing"),
    ],
)
def test_a_hunt_that_has_been_begun_stays_as_it_is(
    begun: Path, arguments: tuple[str, ...], error: str
) -> None:
    assert error in hunt(begun, *arguments).stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--own", "nowhere"), "there is no folder nowhere/kinds"),
        (("--owners", "1"), "'1' is not a number of processes from 2 to "),
        (("--owners", "2,1000000"), "'1000000' is not a number of processes from 2 to "),
        (("--kinds", "flokcs"), "there is no kind and no part of the catalogue called 'flokcs'"),
        (("--unprivileged", "--kinds", "perf_uprobes"), "only root can make the objects of perf_uprobes"),
        (("--config", "nothing"), "no fragment 'nothing'"),
    ],
)
def test_what_cannot_be_hunted_leaves_no_folder(
    tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    assert error in hunt(tmp_path, *arguments).stderr
    assert not list(tmp_path.rglob("*-hunt"))


def test_the_reproducers_are_written_if_the_reader_of_the_tables_is_gone(begun: Path) -> None:
    growth = GrowthResult(
        verdict="superlinear", reason="", exponent=2.0, sizes=(10, 20), costs=(1.0, 4.0), confirmed=True
    )
    find = Find(kind="flocks", way="exit", user="root", object="", cost="make", growth=growth)
    result = HuntResult(
        kteardown="0", command="kteardown hunt", source="debian-image:7.3", release="7.3", against=(),
        measured_s=1.0, kinds=1, cases=(), finds=(find,),
    )  # fmt: skip
    folder = HuntFolder.find("last")
    folder.save(folder.result_file, result.model_dump_json())
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kteardown", "hunt", "--show", "last", "--reproducers", "written"]
    subprocess.run(command, cwd=begun, stdout=writer, stderr=subprocess.DEVNULL, check=False)
    os.close(writer)
    assert sorted(path.name for path in (begun / "written").iterdir()) == ["flocks-exit-make.txt", "flocks.c"]
