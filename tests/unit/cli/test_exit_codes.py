"""Exit codes of what no verb expects: 1 is a verdict and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown import version
from unit.cli.test_main import kteardown
from unit.report.contexts import write_run

PROGRAM = (sys.executable, "-P", "-m", "kteardown")


def in_shell(redirection: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a shell with this redirection."""
    return kteardown(
        *arguments, home=home, prefix=("bash", "-o", "pipefail", "-c", f'"$@" {redirection}', "sh")
    )


def with_module(
    name: str, text: str, *arguments: str, home: Path
) -> subprocess.CompletedProcess[str]:
    """Run the command line with a module of its own in place of an installed one."""
    (home / f"{name}.py").write_text(text)
    path = os.pathsep.join(filter(None, (str(home), os.environ.get("PYTHONPATH", ""))))
    return kteardown(*arguments, home=home, prefix=("env",), PYTHONPATH=path)


def test_an_error_of_the_program_has_a_code_of_its_own_and_says_how_to_report_it(
    tmp_path: Path,
) -> None:
    done = with_module("duckdb", "1 / 0\n", "query", "SELECT 1", home=tmp_path)
    assert done.returncode == 70
    assert "Traceback" in done.stderr and 'duckdb.py", line 1' in done.stderr
    last = (
        f"internal error: ZeroDivisionError in kteardown {version()}, from: kteardown query "
        "'SELECT 1'"
    )
    assert last in done.stderr


@pytest.mark.parametrize(
    "text", ["raise EOFError", "raise RecursionError", "raise OSError('no number')"]
)
def test_no_error_of_the_program_has_the_code_of_a_verdict(text: str, tmp_path: Path) -> None:
    assert with_module("duckdb", text, "query", "SELECT 1", home=tmp_path).returncode == 70


@pytest.mark.parametrize("argv", ["plan freezer --source", "gate freezer --against x --source"])
def test_a_user_that_the_host_does_not_have_is_wrong_input(argv: str, tmp_path: Path) -> None:
    done = kteardown(*argv.split(), "git:~absent-user/linux", home=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "a path names a user after ~, and this host has no user of that name" in done.stderr


def test_a_pipe_that_is_closed_inside_a_verb_is_an_error_of_the_host(tmp_path: Path) -> None:
    # typer alone makes exit code 1 of it.
    text = "import os\none, other = os.pipe()\nos.close(one)\nos.write(other, b'x')\n"
    done = with_module("duckdb", text, "query", "SELECT 1", home=tmp_path)
    assert (
        done.returncode,
        "duckdb.py, line 4 (os.write(other, b'x')): Broken pipe" in done.stderr,
    ) == (
        5,
        True,
    )


@pytest.mark.parametrize(("name", "verb"), [("typer", "--version"), ("duckdb", "query")])
def test_an_interrupt_while_modules_are_loaded_prints_one_word(
    name: str, verb: str, tmp_path: Path
) -> None:
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    done = with_module(name, text, verb, *(["SELECT 1"] if verb == "query" else []), home=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "2>&- | true", "2>&1 | true", "| true"])
def test_output_that_nothing_reads_is_no_error(redirection: str, tmp_path: Path) -> None:
    for arguments in (("list", "workloads"), ("--help",), ("doctor", "--help")):
        done = in_shell(redirection, *arguments, home=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_under_the_output_is_an_error_of_the_host(tmp_path: Path) -> None:
    done = in_shell("> /dev/full", "list", "workloads", home=tmp_path)
    assert (done.returncode, "standard output: No space left on device" in done.stderr) == (5, True)
    run = write_run(tmp_path / "runs")
    run.console_file(0, 0).path.parent.mkdir(exist_ok=True)
    run.console_file(0, 0).path.write_text("Linux version 6.12")
    assert (
        in_shell("> /dev/full", "show", run.name, "--console", "0", home=tmp_path).returncode == 5
    )
    # What is wrong with the command is said first.
    assert in_shell("> /dev/full", "report", "never", home=tmp_path).returncode == 2


@pytest.mark.parametrize(("cache", "user"), [("/proc/x", "/root"), ("", "/proc")])
def test_a_folder_that_cannot_be_made_is_named(cache: str, user: str, tmp_path: Path) -> None:
    own = {"KTEARDOWN_CACHE": cache, "HOME": user, "XDG_CACHE_HOME": "", "XDG_DATA_HOME": ""}
    done = kteardown("build", "freezer", home=tmp_path, cwd=None, prefix=(), **own)
    assert (done.returncode, "Traceback" in done.stderr) == (5, False)
    assert "kteardown: /proc/" in done.stderr and "KTEARDOWN_CACHE" in done.stderr
