"""Every comparison as a row of a CSV file, for spreadsheets and data frames.

Each parameter has a column; numbers have all their digits, in the metric's own unit; an unknown value is an
empty cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from kteardown.model.result import Comparison, Result

_PLAIN = ("workload", "variant", "metric", "statistic", "unit", "better")
_SIDES = ("median", "mean", "sd", "n", "boots", "percentile")
_JUDGED = ("ratio", "confidence", "verdict", "exact", "mde", "p", "p_holm", "p_rank", "p_same", "outliers")
_INTERVALS = ("ci", "null_ci", "layout_ci")


def render(result: Result) -> str:
    """Return a header, then a row for each comparison of the result, including those of ablations."""
    names = list(dict.fromkeys(name for c in result.comparisons for name in c.point))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *("experiment", "clock", *_PLAIN, *names),
            *(f"{side}_{field}" for side in ("base", "changed") for field in _SIDES),
            *_JUDGED,
            *(f"{name}_{end}" for name in _INTERVALS for end in ("low", "high")),
            "reason",
        ]
    )
    for c in result.comparisons:
        writer.writerow([result.experiment, result.clock, *_row(c, names)])
    return out.getvalue()


def _row(c: Comparison, names: Sequence[str]) -> list[object]:
    sides = [getattr(side, field) for side in (c.base, c.changed) for field in _SIDES]
    ends = [end for name in _INTERVALS for end in (getattr(c, name) or (None, None))]
    return [
        *(getattr(c, field) for field in _PLAIN),
        *(c.point.get(name) for name in names),
        *sides,
        *(getattr(c, field) for field in _JUDGED),
        *ends,
        c.reason,
    ]
