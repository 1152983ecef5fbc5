"""The history over run directories, from their records to the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown.rundir.directory import RunDir
from kteardown_history.lines import HistoryFilter, boot_figures, history_of
from unit.cli.test_main import kteardown
from unit.run import killable


def _runs(root: Path) -> list[RunDir]:
    return [RunDir(path) for path in sorted(root.iterdir())]


def _rewrite(run: RunDir, times: int, release: str) -> None:
    """Change the release of the run, and its figures so that they do not depend on the folder."""
    kernels = json.loads(run.kernels_file.path.read_bytes())
    for name, kernel in kernels.items():
        kernel |= {
            "release": release,
            "source": f"debian:{release}",
            "series": name.removeprefix("base"),
        }
    run.kernels_file.path.write_text(json.dumps(kernels))
    lines = [json.loads(line) for line in run.records_file.path.read_bytes().splitlines()]
    for line in lines:
        if line["type"] == "sample":
            line["value"] = 1000 * times
        if line["type"] == "hello":
            line["release"] = release
    run.records_file.path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three finished runs; the last one has another release and is twice as slow."""
    folder = tmp_path_factory.mktemp("home")
    for _ in range(3):
        killable.measure(killable.make_run(folder / "runs", "instructions").path)
    for times, release, run in zip(
        (1, 1, 2), ("6.12", "6.12", "7.2"), _runs(folder / "runs"), strict=True
    ):
        _rewrite(run, times, release)
    return folder


def test_a_boot_has_one_figure_for_each_metric_and_point(home: Path) -> None:
    figures, _ = boot_figures(_runs(home / "runs")[:1])
    assert len(figures) == 6 * 3 * len(killable.METRICS)
    first = figures[0]
    assert (first.acceleration, first.release, first.cpus) == ("icount", "6.12", 1)
    assert dict(first.params)["zombies"] in (0, 300, 600)


def test_trials_that_failed_a_check_have_no_figure(tmp_path: Path) -> None:
    run = killable.make_run(tmp_path, "instructions")
    killable.measure(run.path)
    whole = len(boot_figures([run])[0])
    lines = run.records_file.path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if '"trial_end"' in line)
    end = json.loads(lines[at])
    check = {"type": "check", "repetition": 0, "name": "all", "ok": False}
    lines.insert(at, json.dumps(check | {name: end[name] for name in ("boot", "attempt", "trial")}))
    run.records_file.path.write_text("\n".join(lines) + "\n")
    assert len(boot_figures([run])[0]) == whole - len(killable.METRICS)


def test_the_history_over_runs(home: Path) -> None:
    found = history_of(
        _runs(home / "runs"), HistoryFilter(metric="freeze_user_ns", points={"zombies": (300,)})
    )
    assert [line.kernel for line in found.lines] == ["unpatched", killable.VARIANT]
    for line in found.lines:
        assert [figure.release for figure in line.figures] == ["6.12", "6.12", "7.2"]
        assert [(shift.index, shift.ratio) for shift in line.shifts] == [(2, 2.0)]


def test_a_run_that_cannot_be_read_is_named_and_not_used(home: Path, tmp_path: Path) -> None:
    damaged = killable.make_run(tmp_path, "instructions")
    damaged.kernels_file.path.write_text("{")
    found = history_of([*_runs(home / "runs"), damaged], HistoryFilter())
    assert found.unread == (damaged.name,)
    assert found.lines


def test_the_command_shows_and_filters(home: Path) -> None:
    done = kteardown(
        "history", "killed", "--point", "zombies=300", "--metric", "freeze_user_ns", home=home
    )
    assert done.returncode == 0, done.stderr
    assert "least to most" in done.stdout and "worse +100.0%" in done.stdout
    many = kteardown("history", home=home)
    assert many.returncode == 0 and "lines of other metrics" in many.stdout
    found = json.loads(kteardown("history", "--json", "--order", "time", home=home).stdout)
    assert (found["schema"], found["order"], found["least"]) == (1, "time", 0.02)
    assert {line["experiment"] for line in found["lines"]} == {"killed"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["kiled"], "did you mean 'killed'"),
        (["--metric", "freze_user_ns"], "did you mean 'freeze_user_ns'"),
        (["--point", "zombies=7"], "no run has figures at that point"),
        (["--point", "zombies"], "expected PARAM=VALUES"),
        (["--least", "-1"], "--least"),
    ],
)
def test_a_filter_without_matches_lists_the_possible_values(
    arguments: list[str], expected: str, home: Path
) -> None:
    done = kteardown("history", *arguments, home=home)
    assert done.returncode == 2
    assert expected in done.stderr


def test_an_empty_archive_is_reported(tmp_path: Path) -> None:
    done = kteardown("history", home=tmp_path)
    assert done.returncode == 0
    assert "no run has figures yet" in done.stdout
