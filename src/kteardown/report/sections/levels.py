"""The figures of a kernel that is compared with nothing, and what its tasks wait for."""

from collections.abc import Mapping

from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.levels import Level
from kteardown.model.result import Result
from kteardown.model.waits import WaitedEvent, WaitProfile
from kteardown.model.workload import Workload
from kteardown.report.formatting import counted, parameter, point_text
from kteardown.report.measured import share_of_time
from kteardown.report.metrics import point_cells
from kteardown.report.table import Block, Table
from kteardown.script.units import digits, readable, readable_together

_ROWS = 12
_NEARLY = 0.05
_PER_OBJECT = 0.01
"""Fewer waits for one object more are none."""


def level_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return a table for each headline metric of base: its figure at each point."""
    families: dict[tuple[str, str], list[Level]] = {}
    for level in result.levels:
        if is_headline(workloads, level.workload, level.metric):
            families.setdefault((level.workload, level.metric), []).append(level)
    return [_table(family, workloads) for family in families.values()]


def _table(levels: list[Level], workloads: Mapping[str, Workload]) -> Table:
    first = levels[0]
    names, keys = point_cells([level.point for level in levels])
    values = readable_together([level.summary.median for level in levels], first.unit)
    rows = [
        (*cells, value, counted(level.summary.boots, "boot"))
        for cells, value, level in zip(keys, values, levels, strict=True)
    ]
    name = metric_name(workloads, first.workload, first.metric)
    return Table(
        f"{first.workload}: {name} ({first.metric}), median", Block.of((*names, "base", "of"), rows)
    )


def wait_tables(result: Result) -> list[Table]:
    """Return a table for each kernel and setting: where tasks wait, at the largest size."""
    return [_waits(profile) for profile in result.waits if profile.places]


def waited_tables(result: Result) -> list[Table]:
    """Return a table for each kernel and setting: for which events tasks wait, and how often."""
    return [_events(profile) for profile in result.waits if profile.events]


def _events(profile: WaitProfile) -> Table:
    rows = [
        (
            event.label,
            how_often(event, profile.param),
            digits(event.count),
            readable(event.ns, "ns"),
        )
        for event in profile.events
    ]
    at = f" at {point_text(profile.point)}" if profile.point else ""
    left = ("tasks wait for", "how often")
    return Table(
        f"{profile.workload}: grace periods and the like on {profile.kernel}{at}",
        Block.of((*left, "waits", "time"), rows, left=left),
        notes=_lost(profile),
    )


def how_often(event: WaitedEvent, param: str) -> str:
    """Return how the number of waits depends on the size: ``once for each N``, ``once for all``."""
    more = event.count_per_object
    if more is None or not param:
        return f"{digits(event.count)} in all"
    if abs(more) >= _PER_OBJECT:
        number = "once" if abs(more - 1) < _NEARLY else digits(round(more, 2))
        return f"{number} for each {param}"
    return "once for all" if abs(event.count - 1) < _NEARLY else f"{digits(event.count)} for all"


def _waits(profile: WaitProfile) -> Table:
    rows = [
        (
            place.function,
            " <- ".join(place.callers),
            "process" if place.is_process else "kernel thread",
            place.waits_for,
            digits(place.count),
            "-" if place.count_per_object is None else digits(place.count_per_object),
            readable(place.ns, "ns"),
            share_of_time(place),
        )
        for place in profile.places[:_ROWS]
    ]
    left = ("waits in", "called by", "who", "for")
    each = f"for one more {profile.param}" if profile.param else "for one more"
    at = f" at {point_text(profile.point)}" if profile.point else ""
    note = (
        f"of {readable(profile.stretch_ns, 'ns')} of the guest's clock; several tasks can wait at "
        "once, so the shares can add up to more than 100%"
    )
    return Table(
        f"{profile.workload}: what tasks wait for on {profile.kernel}{at}",
        Block.of((*left, "waits", each, "time", "share"), rows, left=left),
        notes=(note, *_lost(profile)),
    )


def _lost(profile: WaitProfile) -> tuple[str, ...]:
    if not profile.lost:
        return ()
    return (
        f"{parameter(profile.lost)} switches of tasks did not fit into the buffer: waits are "
        "missing, and others are too long; give the guest more memory",
    )
