"""The tables of who moves cache lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kteardown.model.result import Result
from kteardown.model.sharing import SharingProfile, SharingRow
from kteardown.report.sections import sharing
from kteardown.report.sections.sharing import sharing_tables
from kteardown.report.table import Table

CHANGED = "freezer-skip-exited"


def row(
    name: str, moves: float, *, movers: tuple[str, ...] = (), line: str = "", locked: float = 2.0
) -> SharingRow:
    return SharingRow(
        name=name,
        movers=movers,
        line=line,
        moves={"base": moves, CHANGED: moves / 2},
        locked={"base": locked},
        lines={"base": 1.0, CHANGED: 1.0},
        spins={"base": 40.0, CHANGED: 0.0},
    )


def profile(
    point: dict[str, int | str],
    functions: Sequence[SharingRow],
    data: Sequence[SharingRow] = (),
) -> SharingProfile:
    return SharingProfile(
        workload="zombies",
        point=point,
        object="zombie",
        functions=tuple(functions),
        data=tuple(data),
    )


def tables(result: Result, *profiles: SharingProfile) -> list[Table]:
    return sharing_tables(result.model_copy(update={"sharing": profiles}))


def texts(table: Table) -> list[list[str]]:
    """Return the names of the columns and the cells of each row."""
    (block,) = table.cut(1000, 2)
    return [list(block.columns), *([cell.text for cell in cells] for cells in block.rows)]


def test_the_kernels_are_in_one_cell(freezer_result: Result) -> None:
    few = [row(f"function_{n}", 1 - n / 100) for n in range(20)]
    functions = [row("freeze_task", 3.0), *few, row("idle", 0.001)]
    data = [row("tasklist_lock", 2.0), row("", 1.0, movers=("__refrigerator", "fork"))]
    moved, lines = tables(freezer_result, profile({"cpus": 2}, functions, data))
    assert moved.title.endswith(f"for one zombie; base / {CHANGED}")
    assert texts(moved)[:2] == [
        ["function", "moves, 2 CPUs", "locked, 2 CPUs"],
        # A kernel that has no such count has a dash.
        ["freeze_task", "3.00 / 1.50", "2.00 / -"],
    ]
    assert len(moved.keys.rows) == 12
    assert moved.notes == ("and 10 more with fewer moves",)
    assert [cells[0] for cells in texts(lines)[1:]] == [
        "tasklist_lock",
        "__refrigerator(), fork()",
    ]
    assert texts(lines)[0][-2:] == ["rounds, 2 CPUs", "lines, 2 CPUs"]
    assert texts(lines)[1][-2:] == ["40.00 / 0", "1.00 / 1.00"]


def test_the_numbers_of_cpus_are_columns(freezer_result: Result) -> None:
    """With one CPU there are no moves, and a row of other points is looked up by its name."""
    (table,) = tables(
        freezer_result,
        profile({"cpus": 4}, [row("a", 9.0, locked=7.0), row("c", 400.0)]),
        profile({"cpus": 1}, [row("a", 0.0)]),
        profile({"cpus": 2}, [row("b", 5.0), row("a", 1.0)]),
    )
    assert texts(table) == [
        ["function", "moves, 2 CPUs", "moves, 4 CPUs", "locked, 4 CPUs"],
        ["c", "-", "400 / 200", "2.00 / -"],
        ["a", "1.00 / 0.50", "9.00 / 4.50", "7.00 / -"],
        ["b", "5.00 / 2.50", "-", "-"],
    ]
    (note,) = table.notes
    assert "no line moves with 1 CPU" in note
    assert "result.json: locked instructions" in note
    assert "-: " in note


def test_other_parameters_have_tables_of_their_own(freezer_result: Result) -> None:
    """Those that change with the CPUs alone are no other parameters."""
    points: list[dict[str, int | str]] = [
        {"cpus": cpus, "processes": cpus, "zombies": zombies}
        for cpus in (2, 4)
        for zombies in (100, 200)
    ]
    found = tables(freezer_result, *(profile(point, [row("a", 1.0)]) for point in points))
    assert [table.title.partition(" at ")[2].partition(";")[0] for table in found] == [
        "zombies=100",
        "zombies=200",
    ]
    assert all(len(table.blocks) == 3 for table in found)


def test_many_other_parameters_have_a_note(
    freezer_result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MOST_PLACES", 2)
    profiles = [profile({"cpus": 2, "zombies": n}, [row("a", 1.0)]) for n in range(5)]
    found = tables(freezer_result, *profiles)
    assert ["zombies=3" in found[0].title, "zombies=4" in found[1].title] == [True, True]
    assert "3 settings" in found[-1].notes[-1]


def test_source_lines_come_last(freezer_result: Result) -> None:
    (table,) = tables(freezer_result, profile({}, [row("a", 1.0, line="exit.c:5"), row("b", 0.5)]))
    assert texts(table) == [
        ["function", "moves", "locked", "line"],
        ["a", "1.00 / 0.50", "2.00 / -", "exit.c:5"],
        ["b", "0.50 / 0.25", "2.00 / -", ""],
    ]


def test_base_alone_has_its_counts(freezer_result: Result) -> None:
    base = SharingRow(name="a", moves={"base": 1.0}, locked={"base": 1234.0})
    (table,) = tables(freezer_result, profile({"cpus": 2}, [base]))
    assert texts(table)[1] == ["a", "1.00", "1,234"]
    assert table.title.endswith("for one zombie")


def test_a_kernel_without_counts_is_not_compared(freezer_result: Result) -> None:
    changed = SharingRow(name="a", moves={CHANGED: 0.001}, locked={CHANGED: 0.0})
    more = SharingRow(name="b", moves={CHANGED: 3.0, "a part of it": 9.0}, locked={CHANGED: 0.0})
    (table,) = tables(freezer_result, profile({"cpus": 2}, [changed, more]))
    assert texts(table)[1:] == [["b", "3.00", "0"]]
    assert table.title.endswith(f"for one zombie; {CHANGED}")


def test_without_counts_there_is_no_table(freezer_result: Result) -> None:
    assert sharing_tables(freezer_result) == []
    assert tables(freezer_result, profile({"cpus": 1}, [row("a", 0.0)])) == []
