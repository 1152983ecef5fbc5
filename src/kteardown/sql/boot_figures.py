"""The figure of each metric at each point in each boot, over many runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kteardown.model.record import ParamValue
from kteardown.rundir.directory import RunDir

_INTEGER = re.compile(r"-?\d+")
_FIGURES = """
SELECT run, kernel, workload, metric, params, boot, median(value),
    any_value(b.acceleration), any_value(b.release), any_value(b.cpus_online), any_value(b.started_at)
FROM samples JOIN boots AS b USING (run, kernel, boot, attempt)
    JOIN counting USING (run, boot, attempt, trial)
WHERE NOT warmup AND usable
GROUP BY run, kernel, workload, metric, params, boot ORDER BY run, boot"""


@dataclass(frozen=True)
class BootFigure:
    """The median of a metric's samples at one point in one boot. ``started_at`` is UTC, ISO 8601."""

    run: str
    kernel: str
    workload: str
    metric: str
    params: tuple[tuple[str, ParamValue], ...]
    boot: int
    value: float
    acceleration: str
    release: str
    cpus: int
    started_at: str


def boot_figures(runs: Sequence[RunDir]) -> tuple[list[BootFigure], Mapping[str, str]]:
    """Return the figures of ``runs``, ordered by run and boot; and why runs are left out, by name."""
    # Imported here: duckdb is an extra.
    from kteardown.sql.database import database

    with database(runs) as found:
        return [_boot_figure(*row) for row in found.query(_FIGURES).rows], found.skipped


def _boot_figure(
    run: str,
    kernel: str,
    workload: str,
    metric: str,
    params: Mapping[str, str],
    boot: int,
    value: float,
    acceleration: str,
    release: str | None,
    cpus: int | None,
    started_at: datetime | None,
) -> BootFigure:
    """Convert a row; without a ``hello`` record the release is empty and the number of CPUs is 0."""
    return BootFigure(
        run=run,
        kernel=kernel,
        workload=workload,
        metric=metric,
        params=tuple((name, _param(text)) for name, text in params.items()),
        boot=boot,
        value=float(value),
        acceleration=acceleration,
        release=release or "",
        cpus=cpus or 0,
        started_at=started_at.isoformat(timespec="seconds") if started_at else "",
    )


def _param(text: str) -> ParamValue:
    return int(text) if _INTEGER.fullmatch(text) else text
