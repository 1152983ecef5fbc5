"""Metrics of well-known programs, by the name of the program."""

import re
import shlex
from collections.abc import Sequence

from kteardown.model.script_records import OutputLine
from kteardown.model.workload import Metric
from kteardown.paths import shipped_table
from kteardown.script.extract import metric_of, parse_reading, values

PRESETS: dict[str, dict[str, list[str]]] = shipped_table("script/presets")
"""By program and name of a metric, the forms of ``Metric.read``; the first with a value is used."""
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)


def preset_of(text: str) -> str:
    """Return the key in ``PRESETS`` of the first line of ``text`` that runs such a program; empty:
    none.

    The program is the first word after assignments, without its folder.
    """
    return next(filter(None, map(_preset, text.splitlines())), "")


def _preset(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:  # A quotation that does not end.
        words = command.split()
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name.startswith("perf") and words[1:2] == ["bench"]:
        return "perf bench"
    # The programs of will-it-scale are called page_fault1_processes, page_fault1_threads, and so
    # on.
    if name.endswith(("_processes", "_threads")):
        return "will-it-scale"
    return name if name in PRESETS else ""


def preset_metrics(program: str, output: Sequence[OutputLine]) -> dict[str, Metric]:
    """Return the metrics of a preset that have a value in ``output``, by key.

    Raises KeyError if there is no such preset, and what ``extract.values`` raises.
    """
    metrics: dict[str, Metric] = {}
    for name, spec in ((name, spec) for name, forms in PRESETS[program].items() for spec in forms):
        key, metric = metric_of(name, spec)
        if key not in metrics and values(parse_reading(metric.read), metric.unit, output, []):
            metrics[key] = metric
    return metrics
