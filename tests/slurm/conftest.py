"""A real Slurm for the tests of this folder, started once and stopped at the end."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slurm.cluster import Cluster, missing

TIMEOUT_S = 5400


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test a limit."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@dataclass(frozen=True)
class Site:
    """The cluster, and a user of it: the shared folder of the runs, and the configuration."""

    cluster: Cluster
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **self.cluster.environment,
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "KTEARDOWN_RUNS": str(self.folder / "runs"),
        }

    def configure(self, **settings: str | float | bool) -> None:
        """Write the configuration."""
        given = {"poll_s": 0.5, "grace_s": 2, "wall": "mttcg", "lock_folder": str(self.folder), **settings}
        file = self.folder / "config" / "kteardown" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        file.write_text("\n".join(["[slurm]", *lines, ""]))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kteardown."""
        return subprocess.Popen(
            [sys.executable, "-m", "kteardown", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kteardown(self, *arguments: str) -> tuple[int, str, str]:
        """Run kteardown; return its exit status and what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate()
        return process.returncode, out, err

    def last_run(self) -> Path:
        """Return the newest run directory."""
        return max((self.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)

    def live_jobs(self) -> list[str]:
        """Return the jobs that wait or run."""
        return self.cluster.command("squeue", "-h", "-t", "PD,R,CG", "-o", "%i").split()


def result_of(run: Path) -> dict[str, Any]:
    """Return a result without the command, which names where it ran."""
    return {**json.loads((run / "result.json").read_text()), "command": ""}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes. Without Slurm the test fails: only ``make test-all`` runs it, and that installs Slurm."""
    if absent := missing():
        pytest.fail(f"not installed: {', '.join(absent)}; apt install slurm-wlm munge")
    if getpass.getuser() == "root":
        # munged refuses a folder that others may write to, as the one above this may be.
        os.umask(0o022)
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
        yield started
    finally:
        started.stop()
        assert not started.steps()


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Site:
    """A user of the cluster; names of folders have what a shell would read."""
    folder = tmp_path / "100% of $(touch pwned) 'x; y"
    (folder / "runs").mkdir(parents=True)
    made = Site(cluster, folder)
    made.configure()
    return made
