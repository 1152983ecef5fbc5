"""Measure one kernel, or several, with a script and without a patch."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.errors import InputError
from kteardown.flows.scripts import experiments_on, is_own
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.options import Overrides, Scripted
from kteardown.model.experiment import Experiment
from kteardown.progress import Reporter
from kteardown.script.beside import read_file

DEFAULT_SOURCE = "debian-image:6.12"
"""A distribution's own kernel, of which nothing is built."""
_SIZES = "N=50,100,200,400"
"""If the script uses N, and the user gives no values: with four, a power is told from a line."""
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
    asked = replace(asked, variant=others, profile=True)
    if _needs_sizes(workload, asked):
        reporter.note(f"{workload} uses N, which --set does not give: measuring {_SIZES}")
        asked = replace(asked, assignments=[*(asked.assignments or ()), _SIZES])
    experiments = experiments_on(workload, first, asked, scripted, reporter)
    return tuple(_alone(experiment, asked, others) for experiment in experiments)


def text_of(workload: str) -> str:
    """Return the text of a script or C file; empty if ``workload`` is no file of text."""
    path = Path(workload).expanduser()
    if not path.is_file():
        return ""
    try:
        content, _ = read_file(path)
        return content.decode()
    except (InputError, ValueError):
        return ""


def _needs_sizes(workload: str, asked: Overrides) -> bool:
    text = text_of(workload) if is_own(workload) else ""
    return bool(_USES_N.search(text)) and "N" not in parse_assignments(asked.assignments or ())


def _alone(experiment: Experiment, asked: Overrides, others: Sequence[str]) -> Experiment:
    """Return the experiment under the name of what it does."""
    (sweep,) = experiment.workloads
    design = experiment.design
    if design.clock == "instructions" and not (asked.seeds or asked.quick or asked.until):
        design = design.model_copy(update={"seeds": min(design.seeds, _SEEDS)})
    kernels = " and ".join((experiment.source, *others))
    return experiment.model_copy(
        update={
            "name": f"measure-{sweep.workload.replace('_', '-')}",
            "question": f"What does {sweep.workload} cost on {kernels}, and how does it grow?",
            "design": design,
        }
    )
