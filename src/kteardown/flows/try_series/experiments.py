"""The experiment of each workload that is run for a series."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.errors import (
    InputError,
)
from kteardown.flows.try_series.choose import small_point
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides, on_clocks
from kteardown.model.experiment import Experiment
from kteardown.report.try_page import MeasuredWorkload
from kteardown.run.resolve import experiment_for
from kteardown.script.describe import ENDINGS


def scripts_in(words: Sequence[str]) -> list[str]:
    """Return ``words`` with each folder replaced by the scripts and C files in it. Raises
    InputError."""
    scripts: list[str] = []
    for word in words:
        folder = Path(word).expanduser()
        files = (
            [
                str(path)
                for path in sorted(folder.iterdir())
                if path.suffix in ENDINGS and path.is_file()
            ]
            if folder.is_dir()
            else [word]
        )
        if not files:
            raise InputError(
                f"--script {word}: has no script",
                hint=f"name a folder with files {', '.join(ENDINGS)}.",
            )
        scripts += files
    return scripts


def experiments_of(
    choice: MeasuredWorkload, source: str, asked: Overrides
) -> tuple[Experiment, ...]:
    """Return the experiment of a workload of kteardown's, once for each clock."""
    experiment = experiment_for(choice.workload, source)
    (sweep,) = experiment.workloads
    chosen = sweep.model_copy(update={"metrics": choice.metrics})
    experiment = with_fewer_sizes(experiment.model_copy(update={"workloads": (chosen,)}))
    assignments = asked.assignments or []
    names = {assignment.partition("=")[0] for assignment in assignments}
    needed = [
        setting
        for setting in needed_settings(choice, experiment)
        if setting.partition("=")[0] not in names
    ]
    # The clock may be that of the workload, which the user does not know beforehand.
    on_clock = asked.only_of(experiment.design.clock) if asked.clock is None else asked
    return on_clocks(experiment, replace(on_clock, assignments=[*needed, *assignments]))


def with_fewer_sizes(experiment: Experiment) -> Experiment:
    """Return an experiment of one workload whose quick design has as few sizes as a growth law
    needs."""
    (sweep,) = experiment.workloads
    law = load_workload(sweep.workload, experiment.folder).law
    quick = experiment.quick
    sizes = quick.params.get(law, sweep.params.get(law, ()))
    few = tuple(dict.fromkeys(sizes[n] for n in (0, (len(sizes) - 1) // 2, -1) if sizes))
    params = {**quick.params, law: few} if few else quick.params
    return experiment.model_copy(update={"quick": quick.model_copy(update={"params": params})})


def needed_settings(choice: MeasuredWorkload, experiment: Experiment) -> list[str]:
    """Return the settings with which the change is executed and that ``experiment`` does not
    have."""
    swept = {
        name: values for sweep in experiment.workloads for name, values in sweep.params.items()
    }
    usual = small_point(choice.workload)
    settings = []
    for name, value in choice.params.items():
        values = swept.get(name, ())
        able = [
            swept_value for swept_value in values if swept_value in choice.choices.get(name, ())
        ]
        if value != usual.get(name) and value not in values:
            settings.append(f"{name}={value}")
        elif isinstance(value, str) and 0 < len(able) < len(values):
            settings.append(f"{name}={','.join(map(str, able))}")
    return settings
