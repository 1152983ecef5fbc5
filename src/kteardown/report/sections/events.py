"""What a change does to waits and broadcasts: a short table for each workload in which it was
counted."""

from collections.abc import Iterable, Sequence
from statistics import median

from kteardown.model.events import EventFigure
from kteardown.model.result import Result
from kteardown.report.formatting import counted
from kteardown.report.table import Block, Table
from kteardown.script.units import digits

_EACH = "one more"
_STRETCH = "stretch"


def event_tables(counts: Iterable[tuple[str, Sequence[EventFigure]]]) -> list[Table]:
    """Return a table of the events that differ, or happen once for each object, for each workload
    that has any.

    ``counts``: the workloads with their figures.
    """
    shown = [(workload, [f for f in figures if f.shown]) for workload, figures in counts]
    return [_table(workload, figures) for workload, figures in shown if figures]


def counted_events(result: Result) -> list[Table]:
    """Return the tables of a run: one for each workload and variant that has any."""
    return event_tables((f"{c.workload} with {c.variant}", c.figures) for c in result.events)


def _table(workload: str, figures: Sequence[EventFigure]) -> Table:
    objects = next((figure.objects for figure in figures if figure.objects), "")
    scopes = [_EACH if figure.objects else _STRETCH for figure in figures]
    is_mixed = len(set(scopes)) > 1
    each = f"for one more of {objects}"
    scope = f"{each} or in a stretch" if is_mixed else (each if objects else "in a stretch")
    rows = [
        (
            figure.label + (", afterwards" if figure.afterwards else ""),
            times(figure.base, is_mean=bool(figure.objects)),
            times(figure.changed, is_mean=bool(figure.objects)),
            *([of] if is_mixed else []),
        )
        for figure, of in zip(figures, scopes, strict=True)
    ]
    names = ("event", "base", "changed", *(["for"] if is_mixed else []))
    seeds = counted(len(figures[0].base), "seed")
    return Table(
        f"{workload}: waits, callbacks and broadcasts, {scope} ({seeds})",
        Block.of(names, rows, left=("event", "for")),
    )


def times(values: Sequence[float], *, is_mean: bool) -> str:
    """Return the median of how often an event happens by seed; ``is_mean``: for one object."""
    middle = median(values)
    return f"{middle:.2f}" if is_mean and 0 < abs(middle) < 100 else digits(middle)
