"""``kteardown observe``: which problems a live machine has, and what they cost."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kteardown import spawn
from kteardown.catalogue.problems import find_problem, load_problems
from kteardown.cli import options
from kteardown.cli.rows import Fields
from kteardown.errors import InputError, LabError
from kteardown.visible import echo, on_one_line
from kteardown_observe.bundle import PINS, program
from kteardown_observe.calibrate import rate_of
from kteardown_observe.collector.main import seconds_of
from kteardown_observe.compare import comparison_text
from kteardown_observe.counts import MachineCounts, parse_counts, read_counts
from kteardown_observe.documents import document_of, openmetrics_of
from kteardown_observe.judge import Judgement, has_problem, judge
from kteardown_observe.limit_words import percent
from kteardown_observe.limits import CLOSE, find_limit
from kteardown_observe.page import markdown_of, text_of

_MOST_S = 60
"""The collector ends itself long before."""
_STDOUT = Path("-")


@dataclass(frozen=True)
class ObserveOutput:
    """What is printed and written."""

    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE|-")] = None
    markdown: Annotated[Path | None, typer.Option(metavar="FILE|-")] = None
    openmetrics: Annotated[Path | None, typer.Option(metavar="FILE|-")] = None


def observe(
    output: ObserveOutput,
    files: Annotated[list[Path] | None, typer.Argument(metavar="COUNTS")] = None,
    collector: Annotated[bool, typer.Option("--collector")] = False,
    pins: Annotated[bool, typer.Option("--pins")] = False,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="FILE")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate")] = False,
    watch: Annotated[str, typer.Option("--for", metavar="SECONDS")] = "",
    fail_on: Annotated[list[str] | None, typer.Option(metavar="NAME=COUNT|%")] = None,
) -> None:
    if collector:
        return echo(program(), nl=False)
    if pins:
        return echo(PINS.read_text(encoding="utf-8"), nl=False)
    gates = [_gate(text) for text in fail_on or ()]
    written = (output.json_file, output.markdown, output.openmetrics, keep)
    options.need_writable(*(path for path in written if path not in (None, _STDOUT)))
    paths = files or []
    if len(paths) > 2:
        raise InputError(
            "observe: more than two files", hint="name one file of counts, or two to compare."
        )
    if paths and (calibrate or keep or watch):
        raise InputError(
            f"{paths[0]}: --calibrate, --for and --keep are for the machine that is observed",
            hint="give them to the collector: python3 observe.py --calibrate --for 30s.",
        )
    judgements = [judge(read_counts(path)) for path in paths]
    if not paths:
        judgements = [judge(_collect(calibrate, _seconds(watch), keep))]
    if len(judgements) == 2:
        _need_no_output(output, gates)
        return echo(comparison_text(*judgements), nl=False)
    _print(judgements[0], output)
    _end(judgements[0], gates)


def _need_no_output(output: ObserveOutput, gates: Sequence[tuple[str, int]]) -> None:
    if output != ObserveOutput() or gates:
        raise InputError(
            "observe: a comparison of two machines is only printed",
            hint="leave --json, --markdown, --openmetrics and --fail-on out, or name one file.",
        )


def _gate(text: str) -> tuple[str, int]:
    """Return the problem and the count of ``--fail-on``, or the limit of the kernel and the
    percents. Raises InputError."""
    name, _, number = text.partition("=")
    limit = find_limit(name)
    digits = number.removesuffix("%") if limit else number
    least = f"{100 * CLOSE:.0f}%" if limit else find_problem(name).least
    if not digits.isascii() or not digits.isdigit() or (limit and digits == number):
        what = "share in percent behind the limit" if limit else "count behind the problem"
        raise InputError(
            f"--fail-on {text}: there is no {what}", hint=f"write --fail-on {name}={least}."
        )
    return name, int(digits)


def _seconds(text: str) -> float:
    """Return the seconds of ``--for``; 0 if it is not given. Raises InputError."""
    if not text:
        return 0
    try:
        return seconds_of(text)
    except ValueError:
        raise InputError(
            f"--for {text}: is no time of at most one hour", hint="write --for 30s or --for 2m."
        ) from None


def _collect(calibrate: bool, seconds: float, keep: Path | None) -> MachineCounts:
    """Return the counts of this machine, from the collector in a process of its own.

    ``seconds``: watch it for so long, too. Raises LabError.
    """
    reporter = options.reporter(verbose=False, quiet=False)
    command = spawn.python("-I", "-S", "-", *["--calibrate"] * calibrate)
    command += ["--for", f"{seconds:g}"] if seconds else []
    doing = f"Watching this machine for {seconds:g} s" if seconds else "Reading /proc and /sys"
    with reporter.task(doing):
        try:
            done = spawn.run(
                command,
                input=program().encode(),
                capture_output=True,
                timeout=_MOST_S + 2 * seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(
                "the collector did not end",
                hint="run it alone: kteardown observe --collector | python3 -.",
            ) from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise LabError(
            f"the collector failed: {on_one_line(last[0]) if last else 'it printed nothing'}",
            hint="run it alone: kteardown observe --collector | python3 -.",
        )
    if keep:
        options.write_text(keep, done.stdout.decode())
    return parse_counts(done.stdout, "the collector's output")


def _print(judgement: Judgement, output: ObserveOutput) -> None:
    rate = rate_of(judgement.counts)
    texts = {
        "json_file": lambda: json.dumps(document_of(judgement, rate), indent=1) + "\n",
        "markdown": lambda: markdown_of(judgement, rate),
        "openmetrics": lambda: openmetrics_of(judgement),
    }
    places = {name: getattr(output, name) for name in texts}
    if list(places.values()).count(_STDOUT) > 1:
        raise InputError(
            "observe: two formats are to be printed", hint="write all but one of them to files."
        )
    if _STDOUT not in places.values():
        echo(text_of(judgement, rate), nl=False)
    for name, place in places.items():
        if place == _STDOUT:
            echo(texts[name](), nl=False)
        elif place:
            _replace_text(place, texts[name]())


def _replace_text(place: Path, text: str) -> None:
    """Write a file that others may read at any time: they see it whole. Raises InputError,
    LabError."""
    if place.exists() and not place.is_file():
        return options.write_text(place, text)
    new = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        options.write_text(new, text)
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)


def _end(judgement: Judgement, gates: Sequence[tuple[str, int]]) -> None:
    """End with 1 if a problem has as many objects as its gate says, or may have, or if so much of
    a limit is used."""
    reached = []
    for name, most in gates:
        text = _limit_reached if find_limit(name) else _problem_reached
        reached += [f"{name}: {why}" for why in [text(judgement, name, most)] if why]
    for line in reached:
        echo(f"--fail-on {on_one_line(line)}", err=True)
    if reached:
        raise typer.Exit(1)


def _problem_reached(judgement: Judgement, name: str, most: int) -> str:
    problem = find_problem(name)
    if has_problem(problem, judgement.counts, most):
        number = judgement.counts.counts[problem.count].amount(problem.of)
        return f"{number:,}, and the limit is {most:,}"
    reasons = {unknown.name: reason for unknown, reason in judgement.unknown}
    return f"not counted, or only a part: {reasons[name]}" if name in reasons else ""


def _limit_reached(judgement: Judgement, name: str, most: int) -> str:
    for used in judgement.limits.used:
        if used.limit.name == name and 100 * used.use.number >= most * used.use.bound:
            return f"{percent(used)}, and the limit is {most}%"
    reasons = {unknown.name: reason for unknown, reason in judgement.limits.unknown}
    return f"not read, or only a part: {reasons[name]}" if name in reasons else ""


def list_problems(_: Path | None = None) -> list[Fields]:
    """Return the rows of ``kteardown list problems``."""
    return [
        {
            "problem": problem.name,
            "counts": problem.title,
            "from": problem.least,
            "cost": problem.event,
            "law": problem.law or f"hunt: {problem.kind}, {problem.way}",
        }
        for problem in load_problems()
    ]
