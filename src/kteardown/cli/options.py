"""Options that several verbs share, and what they become.

A verb takes them as one parameter a group, annotated with the group's class; ``grouped`` makes the
signature that the command line reads, in which every field of the group is an option.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from kteardown.cli import complete
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError, LabError
from kteardown.inputs.override import Overrides, apply, parse_seconds
from kteardown.inputs.sweep_syntax import parse_assignments
from kteardown.model.experiment import Experiment

_WHAT, _HOW, _OUT = "What is compared", "How it is measured", "How it runs and what comes out"


class ClockChoice(StrEnum):
    """The two clocks."""

    instructions = "instructions"
    wall = "wall"


class ArchChoice(StrEnum):
    """What guests can be."""

    x86_64 = "x86_64"
    arm64 = "arm64"


class FailOn(StrEnum):
    """Verdicts that can be a gate."""

    worse = "worse"
    inconclusive = "inconclusive"


ExperimentArg = Annotated[
    str,
    typer.Argument(
        help="An experiment (`kteardown list experiments`) or a path to a .toml file.",
        autocompletion=complete.experiments,
    ),
]
RunArg = Annotated[
    str,
    typer.Argument(help="A run's id or its beginning, its path, or `last`.", autocompletion=complete.runs),
]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show the commands that are run.", rich_help_panel=_OUT)
]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on", help="Exit with 1 where a headline metric has this verdict.", rich_help_panel=_OUT
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="No progress; errors and the result only.", rich_help_panel=_OUT),
]


@dataclass(frozen=True)
class Parts:
    """Which part of an experiment, on which source."""

    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE or debian-image:6.12.",
            autocompletion=complete.sources,
            rich_help_panel=_WHAT,
        ),
    ] = None
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            help="Only this variant: a series, its first patches (NAME@2), all but one of them (NAME@-2), "
            "or a source. Repeatable.",
            autocompletion=complete.series_and_sources,
            rich_help_panel=_WHAT,
        ),
    ] = None
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            help="Only this workload of the experiment. Repeatable.",
            autocompletion=complete.workloads,
            rich_help_panel=_WHAT,
        ),
    ] = None


@dataclass(frozen=True)
class Kernels:
    """What is built beside base and the variants, and for which architecture."""

    arch: Annotated[
        ArchChoice | None, typer.Option("--arch", help="The guest's architecture.", rich_help_panel=_WHAT)
    ] = None
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Of every series of several patches also each prefix, and each patch left out, where that "
            "applies and builds: how much of the whole does each patch carry?",
            rich_help_panel=_WHAT,
        ),
    ] = False
    layout_twin: Annotated[
        bool,
        typer.Option(
            "--layout-twin",
            help="Wall clock: boot base with a never-called function in the files that the series touch, in "
            "every block. Without this it is booted afterwards, where a claim below 10% needs it.",
            rich_help_panel=_WHAT,
        ),
    ] = False


@dataclass(frozen=True)
class Designed:
    """How often, at which points, and in which guests."""

    clock: Annotated[
        ClockChoice | None,
        typer.Option(
            "--clock",
            help="instructions: exact instruction counts, the same on every run and host. "
            "wall: real time, with interleaved boots and an A/A control.",
            rich_help_panel=_HOW,
        ),
    ] = None
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer boots and points: an honest answer of lower power, in minutes.",
            rich_help_panel=_HOW,
        ),
    ] = False
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Values of a parameter: zombies=0,3000 or zombies=0:30000:3000. Repeatable.",
            autocompletion=complete.assignments,
            rich_help_panel=_HOW,
        ),
    ] = None
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            help="Seeds, a boot of each kernel each (instruction clock).",
            rich_help_panel=_HOW,
        ),
    ] = None
    boots: Annotated[
        int | None,
        typer.Option("--boots", min=1, help="Boots of each kernel (wall clock).", rich_help_panel=_HOW),
    ] = None
    repetitions: Annotated[
        int | None,
        typer.Option(
            "--repetitions",
            min=1,
            help="Measured executions at each point of a boot.",
            rich_help_panel=_HOW,
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="RULE",
            help="Stop when sure, by a sequential rule that keeps its error rate: `verdict` when every "
            "headline verdict stands, `ci=2%` when every headline change is known to 2%. --boots or --seeds "
            "is then the most (40 boots, 20 seeds where left out).",
            rich_help_panel=_HOW,
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="With --until: the most time to measure: 90s, 30m, 2h.",
            rich_help_panel=_HOW,
        ),
    ] = None
    predict: Annotated[
        list[str] | None,
        typer.Option(
            "--predict",
            metavar="PARAM=N",
            help="Carry the growth laws on to this value, with an interval, where the data supports it: "
            "zombies=100000. Repeatable.",
            rich_help_panel=_HOW,
        ),
    ] = None
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Then boot each kernel once more and sample where the time goes: which functions, which of "
            "them grow faster than N, and which differ from base; with stacks for flame graph tools.",
            rich_help_panel=_HOW,
        ),
    ] = False
    cpus: Annotated[
        int | None, typer.Option("--cpus", min=1, help="CPUs of the guest.", rich_help_panel=_HOW)
    ] = None
    memory_mb: Annotated[
        int | None,
        typer.Option("--memory-mb", min=64, help="Memory of the guest, in MiB.", rich_help_panel=_HOW),
    ] = None


@dataclass(frozen=True)
class Execution:
    """How a run is carried out, and what it leaves beside its report."""

    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            help="Guests at the same time; instruction clock only (there they cannot disturb).",
            rich_help_panel=_OUT,
        ),
    ] = None
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write result.json to this file too.", rich_help_panel=_OUT)
    ] = None
    markdown_file: Annotated[
        Path | None,
        typer.Option(
            "--markdown", help="Write the report as Markdown to this file too.", rich_help_panel=_OUT
        ),
    ] = None
    fail_on: FailOnOption = None
    verbose: VerboseOption = False
    quiet: QuietOption = False

    def reporter(self) -> TerminalReporter:
        """What tells the user what is going on."""
        return reporter(self.verbose, self.quiet)


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """``verb`` with every parameter that is a group of options taken apart into its fields."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            parameters += _options_of(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @functools.wraps(verb)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            fields = {field.name: given.pop(field.name) for field in dataclasses.fields(group)}
            given[name] = group(**fields)  # type: ignore[operator]
        verb(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    call.__signature__ = inspect.Signature([p.replace(kind=keyword) for p in parameters])  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def changed(
    experiment: Experiment,
    parts: Parts | None = None,
    kernels: Kernels | None = None,
    designed: Designed | None = None,
) -> Experiment:
    """``experiment`` with these options in it. Raises InputError."""
    parts, kernels, designed = parts or Parts(), kernels or Kernels(), designed or Designed()
    return apply(
        experiment,
        Overrides(
            clock=designed.clock.value if designed.clock else None,
            source=parts.source,
            arch=kernels.arch.value if kernels.arch else None,
            boots=designed.boots,
            seeds=designed.seeds,
            repetitions=designed.repetitions,
            until=designed.until,
            budget_s=parse_seconds(designed.budget, "--budget") if designed.budget is not None else None,
            layout_twin=kernels.layout_twin,
            profile=designed.profile,
            cpus=designed.cpus,
            memory_mb=designed.memory_mb,
            variants=tuple(parts.variant or ()),
            workloads=tuple(parts.workload or ()),
            params=parse_assignments(designed.assignments or ()),
            predict=parse_assignments(designed.predict or (), "--predict"),
            quick=designed.quick,
        ),
    )


def reporter(verbose: bool, quiet: bool) -> TerminalReporter:
    """What tells the user what is going on, on standard error."""
    return TerminalReporter(Console(stderr=True), verbose=verbose, quiet=quiet)


def output() -> Console:
    """Where results go. A table cut at 80 columns helps nobody who pipes it into a file."""
    width = None if sys.stdout.isatty() else max(120, shutil.get_terminal_size().columns)
    return Console(width=width)


def need_folders(*files: Path | None) -> None:
    """Raise InputError where a file to be written has no folder: before a run, not after it."""
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise InputError(
                f"{file}: cannot be written: there is no folder {file.parent}", hint="make the folder first."
            )


def write_text(path: Path, text: str) -> None:
    """Write a file that the user asked for. Raises InputError or LabError that names it."""
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}", hint="name a file in a folder of yours."
        ) from error
    except OSError as error:
        raise LabError(
            f"{path}: cannot be written: {error.strerror}", hint="make room there, or name another file."
        ) from error


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]
