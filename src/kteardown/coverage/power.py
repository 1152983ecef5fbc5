"""How small a change of a workload's metrics can be seen, before it is measured."""

import json
from functools import cache

from kteardown.analysis.decidable import decidable
from kteardown.inputs.load import load_workloads
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Spread
from kteardown.model.point import points_of
from kteardown.paths import data_dir
from kteardown.run.create import spreads
from kteardown.rundir.find import all_runs


def smallest_changes(experiment: Experiment, *, each_object: bool = False) -> dict[str, float]:
    """Return the smallest change, 0.1 for 10%, that each headline metric of ``experiment`` shows.

    It shows it four times in five, by the spreads of the newest runs on this host or, on the instruction
    clock, of the shipped results; a metric whose spread is not known is left out. A smaller one than the
    margin of "same" has no other verdict. It is 0 if memory is measured and a change of its allocation is
    executed for ``each_object``: a few instructions decide how much an object holds.
    """
    margin = experiment.design.same_within
    workloads = load_workloads(experiment)
    shipped = _shipped() if experiment.design.clock == "instructions" else {}
    known = {**shipped, **spreads(experiment, all_runs())}
    found = decidable(experiment, workloads, 1, points_of(experiment, workloads), known)
    rows = [row for row in found.rows if row.run and row.metric is not None]
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
    return {(one, metric): Spread(of_all, of_point, "results") for one, metric, of_all, of_point in rows}
