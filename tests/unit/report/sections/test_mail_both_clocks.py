"""A run on both clocks in a mail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kteardown.model.both_clocks import BothClocks
from kteardown.report.material import BothMaterial
from kteardown.report.saved import material_of_folder
from kteardown.report.sections.mail_both_clocks import (
    clock_averages,
    clock_mail_tables,
    readings_legend,
)
from unit.report.contexts import write_both


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothMaterial]:
    material = material_of_folder(write_both(tmp_path_factory.mktemp("both")))
    assert isinstance(material, BothMaterial)
    yield material


def test_each_metric_has_the_change_on_both_clocks(both: BothMaterial) -> None:
    first, *others = clock_averages(both.both, both.workloads)
    assert first.startswith("freezer-skip-exited: freezing user space: instructions -")
    assert ", wall clock -" in first and first.endswith(": agree")
    assert len(others) == 3


def test_a_table_has_what_the_clocks_disagree_about_and_the_last_rows(both: BothMaterial) -> None:
    tables = clock_mail_tables(both.both, both.workloads, 2, 1)
    assert len(tables) == 2
    assert tables[0].block.columns == ("zombies", "instructions", "wall clock", "reading")
    assert [row[0].text for row in tables[0].block.rows] == ["15,000"]
    assert tables[0].notes == ("2 more rows.",)
    first, *others = both.both.readings
    disagreeing = (first.model_copy(update={"reading": "disagree"}), *others)
    changed = both.both.model_copy(update={"readings": disagreeing})
    (table,) = clock_mail_tables(changed, both.workloads, 1, 1)
    assert [row[-1].text for row in table.block.rows] == ["disagree"]


def test_only_the_readings_that_a_line_has_are_explained(both: BothMaterial) -> None:
    def explained(readings: BothClocks) -> str:
        tables = clock_mail_tables(readings, both.workloads, 3, 2)
        return readings_legend(readings, both.workloads, tables)

    assert explained(both.both).startswith("agree: ")
    assert "disagree" not in explained(both.both)
    first, *others = both.both.readings
    hidden = first.model_copy(update={"metric": "no_headline_ns", "reading": "wall only"})
    shown = first.model_copy(update={"reading": "wall only"})
    with_hidden = both.both.model_copy(update={"readings": (*both.both.readings, hidden)})
    with_shown = both.both.model_copy(update={"readings": (*others, shown)})
    assert "wall only" not in explained(with_hidden)
    assert "wall only: " in explained(with_shown)
    nothing = both.both.model_copy(update={"readings": (), "metrics": ()})
    assert explained(nothing) == ""
