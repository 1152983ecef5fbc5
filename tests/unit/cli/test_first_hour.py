"""What a first hour with the command line met: errors that name the cause, options that are never
ignored."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from typer.testing import CliRunner

from kteardown import cli, pipeline
from kteardown.cli import app
from kteardown.cli.doctor import _agent, _architectures, _memory_and_disk
from kteardown.errors import GateError, InputError, KteardownError
from kteardown.flows.ending import gate
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, apply, on_clocks
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter
from kteardown.report.material import Material
from kteardown.run import create, forecast
from kteardown.run.resolve import resolve
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from unit.report.contexts import instructions, write_run
from unit.simulation import WORKLOADS, freezer


def failure(*command: str) -> KteardownError:
    """Return the error that ends a command."""
    done = CliRunner().invoke(app, list(command))
    assert isinstance(done.exception, KteardownError), done.exception
    return done.exception


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    run = write_run(tmp_path)
    pipeline.analyse_and_save(load(run))
    return run


@pytest.mark.parametrize(
    ("clock", "option", "use"),
    [("instructions", "boots", "--seeds 3"), ("wall", "seeds", "--boots 3")],
)
def test_a_number_of_the_other_clock_is_not_ignored(clock: str, option: str, use: str) -> None:
    error = failure("plan", "freezer", "--quick", "--clock", clock, f"--{option}", "3")
    assert error.message.startswith(f"--{option} 3 has no effect on the clock of this run")
    assert use in error.hint


def test_on_both_clocks_each_takes_its_number() -> None:
    exact, wall = on_clocks(load_experiment("freezer"), Overrides(clock="both", boots=5, seeds=2))
    assert (exact.design.seeds, wall.design.boots) == (2, 5)


def test_guests_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"machine\.cpus = 9999 is more than 255, the number of CPUs that a guest"
    ):
        apply(load_experiment("freezer"), Overrides(cpus=9999))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=1000 << 20))
    large = apply(load_experiment("freezer"), Overrides(memory_mb=2000))
    with pytest.raises(
        InputError, match="2,000 MB does not fit into this host, which has 1,000 MB"
    ):
        create.plan_boots(resolve(large))


def test_a_chart_of_a_text_is_refused(runs: RunDir) -> None:
    assert failure("report", "last", "--chart", "forest").message.startswith(
        "--chart forest: --format text"
    )


def test_a_cache_with_a_space_in_its_path_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = tmp_path / "my cache"
    with pytest.raises(InputError, match="its path has a space or a colon"):
        Sources(spaced, SilentReporter())
    monkeypatch.setenv("KTEARDOWN_CACHE", str(spaced))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    assert next(iter(_memory_and_disk())).name == "memory"
    assert any(not finding.ok and "space" in finding.detail for finding in _memory_and_disk())


def test_doctor_finds_folders_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for name in ("KTEARDOWN_CACHE", "KTEARDOWN_RUNS"):
        monkeypatch.setenv(name, str(tmp_path / "file" / "folder"))
    findings = {finding.name: finding for finding in _memory_and_disk()}
    for name in ("disk for the cache", "disk for runs"):
        assert not findings[name].ok and findings[name].needed
        assert "folder cannot be written: Not a directory" in findings[name].detail
        assert "KTEARDOWN_CACHE" in findings[name].hint
    agents = list(_architectures({"agent": _agent}))
    assert not any(finding.ok for finding in agents)


def test_runs_that_are_a_file_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").write_text("")
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    assert "is not a folder" in failure("list", "runs").message


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.ENOSPC, errno.EROFS, errno.ENOTDIR, errno.ENOENT]
)
def test_an_error_of_the_host_is_no_traceback(
    number: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise OSError(number, "text of the system", "/cache/kernels")

    monkeypatch.setattr(cli, "app", fail)
    for stream in ("stdout", "stderr"):  # main() replaces them for good.
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 5
    printed = capfd.readouterr().err
    assert "kteardown: /cache/kernels: text of the system" in printed
    assert "KTEARDOWN_CACHE" in printed


def test_a_failed_gate_always_has_a_reason() -> None:
    result = instructions().result
    rows = tuple(
        c.model_copy(update={"verdict": "worse", "reason": ""}) for c in result.comparisons
    )
    update = {"comparisons": rows, "metric_verdicts": ()}
    with pytest.raises(GateError) as failed:
        gate(Material("run", result.model_copy(update=update), WORKLOADS), "worse")
    assert "at zombies=0 (" in failed.value.message
    assert not failed.value.message.rstrip().endswith(":")


def test_a_listed_run_has_its_result_and_no_two_look_alike(runs: RunDir) -> None:
    printed = CliRunner().invoke(app, ["list", "runs"]).stdout
    assert "With freezer-skip-exited, freezing user space takes" in " ".join(printed.split())
    (runs.path / "experiment.json").write_text("{}")
    assert "unreadable: " in CliRunner().invoke(app, ["list", "runs"]).stdout


def test_a_forecast_looks_for_runs_of_each_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The records of simulated runs have no times.
    monkeypatch.setattr(forecast, "seen_boot", lambda run, *_: SimpleNamespace(run=run))
    old = write_run(tmp_path, freezer(zombies=(0, 3000), boots=2, cgroup=True))
    newer = [write_run(tmp_path, freezer(zombies=(0, 3000), boots=2)) for _ in range(5)]
    found = forecast.seen(freezer(cgroup=True), [old, *newer])
    assert {boot.run for boot in found} == {old.name, *(run.name for run in newer[1:])}


def printed_by_main(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str
) -> str:
    """Return the error that the program prints, which ends with 2."""
    for stream in ("stdout", "stderr"):  # main() replaces them for good.
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    monkeypatch.setattr(sys, "argv", ["kteardown", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    return capfd.readouterr().err


def test_a_branch_is_the_argument_of_try(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = printed_by_main(monkeypatch, capfd, "try", "--branch", "v7.3..freeze")
    assert "kteardown try BASE..TOPIC" in printed and "--help" not in printed
    assert "--help" in printed_by_main(monkeypatch, capfd, "try", "--brunch", "v7.3..freeze")


def test_try_without_a_patch_says_how_to_give_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = printed_by_main(monkeypatch, capfd, "try")
    assert "PATCH" in printed and "git diff | kteardown try -" in printed
    assert "--help" in printed_by_main(monkeypatch, capfd, "compare")


def test_a_wrong_value_is_no_patch_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = printed_by_main(monkeypatch, capfd, "try", "my.diff", "--jobs", "abc")
    assert "--jobs" in printed and "git diff" not in printed


def test_a_wrong_name_is_found_before_anything_is_imported() -> None:
    program = (
        "import sys; from kteardown.cli import app; sys.argv[1:] = ['try', 'nofile']\n"
        "try: app(standalone_mode=False)\n"
        "except Exception as error: print(error)\n"
        "slow = [name for name in ('numpy', 'scipy', 'rich.progress') if name in sys.modules]\n"
        "print('imported:', *slow)"
    )
    argv = [sys.executable, "-P", "-c", program]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert printed == "there is no file nofile\nimported:\n"
