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
    own = {name: (choice.params or points[0])[name] for name in workload.parameters}
    # The size stays small. Choices, and what else the user has set, are counted as they are
    # measured.
    given = {one.partition("=")[0] for one in asked.assignments or ()} - {workload.law}
    given |= {name for name, value in own.items() if isinstance(value, str)}
    other = [n for n in given & own.keys() if all(p[n] != own[n] for p in points)]
    own |= {name: small(name, points[0][name], workload) for name in other}
    seeds = min(experiment.design.seeds, _SEEDS)
    try:
        found = executed(
            kernels,
            workload,
            own,
            changed,
            reporter,
            folder=experiment.folder,
            seeds=seeds,
            machine=machine,
        )
    except (GuestError, LabError) as error:
        return Exercise((f"{choice.workload}: not counted: {error.message}",))
    # Without the code of both kernels, nothing says whether a changed macro or structure is
    # executed.
    known = (
        found.exercised
        or build.functions_of(kernels[-1]) is not None
        or not may_change_users(changed)
    )
    exercised = found.exercised if known and found.functions else None
    sentences = charts.written("executed", found, SHOWN, share(found.share))
    return Exercise(tuple(sentences), exercised, found.share, found.cost)
