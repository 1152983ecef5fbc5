"""The numbers of objects and of residents that are measured."""

from __future__ import annotations

import pytest

from kteardown.errors import InputError
from kteardown_hunt.plan import NO_RESIDENTS, Case
from kteardown_hunt.stay_plan import (
    DECLARED,
    FEWEST_RESIDENTS,
    GENERAL,
    StayGrid,
    chosen_residents,
    declared_grid,
    general_grid,
    screen_points,
    single_points,
    without_other_orders,
)
from unit.hunt.recorded import kind

FILES = kind(Case("files_one_inode", "exit"), "files", "nofile")
ROOTS = FILES.model_copy(update={"name": "memory_cgroups", "privileged": True})
PATIENT = FILES.model_copy(update={"resident": "inode", "most_residents": 1000})
KINDS = [
    FILES.model_copy(update={"name": name, "privileged": name == "memory_cgroups"})
    for name in GENERAL
]


def test_what_a_kind_declares_is_also_measured_without_any_object() -> None:
    grid = declared_grid(PATIENT, 18432)
    assert grid is not None
    assert grid.stay == DECLARED and grid.residents[-1] <= 1000
    points = grid.points()
    assert {point.objects for point in points if point.stay == "declared=0"} == {0, *grid.objects}
    most = grid.text(grid.residents[-1])
    assert {point.objects for point in points if point.stay == most} == {0, *grid.objects}
    assert len(set(points)) == len(points)


def test_other_processes_hold_what_stays_so_no_baseline_is_needed() -> None:
    points = general_grid("files_one_inode", 4608, 72).points()
    assert all(point.objects for point in points)
    assert points[0].stay == NO_RESIDENTS
    # Each sort of residents is made once for all the points at which it stays.
    stays = [point.stay for point in points]
    assert len(list(dict.fromkeys(stays))) == sum(
        now != before for before, now in zip(["", *stays], stays, strict=False)
    )


@pytest.mark.parametrize("largest", [0, 1, 3, 18, 72, 288, 18432])
def test_no_more_objects_are_released_than_the_screen_measured(largest: int) -> None:
    grid = declared_grid(PATIENT, largest)
    assert (grid is None) == (largest == 0)
    assert grid is None or (grid.objects[-1] <= min(largest, 288) and grid.objects[0] >= 1)


def test_a_kind_that_declares_nothing_has_no_grid() -> None:
    assert declared_grid(FILES, 288) is None


def test_every_sort_is_measured_between_two_points_without() -> None:
    residents = {"a": 1, "b": 2}
    assert [point.stay for point in screen_points([residents], 10)] == ["-", "a=1,b=2", "-"]
    single = [point.stay for point in single_points(residents, 10)]
    assert single == ["-", "a=1", "-", "b=2", "-"]


def test_one_order_of_releases_is_enough() -> None:
    ways = ("exit", "call", "oldest", "youngest", "random")
    cases = [Case("a", way) for way in ways]  # type: ignore[arg-type]
    assert [case.way for case in without_other_orders(cases)] == ["exit", "call", "oldest"]


def test_all_means_what_the_user_can_make() -> None:
    assert chosen_residents(["all"], KINDS, "root") == dict(GENERAL)
    ordinary = chosen_residents(["all"], KINDS, "ordinary")
    assert ordinary.keys() == GENERAL.keys() - {"memory_cgroups"}
    assert chosen_residents(["files_one_inode=70"], KINDS, "root") == {"files_one_inode": 70}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file_one_inode", "files_one_inode"),
        ("files_one_inode=", "1,000,000"),
        ("files_one_inode=0", "1,000,000"),
        ("files_one_inode=39", "from 40"),
        ("files_one_inode=x", "1,000,000"),
    ],
)
def test_a_resident_that_is_none_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        chosen_residents([text], KINDS, "root")


def test_more_residents_than_a_kind_allows_are_refused() -> None:
    vlans = FILES.model_copy(update={"name": "vlans", "most": 4094})
    assert chosen_residents(["vlans=4094"], [vlans], "root") == {"vlans": 4094}
    with pytest.raises(InputError, match="4,094"):
        chosen_residents(["vlans=4095"], [vlans], "root")


def test_the_fewest_residents_that_are_taken_have_a_law() -> None:
    grid = general_grid("files_one_inode", FEWEST_RESIDENTS, 1)
    assert len(grid.residents) == 4 and grid.residents[-1] == FEWEST_RESIDENTS
    rare = FILES.model_copy(update={"name": "rare", "most": FEWEST_RESIDENTS - 1})
    with pytest.raises(InputError, match="too few"):
        chosen_residents(["rare"], [rare], "root")


def test_an_ordinary_user_cannot_make_what_only_root_can() -> None:
    with pytest.raises(InputError, match="only root"):
        chosen_residents(["memory_cgroups"], [ROOTS], "ordinary")


def test_a_grid_says_what_stays_as_the_agent_reads_it() -> None:
    assert StayGrid("a", (1,), (2,)).text(0) == "-"
    assert StayGrid("a", (1,), (2,)).text(2) == "a=2"
    assert StayGrid(DECLARED, (1,), (2,), baseline=True).text(0) == "declared=0"
