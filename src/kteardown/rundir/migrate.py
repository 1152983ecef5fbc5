"""Convert runs of older schemas while they are read; nothing is written.

Schema 1 (up to November 2026) kept neither the workloads nor the published figures, and its plan had no
points. ``schema1.json`` has the shipped workloads and published figures as they were at the end of schema 1.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from kteardown.errors import InputError
from kteardown.inputs.published import Posting
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.model.point import points_of
from kteardown.model.workload import Workload


def from_schema_1(
    experiment: Experiment, plan: Plan, folder: Path
) -> tuple[dict[str, Workload], Posting | None, Plan]:
    """Return workloads, published figures and plan of a run of schema 1.

    Raises InputError if it has a workload that was not shipped: what its reports say must not depend on a
    file outside of the run, which may have changed.
    """
    shipped = _schema_1()
    workloads: dict[str, Workload] = {}
    for name in (sweep.workload for sweep in experiment.workloads):
        if name not in shipped["workloads"]:
            raise InputError(
                f"{folder} (schema 1) does not have its workload {name!r}, which was not shipped",
                hint="use the version of kteardown that made the run, or run the experiment anew.",
            )
        workloads[name] = Workload.model_validate(shipped["workloads"][name])
    figures = shipped["published"].get(experiment.reference or "")
    published = Posting.model_validate(figures) if figures else None
    return workloads, published, plan.model_copy(update={"points": points_of(experiment, workloads)})


@cache
def _schema_1() -> dict[str, dict[str, Any]]:
    text = (files("kteardown.rundir") / "schema1.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found
