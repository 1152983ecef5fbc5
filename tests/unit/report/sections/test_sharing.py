"""The tables of who moves cache lines."""

from __future__ import annotations

from kteardown.model.result import Result
from kteardown.model.sharing import SharingProfile, SharingRow
from kteardown.report.sections.sharing import sharing_tables


def row(name: str, moves: float, *, movers: tuple[str, ...] = ()) -> SharingRow:
    return SharingRow(
        name=name,
        movers=movers,
        moves={"base": moves, "freezer-skip-exited": moves / 2},
        locked={"base": 2.0},
        lines={"base": 1.0, "freezer-skip-exited": 1.0},
    )


def test_the_kernels_are_side_by_side(freezer_result: Result) -> None:
    few = [row(f"function_{n}", 1 - n / 100) for n in range(20)]
    profile = SharingProfile(
        workload="zombies",
        point={"cpus": 2},
        object="zombie",
        functions=(row("freeze_task", 3.0), *few, row("idle", 0.001)),
        data=(row("tasklist_lock", 2.0), row("", 1.0, movers=("__refrigerator", "fork"))),
    )
    result = freezer_result.model_copy(update={"sharing": (profile,)})
    functions, lines = sharing_tables(result)
    assert "for one zombie at cpus=2" in functions.title
    assert functions.keys.rows[0][0].text == "freeze_task"
    moves, locked = functions.blocks
    assert [cell.text for cell in moves.rows[0]] == ["3", "1.5"]
    # A kernel that has no such count has a dash.
    assert [cell.text for cell in locked.rows[0]] == ["2", "-"]
    assert len(functions.keys.rows) == 12
    assert functions.notes == ("and 10 more with fewer moves",)
    assert [cells[0].text for cells in lines.keys.rows] == [
        "tasklist_lock",
        "allocated: __refrigerator(), fork()",
    ]


def test_without_counts_there_is_no_table(freezer_result: Result) -> None:
    assert sharing_tables(freezer_result) == []
