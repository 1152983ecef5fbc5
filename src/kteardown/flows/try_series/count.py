"""Count in guests how often the lines that a series changes are executed, and what they cost."""

from collections.abc import Sequence

from kteardown.coverage.changed import (
    ChangedFunction,
    may_change_users,
)
from kteardown.coverage.executed import executed
from kteardown.coverage.maps import small
from kteardown.errors import (
    GuestError,
    LabError,
)
from kteardown.flows.try_series.choose import SHOWN
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.model.experiment import Experiment
from kteardown.model.point import points_of as points_of_experiment
from kteardown.progress import Reporter
from kteardown.report import charts
from kteardown.report.formatting import share
from kteardown.report.try_page import Exercise, MeasuredWorkload
from kteardown.vm.machine import Machine

_SEEDS = 3
"""With so many seeds the executions of a change are counted, or with fewer, if the design has
fewer."""


def count_executions(
    choice: MeasuredWorkload,
    kernels: Sequence[KernelImage],
    experiment: Experiment,
    asked: Overrides,
    changed: Sequence[ChangedFunction],
    reporter: Reporter,
    machine: Machine | None = None,
) -> Exercise:
    """Boot base and the variant and count how often the changed lines are executed, and what they
    cost."""
    workload = load_workload(experiment.workloads[0].workload, experiment.folder)
    points = [point.params for point in points_of_experiment(experiment, {workload.name: workload})]
    params = {name: (choice.params or points[0])[name] for name in workload.parameters}
    # The size stays small. Choices, and what else the user has set, are counted as they are
    # measured.
    set_names = {assignment.partition("=")[0] for assignment in asked.assignments or ()} - {
        workload.law
    }
    set_names |= {name for name, value in params.items() if isinstance(value, str)}
    elsewhere = [n for n in set_names & params.keys() if all(p[n] != params[n] for p in points)]
    params |= {name: small(name, points[0][name], workload) for name in elsewhere}
    seeds = min(experiment.design.seeds, _SEEDS)
    swept = {name: points[0][name] for name in experiment.machine.swept}
    try:
        execution = executed(
            kernels,
            workload,
            params,
            changed,
            reporter,
            folder=experiment.folder,
            spec=experiment.machine.model_copy(update=swept),
            seeds=seeds,
            machine=machine,
        )
    except (GuestError, LabError) as error:
        return Exercise((f"{choice.workload}: not counted: {error.message}",))
    # Without the code of both kernels, nothing says whether a changed macro or structure is
    # executed.
    is_certain = (
        execution.exercised
        or build.functions_of(kernels[-1]) is not None
        or not may_change_users(changed)
    )
    exercised = execution.exercised if is_certain and execution.functions else None
    sentences = charts.written("executed", execution, SHOWN, share(execution.share))
    return Exercise(tuple(sentences), exercised, execution.share, execution.cost, execution.events)
