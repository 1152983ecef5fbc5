"""The files that a command writes of its own run, the page, and the gate: none depends on the
others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kteardown.cli.options import Execution, need_writable
from kteardown.cli.run import finish
from kteardown.errors import GateError, InputError
from kteardown.report.publication import Publication
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from outputs import output_in
from unit.cli.test_main import kteardown
from unit.report.contexts import write_run


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run whose boots have all ended, with one that began earlier."""
    return write_run(tmp_path / "runs")


def everything(folder: Path) -> list[str]:
    """Return the options for a file of each format."""
    names = ("json", "markdown", "comment", "junit")
    return [word for name in names for word in (f"--{name}", str(folder / name))]


@pytest.mark.parametrize("redirection", ["| true", "> /dev/full", ">&-", "2>&1 | true"])
def test_every_file_is_written_and_the_gate_applied_whatever_reads_the_page(
    redirection: str, run: RunDir, tmp_path: Path
) -> None:
    shell = ("bash", "-o", "pipefail", "-c", f'"$@" {redirection}', "sh")
    verb = ("run", "--resume", run.name, *everything(tmp_path), "--fail-on", "worse")
    done = kteardown(*verb, home=tmp_path, prefix=shell)
    assert done.returncode == (5 if "full" in redirection else 0), done.stderr
    assert (
        "With freezer-skip-exited, freezing user space takes" in (tmp_path / "comment").read_text()
    )
    assert ElementTree.parse(tmp_path / "junit").getroot().tag == "testsuites"
    assert (tmp_path / "json").stat().st_size and (tmp_path / "markdown").stat().st_size


def test_a_folder_that_vanishes_loses_one_file(tmp_path: Path) -> None:
    execution = Execution(
        json_file=tmp_path / "gone" / "j", comment_file=tmp_path / "c", quiet=True
    )
    page: list[str] = []
    (tmp_path / "gone").mkdir()
    need_writable(*execution.files.values())
    shutil.rmtree(tmp_path / "gone")

    def publish(gates: Callable[[], None]) -> None:
        said = Publication("run", "headline", page="comment")
        execution.publish(said, lambda: page.append("page"), gates, kept="kteardown report RUN")

    with pytest.raises(InputError, match="gone/j: cannot be written") as lost:
        publish(lambda: page.append("gate"))
    assert lost.value.hint.endswith("The result is kept: kteardown report RUN --format json")
    assert (page, (tmp_path / "c").read_text()) == (["gate", "page"], "comment")


def test_the_json_has_the_error_with_which_the_command_ends(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    execution = Execution(
        json_file=tmp_path / "j", comment_file=tmp_path / "gone" / "c", quiet=True
    )
    shutil.rmtree(tmp_path / "gone")
    said = Publication("run", "headline", page="comment")
    with pytest.raises(InputError):
        execution.publish(said, lambda: None, lambda: None)
    output = output_in(tmp_path / "j")
    assert output["exit_code"] == InputError.exit_code
    assert "gone/c: cannot be written" in output["error"]


def test_a_gate_is_raised_before_a_lost_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    execution = Execution(
        comment_file=tmp_path / "gone" / "c", json_file=tmp_path / "j", quiet=True
    )
    said = Publication("run", "headline", page="comment")

    def fail() -> None:
        raise GateError("worse", hint="see all of them.")

    with pytest.raises(GateError):
        execution.publish(said, lambda: None, fail)
    assert "gone/c: cannot be written" in capsys.readouterr().err
    assert (output_in(tmp_path / "j")["exit_code"], output_in(tmp_path / "j")["error"]) == (
        1,
        "worse",
    )


def test_a_file_of_a_run_and_a_file_for_two_reports_are_refused(
    run: RunDir, tmp_path: Path
) -> None:
    for file in (run.records_file.path, run.path / "new.md", run.path / "console" / "x"):
        with pytest.raises(InputError, match="is inside of the run directory"):
            need_writable(file)
    os.symlink(run.path, tmp_path / "link")
    done = kteardown(
        "report",
        run.name,
        "--format",
        "cover",
        "-o",
        str(tmp_path / "link" / "plan.json"),
        home=tmp_path,
    )
    assert (done.returncode, "is inside of the run directory" in done.stderr) == (2, True)
    done = kteardown("run", "freezer", "--json", "r", "--junit", "./r", home=tmp_path, cwd=tmp_path)
    assert (done.returncode, "is named for two reports" in done.stderr) == (2, True)
    need_writable(Path(os.devnull), Path(os.devnull), tmp_path / "a", tmp_path / "b", None)


def test_a_gate_without_files_prints_the_page_first(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(run.path.parent))
    execution = Execution(fail_on="worse", quiet=True)
    finish(RunFolder.of(run), execution.begin(), execution)
