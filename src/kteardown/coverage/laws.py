"""What one more object costs an unpatched kernel, by the results that are shipped
(``scripts/laws.py``)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kteardown.model.laws import LawModel
from kteardown.model.record_fields import ParamValue
from kteardown.paths import data_dir


@dataclass(frozen=True)
class ShippedLaw:
    """How a metric of a workload grows with ``param`` on one release, on the instruction clock.

    ``per_unit`` is the cost of one more, in the unit of the metric on that clock. ``point`` has the
    parameters that the result fixed.
    """

    workload: str
    metric: str
    param: str
    release: str
    point: Mapping[str, ParamValue]
    model: LawModel
    per_unit: float
    exponent: float | None


@cache
def shipped_laws() -> tuple[ShippedLaw, ...]:
    """Return every law."""
    rows = json.loads((data_dir("coverage") / "laws.json").read_text())
    return tuple(ShippedLaw(*row) for row in rows)
