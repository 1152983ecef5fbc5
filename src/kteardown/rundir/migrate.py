"""Convert runs of older schemas while they are read; nothing is written.

Schema 1 (up to November 2026) kept neither the workloads nor the published figures, and its plan had no
points. ``schema1.json`` has the shipped workloads and published figures as they were at the end of schema 1.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.inputs.published import Posting
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.model.point import points_of
from kteardown.model.workload import Workload

OWN_WORKLOAD_NOTE = "the run directory does not have its workload {}: it is read from {} in its present state"


def from_schema_1(
    experiment: Experiment, plan: Plan
) -> tuple[dict[str, Workload], Posting | None, Plan, tuple[str, ...]]:
    """Return workloads, published figures, plan and notes of a run of schema 1.

    Raises InputError if a workload that is not shipped can no longer be read.
    """
    shipped = _schema_1()
    workloads: dict[str, Workload] = {}
    notes = []
    for sweep in experiment.workloads:
        name = sweep.workload
        if name in shipped["workloads"]:
            workloads[name] = Workload.model_validate(shipped["workloads"][name])
            continue
        try:
            workloads[name] = load_workload(name, experiment.folder)
        except InputError as error:
            raise InputError(
                f"the run directory (schema 1) does not have its workload {name!r}: {error.message}",
                hint="restore the file of the workload, or use the version of kteardown that made the run.",
            ) from error
        notes.append(OWN_WORKLOAD_NOTE.format(name, experiment.folder))
    figures = shipped["published"].get(experiment.reference or "")
    published = Posting.model_validate(figures) if figures else None
    return (
        workloads,
        published,
        plan.model_copy(update={"points": points_of(experiment, workloads)}),
        tuple(notes),
    )


@cache
def _schema_1() -> dict[str, dict[str, Any]]:
    text = (files("kteardown.rundir") / "schema1.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found
