"""Sampling in real guests: the function that takes the time is found, and a lost profile is made
again."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from vm.test_run import kteardown, result_of

pytestmark = [pytest.mark.vm, pytest.mark.build]


def sampled(run: Path) -> list[dict[str, Any]]:
    """The records of the profile's stretches and stacks, sorted by boot: guests run at the same
    time."""
    lines = (run / "profile" / "records.ndjson").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    found = [{**r, "attempt": 0} for r in records if r["type"] in ("profile", "stack")]
    return sorted(found, key=lambda record: record["boot"])


def stretches(records: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """The boot, trial and repetition of each stretch."""
    return [(r["boot"], r["trial"], r["repetition"]) for r in records if r["type"] == "profile"]


def test_a_profile_finds_the_freezer_and_is_made_again_when_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    # Two CPUs: both are sampled, and one of them is idle.
    done = kteardown(
        *shlex.split("run freezer --profile --seeds 1 --repetitions 1 --workload zombies --cpus 2"),
        *shlex.split("--variant freezer-skip-exited --set zombies=2000,12000 --json"),
        str(file),
        runs=tmp_path / "runs",
    )
    assert re.search(r"The whole report: \S*kteardown report ", done.stdout)
    whole = kteardown("report", "last", runs=tmp_path / "runs").stdout
    assert "where the time goes at zombies=12,000" in whole
    result = result_of(file)
    # The sampled boots are not among those that are compared.
    assert result["boots"]["ok"] == 2
    assert {row["base"]["n"] for row in result["comparisons"]} == {1}

    (profile,) = result["profiles"]
    assert [(s["kernel"], s["point"]["zombies"]) for s in profile["stretches"]] == [
        ("base", 2000),
        ("base", 12000),
        ("freezer-skip-exited", 2000),
        ("freezer-skip-exited", 12000),
    ]
    assert all(
        s["cpus"] == 2 and s["lost"] == 0 and s["samples"] > 30 for s in profile["stretches"]
    )
    hottest = {f["function"]: f for f in profile["functions"]}
    freeze_task = hottest["freeze_task"]
    assert freeze_task["callers"][0] == "try_to_freeze_tasks"
    base, changed = freeze_task["costs"]
    assert base["self_share"] > 0.1
    # The series no longer calls it for exited tasks.
    assert changed["differs"] and changed["difference_ns"] < 0

    (run,) = (tmp_path / "runs").iterdir()
    assert sorted(path.name for path in (run / "profile").glob("*.folded")) == [
        f"{kernel}-zombies-zombies={zombies}.folded"
        for kernel in ("base", "freezer-skip-exited")
        for zombies in (12000, 2000)
    ]
    first = sampled(run)
    assert any("try_to_freeze_tasks;freeze_task" in record.get("stack", "") for record in first)
    (run / "profile" / "records.ndjson").unlink()
    kteardown("run", "--resume", str(run), "--json", str(file), runs=tmp_path / "runs")
    # The samples themselves may differ: the turns of two CPUs do so with QEMU 11.1.
    assert stretches(sampled(run)) == stretches(first)
    (again,) = result_of(file)["profiles"]
    assert [s["point"] for s in again["stretches"]] == [s["point"] for s in profile["stretches"]]
