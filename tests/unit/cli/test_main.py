"""The command line: help, exit codes, and messages about wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown import version
from kteardown.kernels import cache_folder
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter
from unit import processes


def kteardown(
    *arguments: str,
    home: Path,
    cwd: Path | None = None,
    prefix: Sequence[str] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run the command line in its own process, with its own cache and runs.

    The process is forked (``processes``), or started with the command ``prefix`` if there is one.
    """
    own = {
        "KTEARDOWN_RUNS": str(home / "runs"),
        "KTEARDOWN_CACHE": str(home / "cache"),
        "COLUMNS": "120",
    }
    whole = {**os.environ, **own, **environment}
    if not prefix:
        with processes.running(arguments, whole, cwd) as process:
            return process.end()
    return subprocess.run(
        [*prefix, sys.executable, "-P", "-m", "kteardown", *arguments],
        env=whole,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def without_privileges(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line so that the modes of files apply to it, even if root runs the tests."""
    prefix = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
    return kteardown(*arguments, home=home, prefix=prefix)


@pytest.mark.parametrize(
    "verb",
    [
        "run",
        "compare",
        "build",
        "plan",
        "report",
        "show",
        "list",
        "prune",
        "doctor",
        "history",
        "site",
    ],
)
def test_every_verb_has_help(verb: str, tmp_path: Path) -> None:
    done = kteardown(verb, "--help", home=tmp_path)
    assert done.returncode == 0
    assert "Usage" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "frezer"], "did you mean 'freezer'"),
        (["run"], "no experiment is named"),
        (["run", "freezer", "--set", "zombis=3"], "did you mean 'zombies'"),
        (["run", "freezer", "--set", "zombies"], "expected PARAM=VALUES"),
        (["run", "freezer", "--variant", "freezer-skip-exitd"], "freezer-skip-exited"),
        (["run", "freezer", "--clock", "sun"], "--clock"),
        (["run", "freezer", "--clock", "sun"], "what to do: see `kteardown run --help`."),
        (["runs"], "what to do: see `kteardown --help`."),
        (["compare"], "kteardown: missing argument"),
        (["run", "--resume", "never"], "no run 'never'"),
        (["run", "freezer", "--resume", "never"], "a run is resumed as it was planned"),
        (["run", "./nowhere.toml"], "there is no such file"),
        (["run", "freezer", "--set", "zombies=-5"], "--set zombies=-5: must be 0 to"),
        (["run", "freezer", "--json", "/nowhere/r.json"], "there is no folder /nowhere"),
        (["report", "never"], "no run 'never'"),
        (["show", "never"], "no run 'never'"),
        (["report", "/nonexistent/x"], "/nonexistent/x: there is no such folder"),
        (["diff", "/nonexistent/r.json", "last"], "/nonexistent/r.json: there is no such file"),
        (["prune"], "name kernels, or add --older-than DAYS or --all"),
        (["plan", "freezer", "--source", "disk:1"], "disk:1"),
        (
            ["run", "freezer", "--until", "sure"],
            "--until sure: expected verdict, ci=WIDTH% or margin=WIDTH%",
        ),
        (["plan", "freezer", "--until", "ci=0%"], "ci=0%"),
        (["run", "freezer", "--budget", "30m"], "--budget is only for a run with --until"),
        (["run", "freezer", "--until", "verdict", "--budget", "half"], "expected a time"),
        (["run", "freezer", "--layout-twin"], "--layout-twin is only for the wall clock"),
        (
            ["plan", "freezer", "--ablate", "--variant", "sched-unthrottle-batches"],
            "nothing to ablate",
        ),
        (
            ["build", "freezer", "--layout-twin", "--variant", "debian:7.2"],
            "no variant is a series",
        ),
        (["run", "--resume", "last", "--ablate"], "a run is resumed as it was planned"),
    ],
)
def test_wrong_input_exits_with_2_and_a_hint(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    done = kteardown(*arguments, home=tmp_path)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_a_process_of_the_background_and_leaves_nothing(
    sent: signal.Signals, status: int, tmp_path: Path
) -> None:
    archive = tmp_path / "linux.tar"
    archive.write_bytes(b"not unpacked")
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    sources = Sources(cache, SilentReporter())
    tree = sources.tree_path(sources.identify(f"tar:{archive}"))
    # A shell without job control lets background jobs ignore SIGINT.
    script = '"$@" & echo $!; wait $!'
    # It has a temporary folder with the description of the command.
    source = ("--source", f"tar:{archive}")
    arguments = ("compare", "echo hello", *source, "--series", "freezer-skip-exited")
    with (
        cache_folder.locked(tree, SilentReporter(), "the test"),
        subprocess.Popen(
            ["sh", "-c", script, "sh", sys.executable, "-P", "-m", "kteardown", *arguments],
            env={
                **os.environ,
                "KTEARDOWN_CACHE": str(cache),
                "COLUMNS": "120",
                "TMPDIR": str(temporary),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as shell,
    ):
        assert shell.stdout is not None and shell.stderr is not None
        lab = int(shell.stdout.readline())
        assert any("Waiting for another run" in line for line in shell.stderr)
        assert [path for path in temporary.iterdir() if path.name.startswith("kteardown-script-")]
        os.kill(lab, sent)
        shell.wait()
        assert "interrupted\n" in (left := shell.stderr.read()) and "Traceback" not in left
    assert shell.returncode == status
    assert not [path for path in cache.rglob("*") if path.name.endswith(".tmp")]
    assert not list(temporary.iterdir())


def test_a_call_without_arguments_prints_the_help(tmp_path: Path) -> None:
    done = kteardown(home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "doctor" in done.stdout


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = kteardown("--version", home=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"kteardown {version()}\n", "")


def test_a_plan_is_printed_without_building_anything(tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--quick", "--clock", "wall", home=tmp_path)
    assert done.returncode == 0
    assert "base-twin" in done.stdout
    assert not (tmp_path / "cache" / "kernels").exists()


def test_a_plan_counts_the_boots_that_are_sampled(tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--quick", "--profile", home=tmp_path)
    assert done.returncode == 0
    assert "--profile adds 3 boots that are sampled" in done.stdout
    assert "sampled" not in kteardown("plan", "freezer", "--quick", home=tmp_path).stdout


def test_a_plan_has_a_forecast_or_says_that_it_is_unknown(tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--quick", "--ablate", home=tmp_path)
    assert done.returncode == 0
    assert "freezer-skip-exited@-1" in done.stdout
    assert "to build: base, freezer-skip-exited, " in done.stdout
    assert "there is no earlier run of zombies, zombies_cgroup" in done.stdout
    estimate = json.loads(kteardown("plan", "freezer", "--quick", "--json", home=tmp_path).stdout)[
        "estimate"
    ]
    assert (estimate["seconds"], estimate["unknown"]) == (None, ["zombies", "zombies_cgroup"])
    assert estimate["build"]["kernels"][0] == "base"
    assert not (tmp_path / "cache" / "sources").exists()


def test_a_plan_with_until_prints_the_maximum_number_of_boots(tmp_path: Path) -> None:
    arguments = (
        "plan",
        "freezer",
        "--clock",
        "wall",
        "--layout-twin",
        "--until",
        "verdict",
        "--quick",
    )
    done = kteardown(*arguments, "--variant", "freezer-skip-exited", home=tmp_path)
    assert done.returncode == 0
    assert "at most 160 boots" in done.stdout  # 40 blocks of base, its two twins and the variant.
    assert "base-layout" in done.stdout


def test_workloads_that_execute_a_function(tmp_path: Path) -> None:
    done = kteardown(
        "list", "workloads", "--covers", "kernel/freezer.c:freeze_task", "--json", home=tmp_path
    )
    (rows,) = json.loads(done.stdout).values()
    assert rows[0]["name"] == "zombies" and rows[0]["in_stretch"] == 1
    done = kteardown("list", "workloads", "--covers", "mm/none.c:never", home=tmp_path)
    assert "no coverage map has a file mm/none.c" in done.stdout
    done = kteardown("list", "workloads", "--covers", "mm/none.c:never", "--json", home=tmp_path)
    assert json.loads(done.stdout) == {"workloads": []}
    assert "no coverage map has a file mm/none.c" in done.stderr
    done = kteardown("list", "workloads", "--covers", "freeze_task", home=tmp_path)
    assert "write FILE or FILE:FUNCTION, such as kernel/freezer.c:freeze_task" in done.stdout
    done = kteardown("list", "runs", "--covers", "mm/none.c", home=tmp_path)
    assert done.returncode == 2


def test_lists_can_be_json(tmp_path: Path) -> None:
    done = kteardown("list", "experiments", "--json", home=tmp_path)
    assert '"freezer"' in done.stdout


def test_no_color_in_the_environment_turns_colours_off(tmp_path: Path) -> None:
    done = kteardown("run", "frezer", home=tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[3" not in done.stderr
