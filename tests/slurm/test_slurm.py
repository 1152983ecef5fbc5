"""Runs on a real Slurm with guests: the same result, nothing lost, nothing left."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm.cluster import Site, small_experiment
from slurm.conftest import result_of

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(small_experiment("small", 3))
    return str(file)


def records(run: Path, kind: str) -> Iterator[dict[str, Any]]:
    lines = (json.loads(line) for line in (run / "records.ndjson").read_bytes().splitlines())
    return (line for line in lines if line["type"] == kind)


def test_the_instruction_clock_gives_the_result_of_this_host(site: Site, experiment: str) -> None:
    assert site.kteardown("run", experiment, "--jobs", "1", "-q")[0] == 0
    local = result_of(site.last_run())
    status, _, err = site.kteardown("run", experiment, "--on", "slurm:boots")
    run = site.last_run()
    assert status == 0, err
    assert result_of(run) == local
    assert sorted(line["boot"] for line in records(run, "boot_end")) == [0, 1, 2]
    compared = [
        json.loads(line) for line in (run / "jobs" / "compared.ndjson").read_text().splitlines()
    ]
    assert [(each["boot"], each["same"], sorted(each["nodes"])) for each in compared] == [
        (0, True, ["n1", "n2"])
    ]
    assert not site.live_jobs()
    assert not list(site.folder.parent.rglob("pwned"))
    assert (run / "console" / "0002-0.log").stat().st_size > 0


def test_a_driver_that_is_killed_is_resumed_with_what_finished_meanwhile(
    site: Site, experiment: str
) -> None:
    process = site.start("run", experiment, "--on", "slurm")
    site.cluster.until(lambda: len(site.live_jobs()) >= 2, 120)
    process.kill()
    process.communicate()
    run = site.last_run()
    site.cluster.until(lambda: not site.live_jobs(), 300)
    before = {file.name for file in (run / "jobs" / "attempts").iterdir()}
    assert before == {"boot-0000", "boot-0001", "boot-0002"}
    status, _, err = site.kteardown("run", "--resume", "last", "--on", "slurm")
    assert status == 0, err
    jobs = [
        file for file in (run / "jobs" / "attempts").glob("*/*") if "boot-0000" not in str(file)
    ]
    assert [file.name for file in jobs] == ["0", "0"]
    assert sorted(line["boot"] for line in records(run, "boot_end")) == [0, 1, 2]


def test_a_block_of_the_wall_clock_is_one_job_on_one_node(site: Site, experiment: str) -> None:
    status, _, err = site.kteardown("run", experiment, "--on", "slurm", "--clock", "wall", "-q")
    assert status == 0, err
    jobs: dict[int, set[str]] = {}
    for line in records(site.last_run(), "boot_start"):
        jobs.setdefault(line["block"], set()).add(f"{line['node']} {line['job']}")
    assert {block: len(names) for block, names in jobs.items()} == {0: 1, 1: 1}
    assert "blocks per node" in json.dumps(result_of(site.last_run())["notes"])


def test_a_cancelled_job_is_submitted_again(site: Site, experiment: str) -> None:
    process = site.start("run", experiment, "--on", "slurm")
    site.cluster.until(lambda: len(site.live_jobs()) >= 2, 120)
    site.cluster.command("scancel", site.live_jobs()[0])
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "was cancelled" in err
    assert "submitting it again (2 of 5)" in err


def test_a_partition_without_nodes_is_an_error_at_once(site: Site, experiment: str) -> None:
    status, _, err = site.kteardown("run", experiment, "--on", "slurm:empty")
    assert status == 5
    assert "Slurm's partition empty has no nodes" in err


def test_a_partition_that_is_down_is_reported_with_the_reason_of_slurm(
    site: Site, experiment: str
) -> None:
    process = site.start("run", experiment, "--on", "slurm:down")
    time.sleep(25)
    process.terminate()
    _, err = process.communicate()
    site.cluster.command("scancel", "--user", "root")
    assert "PartitionDown (3)" in err


def test_a_partition_that_there_is_not_is_an_error(site: Site, experiment: str) -> None:
    status, _, err = site.kteardown("run", experiment, "--on", "slurm:nope")
    assert status == 5, err


def test_another_qemu_is_refused_by_the_job(site: Site, experiment: str) -> None:
    site.configure(qemu="0" * 64, attempts=2)
    status, _, err = site.kteardown("run", experiment, "--on", "slurm")
    assert status == 5
    assert "this node has another build of QEMU" in err
    site.cluster.command("scancel", "--user", "root")


def test_the_doctor_has_a_row_for_each_node(site: Site) -> None:
    status, out, err = site.kteardown("doctor", "--on", "slurm:boots", "--json")
    found = json.loads(out)
    assert [node["node"] for node in found] == ["n1", "n2"], err
    assert all(node["found"]["cores"] >= 1 and len(node["found"]["qemu"]) == 64 for node in found)
    assert status in (0, 5)
    assert not site.live_jobs()


def test_a_script_gives_the_result_of_this_host(site: Site, tmp_path: Path) -> None:
    script = tmp_path / "folders.sh"
    script.write_text("#!/bin/sh -e\nfor i in $(seq $N); do mkdir /tmp/$i; done\n")
    change = ("--source", "debian:6.12", "--series", "freezer-skip-exited")
    found = []
    for place in (["-q"], ["-q", "--on", "slurm"]):
        arguments = ("compare", str(script), "--set", "N=20,40", "--seeds", "1", *change, *place)
        status, _, err = site.kteardown(*arguments)
        assert status == 0, err
        found.append(result_of(site.last_run()))
    assert found[0] == found[1]
    assert [line["how"] for line in records(site.last_run(), "ended")] == ["exit"] * 4
