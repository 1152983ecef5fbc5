"""The table of what a change does to waits and broadcasts."""

from __future__ import annotations

from kteardown.model.events import EventCounts, EventFigure
from kteardown.report.formats.cover import layout
from kteardown.report.sections.events import counted_events, event_tables, times
from unit.report.contexts import instructions


def figure(
    event: str,
    label: str,
    base: tuple[float, ...],
    changed: tuple[float, ...],
    *,
    objects: str = "N",
    differs: bool = True,
    afterwards: bool = False,
) -> EventFigure:
    return EventFigure(
        event=event,
        label=label,
        unit="",
        objects=objects,
        afterwards=afterwards,
        base=base,
        changed=changed,
        differs=differs,
    )


RCU = figure("rcu", "grace periods (RCU)", (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
CALLBACKS = figure("callbacks", "callbacks queued (call_rcu)", (0.0, 0.01, 0.0), (1.0, 1.01, 1.0))
STOPS = figure("stop_machine", "stops of all CPUs (stop_machine)", (4,), (0,), objects="")


def rows(*figures: EventFigure) -> list[list[str]]:
    (table,) = event_tables([("psi", figures)])
    return [[cell.text for cell in row] for row in table.keys.rows]


def test_a_grace_period_that_became_a_callback() -> None:
    assert rows(RCU, CALLBACKS) == [
        ["grace periods (RCU)", "1.00", "0"],
        ["callbacks queued (call_rcu)", "0", "1.00"],
    ]
    (table,) = event_tables([("psi", (RCU,))])
    assert "for one more of N" in table.title
    assert "3 seeds" in table.title


def test_a_number_of_a_stretch_is_told_from_one_of_an_object() -> None:
    assert [row[-1] for row in rows(RCU, STOPS)] == ["one more", "stretch"]
    assert rows(STOPS) == [["stops of all CPUs (stop_machine)", "4", "0"]]


def test_later_work_is_named() -> None:
    later = figure("rcu", "grace periods (RCU)", (0.0,), (1.0,), afterwards=True)
    assert rows(later) == [["grace periods (RCU), afterwards", "0", "1.00"]]


def test_no_table_if_nothing_differs_and_nothing_happens_for_each_object() -> None:
    calm = figure("work", "work items queued", (3.0,), (3.0,), differs=False)
    assert event_tables([("psi", (calm,)), ("other", ())]) == []


def test_a_run_has_a_table_for_each_variant_that_changes_something() -> None:
    about = {"workload": "zombies", "point": {"zombies": 300}}
    counts = (
        EventCounts.model_validate({**about, "variant": "first", "figures": [RCU.model_dump()]}),
        EventCounts.model_validate({**about, "variant": "second", "reason": "it hung"}),
    )
    (table,) = counted_events(instructions().result.model_copy(update={"events": counts}))
    assert table.title.startswith("zombies with first: ")


def test_the_table_fits_into_a_mail() -> None:
    long = "a_workload_with_a_long_name"
    for table in event_tables([(long, (RCU, CALLBACKS, STOPS)), ("b", (STOPS,))]):
        assert all(len(line) <= 72 for line in layout(table).splitlines())


def test_numbers() -> None:
    assert times((0.0, 0.0), is_mean=True) == "0"
    assert times((2.004, 2.0, 1.9), is_mean=True) == "2.00"
    assert times((1234.4,), is_mean=True) == "1,234"
    assert times((4,), is_mean=False) == "4"
