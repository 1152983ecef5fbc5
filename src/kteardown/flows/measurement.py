"""Measure one kernel, or several, with a script and without a patch."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.errors import InputError
from kteardown.flows.scripts import experiments_on, is_own
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.options import Overrides, Scripted
from kteardown.model.experiment import Experiment
from kteardown.progress import Reporter
from kteardown.report.forecast_text import duration
from kteardown.run.create import plan_boots
from kteardown.run.forecast import forecast_of
from kteardown.run.resolve import resolve
from kteardown.script.beside import read_file

DEFAULT_SOURCE = "debian-image:6.12"
"""A distribution's own kernel, of which nothing is built."""
_LARGEST = (400, 200, 100, 50)
"""Of N, if the script uses it and the user gives no values: the first for which there is time."""
_HALVINGS = 5
"""Six sizes are the fewest that show an exponent."""
_BUDGET_S = 100.0
"""For sizes that the user did not choose; the first figures and the profile need as much again."""
_USES_N = re.compile(r"\$(?:N\b|\{N\b)|getenv\(\"N\"\)|environ(?:\.get\(|\[)['\"]N['\"]")
_SEEDS = 3
"""Boots of each size: without a second kernel nothing has to be distinguished from it."""


def measured(
    workload: str,
    sources: Sequence[str],
    asked: Overrides,
    scripted: Scripted,
    reporter: Reporter,
) -> tuple[Experiment, ...]:
    """Return the experiment that measures ``workload`` on the first of ``sources``, beside the
    others, once for each clock.

    Raises InputError, and as ``experiments_on``.
    """
    if asked.ablate or asked.layout_twin:
        raise InputError(
            "--ablate and --layout-twin are for a patch, and `measure` has none",
            hint="leave the option out, or compare a patch: kteardown compare --help.",
        )
    first, *others = sources or (DEFAULT_SOURCE,)
    # The contention clock says by itself where lines move.
    asked = replace(asked, variant=others, profile=asked.clock != "contention")
    chosen = _needs_sizes(workload, asked)
    if chosen:
        sizes = f"N={','.join(map(str, _sizes(_LARGEST[0])))}"
        reporter.note(f"{workload} uses N, which --set does not give: measuring {sizes}")
        asked = replace(asked, assignments=[*(asked.assignments or ()), sizes])
    experiments = experiments_on(workload, first, asked, scripted, reporter)
    alone = tuple(_alone(experiment, asked, others) for experiment in experiments)
    return _in_time(alone, reporter) if chosen else alone


def _sizes(largest: int) -> tuple[int, ...]:
    return tuple(largest >> halving for halving in range(_HALVINGS, -1, -1))


def _in_time(experiments: tuple[Experiment, ...], reporter: Reporter) -> tuple[Experiment, ...]:
    """Return the experiments with sizes for which a minute or two are enough, the same on every
    clock: who wants larger ones chooses them."""
    for largest in _LARGEST:
        sized = tuple(_with_sizes(experiment, _sizes(largest)) for experiment in experiments)
        seconds = max(map(_forecast_s, sized))
        if seconds <= _BUDGET_S:
            break
        if largest != _LARGEST[-1]:
            reporter.note(f"N up to {largest} takes {duration(seconds)} (--set N=...): halving it")
    return sized


def _with_sizes(experiment: Experiment, sizes: tuple[int, ...]) -> Experiment:
    (sweep,) = experiment.workloads
    params = {**sweep.params, "N": sizes}
    return experiment.model_copy(
        update={"workloads": (sweep.model_copy(update={"params": params}),)}
    )


def _forecast_s(experiment: Experiment) -> float:
    """Return how long the boots will take on this host, by the rehearsal."""
    resolved = resolve(experiment)
    planned = plan_boots(resolved)
    return forecast_of(experiment, resolved.workloads, planned, None).seconds or 0.0


def text_of(workload: str) -> str:
    """Return the text of a script or C file, also if arguments follow it; empty if ``workload`` is
    no file of text."""
    try:
        words = [workload, *shlex.split(workload)[:1]]
        path = next((p for p in map(_path_of, words) if p.is_file()), None)
        if path is None:
            return ""
        content, _ = read_file(path)
        return content.decode()
    except (InputError, ValueError):
        return ""


def _path_of(word: str) -> Path:
    return Path(word).expanduser()


def _needs_sizes(workload: str, asked: Overrides) -> bool:
    text = text_of(workload) if is_own(workload) else ""
    return bool(_USES_N.search(text)) and "N" not in parse_assignments(asked.assignments or ())


def _alone(experiment: Experiment, asked: Overrides, others: Sequence[str]) -> Experiment:
    """Return the experiment under the name of what it does."""
    (sweep,) = experiment.workloads
    design = experiment.design
    if design.clock != "wall" and not (asked.seeds or asked.quick or asked.until):
        design = design.model_copy(update={"seeds": min(design.seeds, _SEEDS)})
    kernels = " and ".join((experiment.source, *others))
    return experiment.model_copy(
        update={
            "name": f"measure-{sweep.workload.replace('_', '-')}",
            "question": f"What does {sweep.workload} cost on {kernels}, and how does it grow?",
            "design": design,
        }
    )
