"""A coverage map is the same after it was written and read."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coverage_maps
from kteardown.coverage import maps
from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.maps import (
    CoverageMap,
    PointCoverage,
    WorkloadCoverage,
    counted_points,
    read_map,
    stress_tests,
    two_sizes,
    words,
    write_map,
)
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload, workload_names

_FUNCTION = st.builds(
    FunctionId, st.sampled_from(["", "mm/a.c", "kernel/b.c"]), st.sampled_from("abcdef")
)
_COUNTS = st.builds(Counts, st.integers(0, 2**40), st.integers(0, 2**40))
_POINT = st.builds(
    PointCoverage,
    st.dictionaries(st.sampled_from(["n", "how"]), st.integers(0, 9) | st.sampled_from(["x", "y"])),
    st.integers(0, 2**50),
    st.dictionaries(_FUNCTION, _COUNTS),
)
_WORKLOAD = st.builds(
    WorkloadCoverage,
    st.sampled_from(["one", "two"]),
    st.lists(_POINT, max_size=3).map(tuple),
    st.frozensets(_FUNCTION),
    st.just(1.5),
    st.just(("how=x: it failed",)),
)


@given(st.lists(_WORKLOAD, max_size=2, unique_by=lambda workload: workload.name))
def test_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, workloads: list[WorkloadCoverage]
) -> None:
    coverage = CoverageMap("debian:6.12.1", {workload.name: workload for workload in workloads})
    path = tmp_path_factory.mktemp("map") / "map.json.xz"
    write_map(path, coverage)
    first = path.read_bytes()
    assert read_map(path) == coverage
    write_map(path, coverage)
    assert path.read_bytes() == first


@given(st.integers(0, 2**40))
def test_shipped_counts_are_within_a_tenth(count: int) -> None:
    point = PointCoverage({}, 987654, {FunctionId("mm/a.c", "a"): Counts(count, count)})
    coverage = CoverageMap("s", {"w": WorkloadCoverage("w", (point,), frozenset())})
    (made,) = coverage_maps.rounded(coverage).workloads["w"].points
    assert made.instructions == point.instructions
    for counts in made.inside.values():
        assert counts.calls == counts.instructions == pytest.approx(count, rel=0.12)
        assert (counts.calls == count) if count < 9 else counts.calls


def test_a_damaged_map_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json.xz"
    path.write_bytes(b"no")
    with pytest.raises(InputError, match="cannot read the coverage map"):
        read_map(path)
    assert gc.isenabled()


def test_workloads_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "map.json.xz"
    point = PointCoverage({}, 1, {FunctionId("mm/a.c", "a"): Counts(1, 2)})
    every = {name: WorkloadCoverage(name, (point,), frozenset()) for name in ("one", "two")}
    write_map(path, CoverageMap("s", every))
    assert read_map(path, but=("one",)) == CoverageMap("s", {"two": every["two"]})


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        ("debian:6.12", "debian:6.12"),
        ("debian:7.3", "debian:7.2"),
        ("debian:6.1", "debian:6.12"),
        ("git:/linux@v7.1", "debian:7.2"),
        ("git:/linux@abc", "debian:7.2"),
    ],
)
def test_the_nearest_version_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, nearest: str
) -> None:
    monkeypatch.setattr(maps, "data_dir", lambda kind: tmp_path)
    for source in ("debian:6.12", "debian:7.2"):
        write_map(maps.shipped_path(source), CoverageMap(source))
    assert maps.shipped_map(wanted).source == nearest


def test_sources_with_the_same_nearest_versions_share_a_map() -> None:
    one, other = (maps.shipped_map(f"git:/home/{name}/linux") for name in ("a", "b"))
    assert one is other


def test_a_workload_that_was_not_counted_comes_from_another_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "data_dir", lambda kind: tmp_path)
    point = PointCoverage({}, 1, {})
    every = {
        name: WorkloadCoverage(name, (point,), frozenset()) for name in ("one", "two", "three")
    }
    failed = WorkloadCoverage("three", (), frozenset(), failed=("it hung",))
    write_map(maps.shipped_path("debian:6.12"), CoverageMap("old", every))
    write_map(
        maps.shipped_path("debian:7.2"), CoverageMap("new", {"two": every["two"], "three": failed})
    )
    found = maps.shipped_map("debian:7.2")
    assert found.source == "new" and found.workloads == every


@pytest.mark.parametrize("name", workload_names())
def test_every_value_is_one_that_the_workload_takes(name: str) -> None:
    workload = load_workload(name)
    points = counted_points(workload)
    assert points and len({str(point) for point in points}) == len(points)
    for point in points:
        assert point.keys() == workload.parameters.keys()
        for parameter, value in point.items():
            known = workload.parameters[parameter]
            assert value in known.choices if known.choices else known.min <= int(value) <= known.max


def test_choices_and_options_have_points_of_their_own() -> None:
    swapfree = load_workload("swapfree")
    found = [words(point, swapfree) for point in counted_points(swapfree)]
    assert found[0] == "-" and {"backend=zswap", "end=exit", "compactor=on"} <= set(found)
    quota = load_workload("quota")
    assert any("outer=" in words(point, quota) for point in counted_points(quota))
    # A program that guests need besides the agent is linked to the same addresses as the agent.
    assert not any("script" in point.values() for point in counted_points(load_workload("dyingcg")))


def test_stress_tests_have_no_figures() -> None:
    assert {"freezer_states", "exit_stress"} <= stress_tests()
    assert not stress_tests() & {"zombies", "swapfree", "quota"}


def test_two_sizes() -> None:
    zombies, lost = load_workload("zombies"), load_workload("lost_events")
    assert [point["zombies"] for point in two_sizes(zombies, {"zombies": 300, "make": "fork"})] == [
        300,
        600,
    ]
    assert two_sizes(lost, {"processes": 5}) == [{"processes": 5}]
