"""The points at which workloads are counted."""

from __future__ import annotations

import pytest

from kteardown.coverage.maps import counted_points, stress_tests, two_sizes, words
from kteardown.inputs.load import load_workload, workload_names


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
