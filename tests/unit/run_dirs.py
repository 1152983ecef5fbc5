"""Run directories as kteardown writes them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.inputs.load import load_workloads
from kteardown.inputs.published import load_posting
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.run.make_plan import make_plan
from kteardown.rundir import snapshot
from kteardown.rundir.directory import RunDir


def fill(
    run: RunDir,
    experiment: Experiment,
    variants: Sequence[str],
    kernels: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, Any],
) -> Plan:
    """Write all files of a new run directory, and return its plan."""
    workloads = load_workloads(experiment)
    plan = make_plan(experiment, workloads, variants)
    snapshot.write_inputs(run, workloads, load_posting(experiment.reference), plan)
    run.save(run.kernels_file, json.dumps(dict(kernels)))
    run.save(run.environment_file, json.dumps(dict(environment)))
    snapshot.mark_whole(run, experiment)
    return plan
