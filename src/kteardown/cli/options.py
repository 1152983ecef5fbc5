"""Options that several verbs share, and what they become."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError, LabError
from kteardown.spec.load import load_experiment
from kteardown.spec.model import Experiment
from kteardown.spec.override import Overrides, apply
from kteardown.spec.sweep import parse_assignments


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
    str, typer.Argument(help="A shipped experiment (`kteardown list experiments`) or a path to a .toml file.")
]
ClockOption = Annotated[
    ClockChoice | None,
    typer.Option(
        "--clock",
        help="instructions: exact instruction counts, the same on every run and host. "
        "wall: real time, with interleaved boots and an A/A control.",
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE or debian-image:6.12.",
    ),
]
ArchOption = Annotated[ArchChoice | None, typer.Option("--arch", help="The guest's architecture.")]
VariantOption = Annotated[
    list[str] | None,
    typer.Option(
        "--variant", help="Only this variant: a series, a prefix (NAME@2), or a source. Repeatable."
    ),
]
WorkloadOption = Annotated[
    list[str] | None, typer.Option("--workload", help="Only this workload of the experiment. Repeatable.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Values of a parameter: zombies=0,3000 or zombies=0:30000:3000. Repeatable."),
]
BootsOption = Annotated[int | None, typer.Option("--boots", min=1, help="Boots of each kernel (wall clock).")]
SeedsOption = Annotated[
    int | None, typer.Option("--seeds", min=1, help="Seeds, a boot of each kernel each (instruction clock).")
]
RepetitionsOption = Annotated[
    int | None, typer.Option("--repetitions", min=1, help="Measured executions at each point of a boot.")
]
CpusOption = Annotated[int | None, typer.Option("--cpus", min=1, help="CPUs of the guest.")]
MemoryOption = Annotated[int | None, typer.Option("--memory-mb", min=64, help="Memory of the guest, in MiB.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Fewer boots and points: an honest answer of lower power, in minutes.")
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Guests at the same time; instruction clock only (there they cannot disturb)."
    ),
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write result.json to this file too.")]
MarkdownOption = Annotated[
    Path | None, typer.Option("--markdown", help="Write the report as Markdown to this file too.")
]
FailOnOption = Annotated[
    FailOn | None, typer.Option("--fail-on", help="Exit with 1 where a headline metric has this verdict.")
]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Show the commands that are run.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No progress; errors and the result only.")]


@dataclass(frozen=True)
class Chosen:
    """The options that shape an experiment, as they were typed."""

    clock: ClockChoice | None = None
    source: str | None = None
    arch: ArchChoice | None = None
    boots: int | None = None
    seeds: int | None = None
    repetitions: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    variants: list[str] | None = None
    workloads: list[str] | None = None
    assignments: list[str] | None = None
    quick: bool = False

    def experiment(self, name: str) -> Experiment:
        """The named experiment with these options in it. Raises InputError."""
        return self.applied_to(load_experiment(name))

    def applied_to(self, experiment: Experiment) -> Experiment:
        """``experiment`` with these options in it. Raises InputError."""
        return apply(
            experiment,
            Overrides(
                clock=self.clock.value if self.clock else None,
                source=self.source,
                arch=self.arch.value if self.arch else None,
                boots=self.boots,
                seeds=self.seeds,
                repetitions=self.repetitions,
                cpus=self.cpus,
                memory_mb=self.memory_mb,
                variants=tuple(self.variants or ()),
                workloads=tuple(self.workloads or ()),
                params=parse_assignments(self.assignments or ()),
                quick=self.quick,
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
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error
