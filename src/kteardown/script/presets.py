"""Metrics of well-known benchmarks, and the checks of programs that print TAP.

What a benchmark prints is often coarse: a fixed amount of work and the time of the whole script need no
preset.
"""

import re
import shlex
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from kteardown.model.record import OutputLine
from kteardown.model.workload import Metric
from kteardown.script.extract import LINE_CHARACTERS, LINES, metric_of, parse_reading, values

PRESETS: dict[str, dict[str, list[str]]] = tomllib.loads(
    files("kteardown.script").joinpath("presets.toml").read_text(encoding="utf-8")
)
"""By program and name of a metric, the forms of ``Metric.read``; the first with a value is used."""

_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)


def preset_of(text: str) -> str:
    """Return the key in ``PRESETS`` of the first line of ``text`` that runs such a program; empty: none.

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
    # The programs of will-it-scale are called page_fault1_processes, page_fault1_threads, and so on.
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


_RESULT = re.compile(r"(not )?ok\b[ \t]*([0-9]*)(.*)", re.DOTALL)
_ALLOWED = re.compile(r"#[ \t]*(?:skip|todo|xfail)", re.IGNORECASE)
_PLAN = re.compile(r"1\.\.([0-9]{1,6})[ \t]*(?:#.*)?", re.DOTALL)
_TAP = re.compile(r"K?TAP version [0-9]+")


def tap_failures(output: Sequence[OutputLine]) -> list[str]:
    """Return what failed of a program that prints TAP, one line each; empty if all passed or it is not TAP.

    It is TAP if it has a version or a plan, ``TAP version 13`` or ``1..3``. Results that are skipped, or
    expected to fail, pass. So do nested results, which are indented or in comments: the outer result counts.
    Results that a plan has and that were not printed are a failure, too.
    """
    texts = [line.text[:LINE_CHARACTERS].rstrip() for line in output[:LINES] if line.source == "script"]
    plans = [int(plan[1]) for text in texts if (plan := _PLAN.fullmatch(text))]
    if not plans and not any(_TAP.match(text) for text in texts):
        return []
    results = [(text, found) for text in texts if (found := _RESULT.fullmatch(text))]
    failures = [text for text, found in results if found[1] and not _ALLOWED.search(found[3])]
    failures += [text for text in texts if text.startswith("Bail out!")]
    if len(results) < sum(plans):
        failures.append(f"{sum(plans)} results were planned, and {len(results)} printed")
    return failures
