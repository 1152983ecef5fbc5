"""``kteardown hunt``: wrong input ends before anything is booted, and says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.cli import app
from kteardown.paths import cache_dir
from kteardown_hunt import flow
from kteardown_hunt.catalogue import own_kinds
from kteardown_hunt.folder import HuntFolder, Request
from kteardown_hunt.result import Find, GrowthResult, HuntResult
from unit.cli.test_main import kteardown


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a hunt that has been begun."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    HuntFolder.begin(
        Request(source="debian-image:7.3", budget_minstr=300, command="kteardown hunt")
    )
    return tmp_path


def hunt(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The program of all kinds takes seconds to build: it is that of the user's cache.
    done = kteardown("hunt", *arguments, home=home, KTEARDOWN_CACHE=str(cache_dir()))
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
        (("--show", "last", "--locks", "debian:6.12"), "--locks cannot be changed"),
        (("--show", "last", "--stay", "all"), "--stay cannot be changed"),
        (("--resume", "last", "--stay", "no_such"), "there is no kind called 'no_such'"),
        (("--resume", "last", "--stay", "pipes=0"), "is not a number from 40"),
        (("--resume", "last", "--locks", "debian-image:6.12"), "a prebuilt kernel does not count"),
        (
            ("--show", "last", "--resume", "last"),
            "--show prints a result, and --resume measures the rest of a hunt",
        ),
        (("--show", "last"), "has no result yet"),
        (("--show", "nothing"), "nothing"),
    ],
)
def test_a_hunt_that_has_been_begun_stays_as_it_is(
    begun: Path, arguments: tuple[str, ...], error: str
) -> None:
    assert error in hunt(begun, *arguments).stderr


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("kinds_of", "interrupted; nothing was measured, and kernels that were built are kept"),
        (
            "finish",
            "what was measured is kept; finish the hunt with: kteardown hunt --resume ",
        ),
    ],
)
def test_an_interrupted_hunt_says_what_is_kept(
    begun: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ends: str,
    said: str,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(flow, ends, interrupt)
    arguments = ["--resume", "last"] if ends == "finish" else ["--source", "debian:6.12"]
    assert app(["hunt", *arguments], standalone_mode=False) == 130
    assert said in capsys.readouterr().err


def with_kind(folder: Path) -> Path:
    """Return a new folder with a file that writes ``executed`` when the program of all kinds
    starts."""
    (folder / "kinds").mkdir(parents=True)
    code = (
        f'__attribute__((constructor)) static void run(void) {{ fopen("{folder}/executed", "w"); }}'
    )
    (folder / "kinds" / "foreign.c").write_text(f"#include <stdio.h>\n{code}\n")
    return folder


def test_what_stays_can_be_added_once(begun: Path) -> None:
    folder = HuntFolder.find("last")
    folder.extend((), "", ("pipes", "files_one_inode=9"))
    assert folder.request().stay == ("pipes", "files_one_inode=9")
    assert folder.request().command == "kteardown hunt --stay pipes,files_one_inode=9"
    done = hunt(begun, "--resume", "last", "--stay", "all")
    assert "--stay cannot be changed" in done.stderr


def test_kinds_are_executed_only_from_a_folder_that_is_named(tmp_path: Path) -> None:
    folder, kept = with_kind(tmp_path / "here"), str(cache_dir())
    listed = kteardown("list", "kinds", home=tmp_path, cwd=folder, KTEARDOWN_CACHE=kept)
    assert listed.returncode == 0 and "flocks" in listed.stdout
    assert not (folder / "executed").exists()
    other = kteardown("list", "runs", "--own", ".", home=tmp_path, cwd=folder)
    assert other.returncode == 2 and "kteardown list kinds --own ." in other.stderr
    assert (own_kinds(None), own_kinds(folder)) == ([], [folder / "kinds" / "foreign.c"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--own", "nowhere"), "there is no folder nowhere/kinds"),
        (("--owners", "1"), "'1' is not a number of processes from 2 to "),
        (("--owners", "2,1000000"), "'1000000' is not a number of processes from 2 to "),
        (("--kinds", "flokcs"), "there is no kind and no part of the catalogue called 'flokcs'"),
        (
            ("--unprivileged", "--kinds", "perf_uprobes"),
            "only root can make the objects of perf_uprobes",
        ),
        (("--config", "nothing"), "no fragment 'nothing'"),
    ],
)
def test_what_cannot_be_hunted_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], error: str
) -> None:
    # What is in a folder that was not named is not compiled.
    monkeypatch.chdir(with_kind(tmp_path / "here"))
    assert error in hunt(tmp_path, *arguments).stderr
    assert not list(tmp_path.rglob("*-hunt"))


def test_the_reproducers_are_written_if_the_reader_of_the_tables_is_gone(begun: Path) -> None:
    growth = GrowthResult(
        verdict="superlinear",
        reason="",
        exponent=2.0,
        sizes=(10, 20),
        costs=(1.0, 4.0),
        confirmed=True,
    )
    find = Find(kind="flocks", way="exit", user="root", object="", cost="make", growth=growth)
    result = HuntResult(
        kteardown="0",
        command="kteardown hunt",
        source="debian-image:7.3",
        release="7.3",
        against=(),
        measured_s=1.0,
        kinds=1,
        cases=(),
        finds=(find,),
    )
    folder = HuntFolder.find("last")
    folder.save(folder.result_file, result.model_dump_json())
    reader, writer = os.pipe()
    os.close(reader)
    command = [
        sys.executable,
        "-P",
        "-m",
        "kteardown",
        "hunt",
        "--show",
        "last",
        "--reproducers",
        "written",
    ]
    subprocess.run(command, cwd=begun, stdout=writer, stderr=subprocess.DEVNULL, check=False)
    os.close(writer)
    assert sorted(path.name for path in (begun / "written").iterdir()) == [
        "flocks-exit-make.txt",
        "flocks.c",
    ]


def test_the_name_of_a_kind_in_a_result_is_no_path(begun: Path) -> None:
    find = {"kind": "../outside", "way": "exit", "user": "root", "object": "", "cost": None}
    fields = {
        "kteardown": "0",
        "command": "kteardown hunt",
        "source": "debian-image:7.3",
        "release": "7.3",
    }
    rest = {"against": [], "measured_s": 1.0, "kinds": 1, "cases": [], "finds": [find]}
    folder = HuntFolder.find("last")
    folder.save(folder.result_file, json.dumps({**fields, **rest}))
    said = hunt(begun, "--show", "last", "--reproducers", str(begun / "written")).stderr
    assert "result.json" in said and "kind" in said
    assert not list(begun.glob("outside*"))


def test_the_program_of_an_own_kind_is_written_only_if_its_folder_is_typed(begun: Path) -> None:
    theirs = with_kind(begun / "theirs")
    request = json.loads((HuntFolder.find("last").path / "hunt.json").read_text())
    folder = HuntFolder.find("last")
    (folder.path / "hunt.json").write_text(json.dumps({**request, "own": str(theirs)}))
    find = Find(kind="foreign", way="exit", user="root", object="", cost=None)
    result = HuntResult(
        kteardown="0",
        command="kteardown hunt",
        source="debian-image:7.3",
        release="7.3",
        against=(),
        measured_s=1.0,
        kinds=1,
        cases=(),
        finds=(find,),
    )
    folder.save(folder.result_file, result.model_dump_json())
    asked = ("hunt", "--show", "last", "--reproducers", str(begun / "written"))
    assert f"--own {theirs}" in hunt(begun, *asked[1:]).stderr
    assert not (begun / "written").exists()
    done = kteardown(*asked, "--own", str(theirs), home=begun)
    assert done.returncode == 0, done.stderr
    assert "constructor" in (begun / "written" / "foreign.c").read_text()
    assert not (theirs / "executed").exists()


def test_a_hunt_has_one_folder_of_own_kinds(tmp_path: Path) -> None:
    assert "one folder" in hunt(tmp_path, "--own", "a", "--own", "b").stderr
