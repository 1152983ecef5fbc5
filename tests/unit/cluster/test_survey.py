"""A look at each node of a cluster, and the table of what was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown_cluster import doctor, node_job
from kteardown_cluster.node_job import NodeFacts
from kteardown_cluster.slurm import Job, Node, Slurm, SlurmConfig, Submission
from kteardown_cluster.survey import Surveyed, survey

FOUND = NodeFacts(
    qemu="a" * 64,
    qemu_version="7.2",
    kvm="",
    cores=8,
    cpu="EPYC",
    memory_mb=16384,
    disk_mb=50000,
    cache=True,
    load=0.1,
    smt="off",
    governor="performance",
)


class _Cluster(Slurm):
    """A node answers, another does not, and the job of a third fails."""

    def __init__(self) -> None:
        self.words = "the cluster"
        self.queue: list[Job] = []
        self.cancelled = False

    def submit(self, job: Submission) -> str:
        file, state = Path(job.command[1]), "PENDING"
        if job.node == "n1":
            file.write_text(FOUND.model_dump_json())
            state = "COMPLETED"
        elif job.node == "n3":
            Path(job.output).write_text("python3: not found\n")
            state = "FAILED"
        self.queue.append(Job(str(len(self.queue)), state, job.node, job.comment, "Resources"))
        return self.queue[-1].id

    def jobs(self, name: str) -> list[Job]:
        return self.queue

    def cancel(self, name: str) -> None:
        self.cancelled = True

    def nodes(self) -> list[Node]:
        return [Node("n1", "idle"), Node("n2", "down*"), Node("n3", "idle")]


def test_each_node_answers_or_has_the_reason_of_the_scheduler(tmp_path: Path) -> None:
    cluster = _Cluster()
    found = survey(cluster, SlurmConfig(), tmp_path, limit_s=3, sleep=lambda seconds: None)
    assert [(each.node, each.found is not None, each.reason) for each in found] == [
        ("n1", True, ""),
        ("n2", False, "the job is PENDING: Resources"),
        ("n3", False, "the job is FAILED: python3: not found"),
    ]
    assert cluster.cancelled
    assert not list(tmp_path.iterdir())


def test_a_job_writes_what_its_host_is_like(tmp_path: Path) -> None:
    assert (
        node_job.main([str(tmp_path / "n1.json"), str(tmp_path), str(tmp_path / "no" / "such")])
        == 0
    )
    found = NodeFacts.model_validate_json((tmp_path / "n1.json").read_bytes())
    assert found.cache
    assert found.cores >= 1


def test_the_table_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = FOUND.model_copy(update={"qemu": "b" * 64, "load": 9.0, "governor": "powersave"})
    nodes = [Surveyed(node=f"n{n}", state="idle", found=FOUND) for n in (1, 2)]
    nodes += [
        Surveyed(node="n3", state="idle", found=other),
        Surveyed(node="n4", state="down", reason="gone"),
    ]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "survey", lambda *given: nodes)
    done = CliRunner().invoke(app, ["doctor", "--on", "slurm", "--json"])
    found = {node["node"]: node["problems"] for node in json.loads(done.stdout)}
    assert found == {
        "n1": [],
        "n2": [],
        "n3": [
            "its build of QEMU is not aaaaaaaaaaaa",
            "other work runs on it",
            "the governor is powersave",
        ],
        "n4": ["gone"],
    }
    shown = CliRunner().invoke(app, ["doctor", "--on", "slurm"])
    assert "n4" in shown.stdout
    assert shown.exit_code != 0
