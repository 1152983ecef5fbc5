"""The table of releases by several processes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown_hunt.owner_tables import owners_table, what_is_waited_for
from kteardown_hunt.result import ContendedData, FailureResult, OwnersFailure, OwnersResult
from unit.hunt.recorded import result_of

LOCK = ContendedData(name="tasklist_lock", movers=(), share=0.6)
LINE = ContendedData(name="", movers=("do_exit", "release_task"), share=0.3, lines=576)
SERIAL = OwnersResult(
    kind="flocks",
    way="exit",
    user="root",
    owners=2,
    objects=100,
    boots=6,
    ratio=1.9,
    ci=(1.8, 2.0),
    verdict="serial",
    alone="linear",
    moves_each=6.546,
    locked_each=2.0,
    data=(LOCK, LINE),
    asleep_share=0.1,
)


def test_only_releases_that_wait_are_shown_unless_all_are_asked_for() -> None:
    parallel = SERIAL.model_copy(update={"verdict": "parallel", "ratio": 1.0})
    result = result_of([], []).model_copy(update={"owners": (SERIAL, parallel)})
    table = owners_table(result, everything=False)
    assert table
    (row,) = table.keys.rows
    cells = dict(zip(table.keys.columns, (cell.text for cell in row), strict=True))
    assert cells["way"] == "flocks, exit"
    assert (cells["lines moved"], cells["locked"]) == ("6.55", "2")
    assert cells["waits for"] == "tasklist_lock (60.0%)"
    assert not any("wall clock" in note for note in table.notes)
    earlier = SERIAL.model_copy(update={"moves_each": None, "locked_each": None})
    old = owners_table(result.model_copy(update={"owners": (earlier,)}), everything=False)
    assert old and any("wall clock" in note for note in old.notes)
    every = owners_table(result, everything=True)
    assert every and len(every.keys.rows) == 2
    assert owners_table(result_of([], []), everything=True) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "tasklist_lock (60.0%)"),
        ({"data": (LINE,)}, "do_exit(), release_task(), 576 lines (30.0%)"),
        ({"asleep_share": 0.7}, "sleeps (70.0%); tasklist_lock (60.0%)"),
        ({"data": (), "asleep_share": 0.7}, "sleeps (70.0%)"),
        ({"data": (), "asleep_share": 0.0}, ""),
    ],
)
def test_what_has_the_largest_share_is_named(change: dict[str, object], expected: str) -> None:
    assert what_is_waited_for(SERIAL.model_copy(update=change)) == expected


def test_a_guest_that_fails_comes_first(tmp_path: Path) -> None:
    failed = OwnersFailure(
        kind="flocks",
        way="call",
        user="root",
        owners=4,
        failed=FailureResult(outcome="panic", objects=50, detail="Oops in do_exit()"),
    )
    update = {"owners": (SERIAL,), "owners_failed": (failed,), "owners_left_out": 3}
    table = owners_table(result_of([], []).model_copy(update=update), everything=False)
    assert table
    cells = [dict(zip(table.keys.columns, row, strict=True)) for row in table.keys.rows]
    assert [(row["way"].text, row["verdict"].text) for row in cells] == [
        ("flocks, call", "panic"),
        ("flocks, exit", "serial"),
    ]
    assert (cells[0]["verdict"].tone, cells[0]["waits for"].text) == ("worse", "Oops in do_exit()")
    assert any(note.startswith("not measured: 3 ways") for note in table.notes)
