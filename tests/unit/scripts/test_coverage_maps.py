"""A coverage map is stale when a workload, the agent or the plugin has changed since it was
made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coverage_maps
from kteardown.coverage.maps import CoverageMap, WorkloadCoverage, read_map


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ids of maps that are all current."""
    path = tmp_path / "made.json"
    monkeypatch.setattr(coverage_maps, "MADE", path)
    monkeypatch.setattr(coverage_maps, "shipped_path", lambda source: tmp_path / source)
    for source in coverage_maps.SOURCES:
        (tmp_path / source).touch()
    path.write_text(json.dumps({source: coverage_maps.ids() for source in coverage_maps.SOURCES}))
    return path


def test_current_maps_are_not_reported(made: Path) -> None:
    assert coverage_maps.stale() == []


def test_a_changed_workload_is_named(made: Path) -> None:
    content = json.loads(made.read_text())
    content["debian:7.2"]["zombies"] = "other"
    made.write_text(json.dumps(content))
    count = len(coverage_maps.ids())
    assert coverage_maps.stale() == [f"debian:7.2: 1 of {count} workloads changed since: zombies"]


def test_only_what_changed_is_counted_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def collect(name: str, source: str, reporter: object) -> CoverageMap:
        counted.append(name)
        found = WorkloadCoverage(name, (), frozenset(), seconds=float(len(counted)))
        return CoverageMap(f"{source}.1", {name: found})

    monkeypatch.setattr(coverage_maps, "collect", collect)
    source = coverage_maps.SOURCES[0]
    (made.parent / source).unlink()
    coverage_maps.make([source])
    assert sorted(counted) == sorted(coverage_maps.ids())
    content = json.loads(made.read_text())
    del content[source]["zombies"]
    made.write_text(json.dumps(content))
    coverage_maps.make([source])
    assert counted[-1] == "zombies" and len(counted) == len(coverage_maps.ids()) + 1
    assert coverage_maps.stale() == []
    shipped = read_map(made.parent / source)
    assert shipped.source == f"{source}.1" and len(shipped.workloads) == len(coverage_maps.ids())


def test_maps_that_were_never_made(made: Path) -> None:
    made.unlink()
    assert len(coverage_maps.stale()) == len(coverage_maps.SOURCES)
