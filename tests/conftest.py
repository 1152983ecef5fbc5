"""For all tests: what they need of the host, signals as a terminal has them, and the journal of a
run."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

import journal
from kteardown.errors import InputError
from kteardown.kernels.cache_folder import check_path
from kteardown.paths import cache_dir

# Tools of the environment come first, such as clang-format at one version, as in the Makefile.
os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
)

# git 2.55 packs the objects of a repository in the background, also while a test copies them.
os.environ |= {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}

# nohup and background jobs ignore these signals, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --journal."""
    parser.addoption(
        "--journal",
        type=Path,
        help="leave out the tests that passed according to this file, and add to it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the journal that the command line asks for. Raises UsageError where no test can build a
    kernel."""
    for folder in (cache_dir(), Path(tempfile.gettempdir())):
        try:
            check_path(folder)
        except InputError as error:
            raise pytest.UsageError(
                f"{error}; set KTEARDOWN_CACHE, and TMPDIR for what tests build"
            ) from error
    if file := config.getoption("--journal"):
        config.pluginmanager.register(
            journal.Plugin(file, writes=not hasattr(config, "workerinput"))
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a run pass whose tests are all in the journal: pytest fails one that has no test to
    run."""
    if (
        session.config.getoption("--journal")
        and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    ):
        session.exitstatus = pytest.ExitCode.OK
