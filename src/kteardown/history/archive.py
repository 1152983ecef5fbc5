"""Read the history from the directories of all runs.

Unlike ``pipeline``, this module builds, boots and writes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from kteardown.errors import InputError, did_you_mean
from kteardown.history.lines import History, Line, Order, RunFacts, history
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.record import ParamValue
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.sql.boot_figures import BootFigure, boot_figures

_NAMED = 6
LEAST = 0.02
"""The margin of the verdict "same", unless the user gives another one."""


@dataclass(frozen=True)
class HistoryFilter:
    """The filter for lines of the history.

    None or empty matches everything; ``points`` has values by parameter.
    """

    experiment: str | None = None
    workload: str | None = None
    metric: str | None = None
    kernel: str | None = None
    clock: Clock | None = None
    points: Mapping[str, Sequence[ParamValue]] = field(default_factory=dict)

    def of_run(self, experiment: Experiment) -> bool:
        """Return whether a run can contain matching lines."""
        return self.experiment in (None, experiment.name) and self.clock in (None, experiment.design.clock)

    def of_figure(self, figure: BootFigure) -> bool:
        """Return whether a figure can be in a matching line."""
        params = dict(figure.params)
        return (
            self.workload in (None, figure.workload)
            and self.metric in (None, figure.metric)
            and all(params.get(name) in values for name, values in self.points.items())
        )

    def of_line(self, line: Line) -> bool:
        """Return whether a line matches."""
        return (
            self.experiment in (None, line.experiment)
            and self.clock in (None, line.clock)
            and self.workload in (None, line.workload)
            and self.metric in (None, line.metric)
            and self.kernel in (None, line.kernel)
            and all(line.point.get(name) in values for name, values in self.points.items())
        )


def history_of(
    runs: Sequence[RunDir], wanted: HistoryFilter, *, order: Order = "release", least: float = LEAST
) -> History:
    """Return the matching lines of ``runs``. Runs that cannot be read are listed in ``unread``."""
    known: dict[str, RunFacts] = {}
    unread: list[str] = []
    for run in runs:
        try:
            snapshot = load(run)
            if wanted.of_run(snapshot.experiment):
                known[run.name] = _facts(snapshot)
        except (OSError, ValueError, ValidationError, InputError):
            unread.append(run.name)
    figures, skipped = boot_figures([run for run in runs if run.name in known])
    found = history(filter(wanted.of_figure, figures), known, order=order, least=least)
    lines = tuple(filter(wanted.of_line, found.lines))
    return found.model_copy(update={"lines": lines, "unread": (*unread, *skipped)})


def nothing_found(everything: Sequence[Line], wanted: HistoryFilter) -> InputError:
    """Return an error with the first condition of ``wanted`` that no line meets, and possible values."""
    left = list(everything)
    for name in ("experiment", "clock", "workload", "metric", "kernel"):
        word = getattr(wanted, name)
        has = dict.fromkeys(str(getattr(line, name)) for line in left)
        left = [line for line in left if word in (None, getattr(line, name))]
        if not left:
            listed = ", ".join(has) or "none"
            return InputError(
                f"no matching run has the {name} {word!r}{did_you_mean(word, has)}",
                hint=f"choose one that the runs have: {listed}.",
            )
    points = list(dict.fromkeys(" ".join(f"{n}={v}" for n, v in line.point.items()) for line in everything))
    more = f", and {len(points) - _NAMED} more" if len(points) > _NAMED else ""
    return InputError(
        "no run has figures at that point",
        hint=f"choose one that the runs have: {'; '.join(points[:_NAMED])}{more}.",
    )


def _facts(snapshot: Snapshot) -> RunFacts:
    return RunFacts(
        experiment=snapshot.experiment.name,
        clock=snapshot.experiment.design.clock,
        kernels=dict(snapshot.kernels),
        machine=snapshot.run.environment()["machine"],
        metrics={
            (name, metric): spec
            for name, workload in snapshot.workloads.items()
            for metric, spec in workload.metrics.items()
        },
    )
