"""The figure of each metric at each point in each boot, over many runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.rundir.directory import RunDir

_INTEGER = re.compile(r"-?\d+")
_FIGURES = """
SELECT run, kernel, workload, metric, params, boot, median(value), any_value(b.acceleration),
    coalesce(any_value(b.release), ''), coalesce(any_value(b.cpus_online), 0),
    coalesce(strftime(any_value(b.started_at), '%Y-%m-%dT%H:%M:%S'), '')
FROM samples JOIN boots AS b USING (run, kernel, boot, attempt)
    JOIN counting USING (run, boot, attempt, trial)
WHERE NOT warmup AND usable
GROUP BY run, kernel, workload, metric, params, boot ORDER BY run, boot"""


@dataclass(frozen=True)
class BootFigure:
    """The median of a metric's samples at one point in one boot. ``started_at`` is UTC, ISO 8601.

    Without a ``hello`` record the release is empty and the number of CPUs is 0.
    """

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
        rows = found.query(_FIGURES).rows
        figures = [
            BootFigure(run, kernel, workload, metric, _params(params), *others)
            for run, kernel, workload, metric, params, *others in rows
        ]
        return figures, found.skipped


def _params(texts: Mapping[str, str]) -> tuple[tuple[str, ParamValue], ...]:
    return tuple((name, int(text) if _INTEGER.fullmatch(text) else text) for name, text in texts.items())
