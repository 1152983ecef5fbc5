"""All that a report of a run is made of, as one value: what every format but the plain ones takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kteardown.inputs.published import Reference
from kteardown.model.result import Result
from kteardown.model.samples import Evidence
from kteardown.model.workload import Workload


@dataclass(frozen=True)
class Material:
    """A result with what it is to be read beside. ``name``: the run's id."""

    name: str
    result: Result
    workloads: Mapping[str, Workload]
    reference: Reference | None = None
    evidence: Evidence = field(default_factory=Evidence)
