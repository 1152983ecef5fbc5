"""A real Slurm for the tests of this folder, started once and stopped at the end."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm.cluster import Cluster, Site, missing

TIMEOUT_S = 5400


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test a limit."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def result_of(run: Path) -> dict[str, Any]:
    """Return a result without the command, which names where it ran."""
    return {**json.loads((run / "result.json").read_text()), "command": ""}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes. Without Slurm the test fails: only ``make test-all`` runs it, and that installs
    Slurm."""
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
