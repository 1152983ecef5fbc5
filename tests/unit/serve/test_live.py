"""The part of a run's page that changes while the run is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.run.live_progress import Follower
from kteardown.rundir.snapshot import load
from kteardown.serve.app import duration, median_tables
from unit.run import killable


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (119, "119 s"), (130, "2 min"), (7100, "118 min"), (7260, "2 h 01 min")],
)
def test_a_duration_has_the_units_that_fit_its_length(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_medians_so_far_are_next_to_base(tmp_path: Path) -> None:
    run = killable.make_run(tmp_path, "instructions")
    killable.measure(run.path)
    tables = median_tables(Follower(run).look(), load(run))
    assert [table.title.partition("(")[2].partition(")")[0] for table in tables] == [
        "freeze_user_ns",
        "freeze_remaining_ns",
    ]
    block = tables[0].keys
    assert block.columns == ("zombies", "base", killable.VARIANT)
    assert [row[0].text for row in block.rows] == ["0", "300", "600"]
    assert block.rows[0][2].text.endswith("(+0.0%)")
