"""A run of a stranger with links, pipes and devices: nothing else is changed, and no other run is
lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import InputError, KteardownError
from kteardown.model.plan import Plan
from kteardown.run.create import missing_kernels
from kteardown.run.places import remembered_place
from kteardown_cluster.journal import Compared, Failure, Journal, write_failure
from kteardown_hunt.folder import HuntFolder
from unit.cli.test_main import kteardown
from unit.run import killable

LOG = "0000-0.log"
TEXT = "a line\nthe last line has no end"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run."""
    return killable.finished_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file of the user, in a folder with names that a run has as well."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("secret", LOG, "0000-0.cpio", "x.cpio", "x.partial", "plan.json"):
        (folder / name).write_text(TEXT)
    return folder / "secret"


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


LINKED = (
    f"console/{LOG}",
    "console/0000-0.cpio",
    "console",
    "environment.json",
    "lock",
    "profile",
    "records.ndjson",
    "report.md",
    "result.json",
    "result.json.1.2.partial",
    "profile/records.ndjson",
)


@pytest.mark.parametrize("hard", [False, True], ids=["symbolic", "hard"])
@pytest.mark.parametrize("name", LINKED)
def test_a_resumed_run_changes_no_file_outside_of_it(
    name: str, hard: bool, secret: Path, tmp_path: Path
) -> None:
    run = killable.make_run(tmp_path / "runs", "instructions").path
    place = run / name
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        shutil.rmtree(place)
    if name in ("console", "profile"):
        place.symlink_to(secret.parent)
    elif hard:
        place.unlink(missing_ok=True)
        os.link(secret, place)
    else:
        place.unlink(missing_ok=True)
        place.symlink_to(secret)
    before = contents(secret.parent)
    with suppress(KteardownError):
        killable.measure(run)
    assert contents(secret.parent) == before


SPECIAL: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "zero": lambda place: place.symlink_to("/dev/zero"),
    "folder": lambda place: place.mkdir(),
    "huge": lambda place: os.truncate(os.open(place, os.O_CREAT | os.O_WRONLY), 1 << 42),
}
FILES = (
    "run.json",
    "experiment.json",
    "workloads.json",
    "plan.json",
    "kernels.json",
    "environment.json",
)
OPTIONAL = (
    "records.ndjson",
    "result.json",
    "published.json",
    "unavailable.json",
    "profile/records.ndjson",
)
MEMORY = ("prlimit", f"--as={3 << 30}", "timeout", "60")


@pytest.fixture(scope="module")
def home(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs of which each has a special file, among them one that is good."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(good, home / "runs" / "20200101-000000-good")
    for name in (*FILES, *OPTIONAL):
        for special, make in SPECIAL.items():
            run = home / "runs" / f"{special}-{name.replace('/', '-')}"
            shutil.copytree(good, run)
            (run / "profile").mkdir(exist_ok=True)
            (run / name).unlink(missing_ok=True)
            make(run / name)
    return home


def test_the_other_runs_are_listed_and_the_damaged_ones_named(home: Path) -> None:
    listed = kteardown("list", "runs", "--json", home=home, prefix=MEMORY)
    assert listed.returncode == 0, listed.stderr
    runs = {row["name"]: row["state"] for row in json.loads(listed.stdout)["runs"]}
    assert runs.pop("20200101-000000-good") == "done"
    assert runs.keys() == {path.name for path in (home / "runs").iterdir()} - {
        "20200101-000000-good"
    }
    for name, state in runs.items():
        if not name.endswith("records.ndjson"):
            assert state.startswith("unreadable: ") and name in state, (name, state)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("query", "--csv", "SELECT DISTINCT run FROM samples"), "20200101-000000-good"),
        (("history", "--json"), "freeze_user_ns"),
        (("site", "--to", "site"), "pages written"),
    ],
    ids=lambda words: words[0],
)
def test_a_verb_for_all_runs_goes_on_without_the_damaged_ones(
    words: tuple[str, ...], shown: str, home: Path, tmp_path: Path
) -> None:
    done = kteardown(*words, home=home, cwd=tmp_path, prefix=MEMORY)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    for special in SPECIAL:
        assert f"{special}-records.ndjson" in done.stdout + done.stderr + "".join(
            file.read_text() for file in tmp_path.glob("site/index.html")
        )


@pytest.mark.parametrize("verb", ["show", "report", "analyse"])
def test_a_verb_for_one_run_says_what_is_wrong(
    verb: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(home / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(home / "cache"))
    for run in sorted((home / "runs").iterdir()):
        done = CliRunner().invoke(app, [verb, str(run)])
        if done.exception is not None:
            assert isinstance(done.exception, KteardownError), (run, done.exception)
            assert done.exception.hint


@pytest.mark.parametrize(
    "name",
    [
        *("jobs", "jobs/attempts", "jobs/done", "jobs/failed"),
        *("jobs/token", "jobs/unsettled", "jobs/compared.ndjson"),
    ],
)
def test_the_journal_of_a_cluster_follows_no_link(name: str, secret: Path, tmp_path: Path) -> None:
    run = killable.make_run(tmp_path / "runs", "instructions")
    place = run.path / name
    place.parent.mkdir(exist_ok=True)
    is_file = name in ("jobs/token", "jobs/unsettled", "jobs/compared.ndjson")
    place.symlink_to(secret if is_file else secret.parent)
    before = contents(secret.parent)
    journal = Journal(run)
    compared = Compared(key="k", boot=0, kernel="base", nodes=("a", "b"), same=True)
    failure = Failure(key="k", attempt=0, node="a", reason="r")
    for act in (
        journal.create,
        lambda: journal.mark(unsettled=True),
        journal.token,
        lambda: journal.new_attempt("k"),
        lambda: journal.add_compared([compared]),
        lambda: write_failure(journal.folder, failure, "n"),
    ):
        with suppress(KteardownError, OSError):
            act()
    assert contents(secret.parent) == before


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../home/secret", "series/link.patch", "series/pipe.patch"]
)
def test_a_patch_of_a_run_is_a_file_of_the_run(name: str, secret: Path, tmp_path: Path) -> None:
    run = killable.make_run(tmp_path / "runs", "instructions")
    (run.path / "series").mkdir()
    (run.path / "series/link.patch").symlink_to(secret)
    os.mkfifo(run.path / "series/pipe.patch")
    run.save(run.kernels_file, "{}")
    run.save(
        run.folder / "requests.json",
        json.dumps({"x": {"source": "debian:6.12", "patches": [name]}}),
    )
    with pytest.raises(InputError, match="cannot be read"):
        missing_kernels(run)


def test_where_a_run_is_executed_is_not_read_from_or_written_to_a_link(
    secret: Path, tmp_path: Path
) -> None:
    run = killable.make_run(tmp_path / "runs", "instructions")
    (run.path / "on").symlink_to(secret)
    for on in (None, "slurm"):
        with pytest.raises(InputError, match="on: cannot be read"):
            remembered_place(run, on)
    assert secret.read_text() == TEXT


def test_a_stage_of_a_hunt_is_no_link(secret: Path, tmp_path: Path) -> None:
    hunt = HuntFolder(tmp_path / "hunt")
    hunt.folder.make_folder()
    (hunt.path / "screen").symlink_to(secret.parent)
    before = contents(secret.parent)
    with pytest.raises(KteardownError):
        hunt.stage("screen", Plan(memory_mb=1, cpus=1, silence_s=1, boots=(), points=()), "hash")
    assert contents(secret.parent) == before
