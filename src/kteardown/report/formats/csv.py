"""Every comparison as a row of a CSV file, for spreadsheets and data frames.

Each parameter has a column; numbers have all their digits, in the unit that the clock gives; an unknown value
is an empty cell. Of a variant that is broken no figure is claimed, so its rows say that it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.result import Comparison, Result
from kteardown.model.value_unit import value_unit
from kteardown.model.workload import Workload
from kteardown.report.metric_names import metric_name

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_PLAIN = ("workload", "variant", "metric", "statistic", "unit", "better")
_SIDES = ("median", "mean", "sd", "n", "boots", "percentile")
_JUDGED = ("ratio", "confidence", "verdict", "exact", "mde", "p", "p_holm", "p_rank", "p_same", "outliers")
_INTERVALS = ("ci", "null_ci", "layout_ci")


def render(result: Result, workloads: Mapping[str, Workload]) -> str:
    """Return a header, then a row for each comparison of the result, including those of ablations."""
    names = list(dict.fromkeys(name for c in result.comparisons for name in c.point))
    rows: list[Sequence[object]] = [
        [
            *("experiment", "clock", *_PLAIN, "metric_name", *names),
            *(f"{side}_{field}" for side in ("base", "changed") for field in _SIDES),
            *_JUDGED,
            *(f"{name}_{end}" for name in _INTERVALS for end in ("low", "high")),
            "reason",
            "variant_broken",
        ]
    ]
    for c in result.comparisons:
        name = metric_name(workloads, c.workload, c.metric, c.statistic)
        own = c.model_copy(update={"unit": value_unit(c.unit, result.clock)})
        broken = bool(result.broken(c.variant))
        rows.append([result.experiment, result.clock, *_row(own, name, names), broken])
    return csv_text(rows)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return ``rows`` as CSV. A text that a spreadsheet would take for a formula has an apostrophe first."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _row(c: Comparison, metric: str, names: Sequence[str]) -> list[object]:
    sides = [getattr(side, field) for side in (c.base, c.changed) for field in _SIDES]
    ends = [end for name in _INTERVALS for end in (getattr(c, name) or (None, None))]
    return [
        *(getattr(c, field) for field in _PLAIN),
        metric,
        *(c.point.get(name) for name in names),
        *sides,
        *(getattr(c, field) for field in _JUDGED),
        *ends,
        c.reason,
    ]
