"""The smallest change that a workload shows."""

import json
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

from kteardown.analysis.decidable import decidable
from kteardown.coverage.maps import repeated
from kteardown.coverage.propose import Proposal
from kteardown.inputs.load import load_workload, load_workloads
from kteardown.inputs.options import Designed, Overrides, on_clocks
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Spread
from kteardown.model.point import points_of as points_of_experiment
from kteardown.paths import data_dir
from kteardown.run.create import spreads
from kteardown.run.resolve import experiment_for
from kteardown.rundir.find import all_runs

_FEW = 4
"""So many objects, or less, do not show that a function is executed for each."""


def smallest_shown(proposal: Proposal, source: str, designed: Designed) -> dict[str, float]:
    """Return the smallest change that each metric of a workload shows with this design."""
    experiment = experiment_for(proposal.workload, source)
    # What is asked of parameters may be for another workload.
    asked = replace(Overrides.of(designed), assignments=None, predict=None)
    on_clock = asked.only_of(experiment.design.clock) if asked.clock is None else asked
    allocates = any("alloc" in function.name for function in proposal.about)
    each_object = allocates and for_each_object(proposal, "alloc")
    sizes: dict[str, float] = {}
    for clock_experiment in on_clocks(experiment, on_clock):
        for name, size in smallest_changes(clock_experiment, each_object=each_object).items():
            sizes[name] = min(size, sizes.get(name, size))
    return sizes


def smallest_changes(experiment: Experiment, *, each_object: bool = False) -> dict[str, float]:
    """Return the smallest change, 0.1 for 10%, that each headline metric of ``experiment`` shows.

    It shows it four times in five, by the spreads of the shipped results on the instruction clock,
    or else of the newest runs on this host, whose few boots can agree by chance; a metric whose
    spread is not known is left out. A smaller one than the margin of "same" has no other verdict.
    It is 0 if memory is measured and a change of its allocation is executed for ``each_object``: a
    few instructions decide what it holds.
    """
    margin = experiment.design.same_within
    workloads = load_workloads(experiment)
    shipped = _shipped() if experiment.design.clock == "instructions" else {}
    spreads_by_metric = {**spreads(experiment, all_runs()), **shipped}
    power = decidable(
        experiment, workloads, 1, points_of_experiment(experiment, workloads), spreads_by_metric
    )
    rows = [row for row in power.rows if row.run and row.metric is not None]
    return {
        row.metric_name: 0.0
        if each_object and workloads[row.workload].metrics[row.metric_name].unit == "kb"
        else max(row.metric or 0, margin)
        for row in rows
    }


@cache
def _shipped() -> dict[tuple[str, str], Spread]:
    """Return the spreads of the shipped results by workload and metric (``scripts/spreads.py``)."""
    rows = json.loads((data_dir("coverage") / "spreads.json").read_text())
    return {
        (workload, metric): Spread(of_all, of_point, "results")
        for workload, metric, of_all, of_point in rows
    }


def for_each_object(proposal: Proposal, word: str = "") -> bool:
    """Return whether a changed function, with ``word`` in its name, is executed as often as there
    are objects at the point that was counted.

    Few objects say nothing: what is executed at all is executed for each of two.
    """
    workload = load_workload(proposal.workload, str(Path.cwd()))
    names = [workload.law] if workload.law else repeated(workload)
    counts = [proposal.params.get(name) for name in names]
    objects = prod(count for count in counts if isinstance(count, int))
    calls = [
        counts.calls for function, counts in proposal.functions.items() if word in function.name
    ]
    return _FEW < objects <= max(calls, default=0)
