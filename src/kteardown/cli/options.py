"""Options that several verbs share.

A verb takes a group of options as one parameter, annotated with the class of the group. ``grouped`` makes
the signature that typer reads, in which every field of the group is an option.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kteardown import sandbox
from kteardown.cli import complete
from kteardown.errors import InputError, KteardownError, LabError
from kteardown.model.arch import Arch
from kteardown.visible import echo

# Every verb imports this module, and its help needs nothing else; the functions below import what they use.
if TYPE_CHECKING:
    from rich.console import Console

    from kteardown.cli.terminal import TerminalReporter
    from kteardown.model.experiment import Clock, Experiment

_what, _how, _out = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("What is compared", "How it is measured", "Execution and output")
)


class ClockChoice(StrEnum):
    """The clocks."""

    instructions = "instructions"
    wall = "wall"


class ClocksChoice(StrEnum):
    """The clocks of a run, which can have both."""

    instructions = "instructions"
    wall = "wall"
    both = "both"


class FailOn(StrEnum):
    """The verdicts of --fail-on."""

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
    typer.Argument(
        help="A run: its id or the beginning of it, its path, or `last`.", autocompletion=complete.runs
    ),
]
VerboseOption = Annotated[bool, _out("-v", "--verbose", help="Print the commands that are run.")]
FailOnOption = Annotated[
    FailOn | None,
    _out(
        "--fail-on",
        metavar="VERDICT",
        help="worse or inconclusive: exit with 1 if a headline metric has this verdict (worse: or one of its "
        "points has it), or if a point could not be compared; exit with 6 if a variant is broken.",
    ),
]
QuietOption = Annotated[bool, _out("-q", "--quiet", help="Print only errors and the result.")]


def _file(form: str, what: str) -> Any:
    return _out(f"--{form}", help=f"Also write {what} to this file.")


@dataclass(frozen=True)
class Parts:
    """The parts of an experiment to run, and the source of base."""

    source: Annotated[
        str | None,
        _what(
            "--source",
            help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE or debian-image:6.12.",
            autocompletion=complete.sources,
        ),
    ] = None
    variant: Annotated[
        list[str] | None,
        _what(
            "--variant",
            help="Only this variant: a series, its first two patches (NAME@2), all but its second patch "
            "(NAME@-2), a source, or a series on another source ('NAME on debian:7.3'). Repeatable.",
            autocompletion=complete.series_and_sources,
        ),
    ] = None
    workload: Annotated[
        list[str] | None,
        _what(
            "--workload",
            help="Only this workload of the experiment. Repeatable.",
            autocompletion=complete.workloads,
        ),
    ] = None


def _permit_unsafe_build(given: bool) -> bool:
    sandbox.unsafe_build = given
    return given


@dataclass(frozen=True)
class Kernels:
    """The architecture, and the kernels that are built in addition to base and the variants."""

    arch: Annotated[
        Arch | None, _what("--arch", help="The guest's architecture. Default: that of the experiment.")
    ] = None
    config: Annotated[
        list[str] | None,
        _what(
            "--config",
            help="Add a configuration fragment to all kernels (`kteardown list fragments`, or a path to a "
            ".config file), or one symbol (CONFIG_NAME=y): debug, kasan and kmemleak find faults, which "
            "makes the kernels slower. Repeatable.",
            autocompletion=complete.fragments,
        ),
    ] = None
    ablate: Annotated[
        bool,
        _what(
            "--ablate",
            help="Find the effect of each patch: for every series of several patches, also boot each prefix, "
            "and the series without each patch, if that applies and builds.",
        ),
    ] = False
    layout_twin: Annotated[
        bool,
        _what(
            "--layout-twin",
            help="Wall clock: also boot base with a function that is never called in each file that the "
            "series touch, in every block. Without this option that kernel is booted at the end, if a "
            "difference below 10% needs it.",
        ),
    ] = False
    unsafe_build: Annotated[
        bool,
        _what(
            "--unsafe-build",
            help="Build without the sandbox: a patch can then run any program as you, while it is built. The "
            "result says so.",
            callback=_permit_unsafe_build,
        ),
    ] = False


@dataclass(frozen=True)
class Designed:
    """The design: clock, points, number of boots, stopping rule, and the guests' machine."""

    clock: Annotated[
        ClocksChoice | None,
        _how(
            "--clock",
            metavar="CLOCK",
            help="instructions: instruction counts; with one CPU in the guest they are the same in every run "
            "and on every host, with several CPUs nearly always. wall: real time, with the boots of all "
            "kernels in random order and an A/A twin. both: first the one, then the other, and both changes "
            "of each point side by side. Default: that of the experiment.",
        ),
    ] = None
    quick: Annotated[
        bool,
        _how("--quick", help="Fewer boots and points: a result in minutes, with less statistical power."),
    ] = False
    assignments: Annotated[
        list[str] | None,
        _how(
            "--set",
            metavar="PARAM=VALUES",
            help="The values of a parameter: zombies=0,3000 or zombies=0:30000:3000 (from, to, step); also "
            "of the guest's cpus, possible_cpus and numa_nodes. Repeatable.",
            autocompletion=complete.assignments,
        ),
    ] = None
    seeds: Annotated[
        int | None,
        _how(
            "--seeds",
            min=1,
            help="Number of seeds (instruction clock only); each kernel is booted once with each seed.",
        ),
    ] = None
    boots: Annotated[
        int | None, _how("--boots", min=1, help="Number of boots of each kernel (wall clock only).")
    ] = None
    repetitions: Annotated[
        int | None, _how("--repetitions", min=1, help="Measured repetitions in each trial.")
    ] = None
    until: Annotated[
        str | None,
        _how(
            "--until",
            metavar="RULE",
            help="Stop as soon as the result is certain, by a sequential rule that keeps its error rate: "
            "`verdict`: when no headline metric is inconclusive; `ci=2%`: when the interval of every "
            "headline metric is within 2% of the estimate. --boots or --seeds is then the maximum (default: "
            "40 boots, 20 seeds). With --clock both, the rule is applied to each clock.",
        ),
    ] = None
    budget: Annotated[
        str | None,
        _how(
            "--budget",
            metavar="TIME",
            help="With --until: the maximum time to measure on each clock, as 90s, 30m or 2h. (--budget of "
            "`kteardown hunt` is in million instructions.)",
        ),
    ] = None
    lost_limit: Annotated[
        str | None,
        _how(
            "--lost-limit",
            metavar="SHARE",
            help="Wall clock: a trial that lost more than this share of its time (5%, 0.5%) to other work of "
            "the host is void and repeated, at most twice; 100%: none is repeated. Default: 5% under KVM if "
            "the host has more CPUs than the guest, else 100%.",
        ),
    ] = None
    predict: Annotated[
        list[str] | None,
        _how(
            "--predict",
            metavar="PARAM=N",
            help="Extrapolate the growth laws to this value, with an interval, if the data supports it: "
            "zombies=100000. Repeatable.",
        ),
    ] = None
    profile: Annotated[
        bool,
        _how(
            "--profile",
            help="After measuring, boot each kernel again and sample its stacks: shows in which functions "
            "the time is spent, which grow faster than N, and which differ from base; keeps the stacks for "
            "flame graph tools.",
        ),
    ] = False
    counts: Annotated[
        bool,
        _how(
            "--counts",
            help="Also count instructions, cycles, cache misses and data TLB misses in the stretch that each "
            "workload measures, by the processor's counters, as metrics beside time: on the wall clock under "
            "KVM, where `kteardown doctor` says that the host has counters (docs/wall-clock.md).",
        ),
    ] = False
    cpus: Annotated[
        int | None,
        _how(
            "--cpus",
            min=1,
            help="Number of CPUs of the guest. Default: what the experiment and its workloads need.",
        ),
    ] = None
    memory_mb: Annotated[
        int | None,
        _how(
            "--memory-mb",
            min=64,
            help="Memory of the guest, in MiB. Default: what the experiment and its workloads need.",
        ),
    ] = None

    def only_of(self, clock: Clock) -> Designed:
        """Return these options without those that are only for the other clock."""
        if clock == "wall":
            return dataclasses.replace(self, seeds=None)
        return dataclasses.replace(self, boots=None, lost_limit=None, counts=False)


@dataclass(frozen=True)
class Execution:
    """How a run is executed, and the files that it writes."""

    jobs: Annotated[
        int | None,
        _out(
            "--jobs",
            min=1,
            help="Guests that run at the same time. Default: one for each CPU of the host. On the wall clock "
            "it is always one, because guests would slow each other down.",
        ),
    ] = None
    on: Annotated[
        str | None,
        _out(
            "--on",
            metavar="WHERE",
            help="Where the guests run: `slurm` or `slurm:PARTITION`, the nodes of a Slurm cluster "
            "(docs/cluster.md); `local`, this host. Default: where the run began, or this host.",
        ),
    ] = None
    json_file: Annotated[Path | None, _file("json", "result.json")] = None
    markdown_file: Annotated[Path | None, _file("markdown", "the report as Markdown")] = None
    comment_file: Annotated[Path | None, _file("comment", "a comment for GitHub or GitLab")] = None
    junit_file: Annotated[Path | None, _file("junit", "the comparisons as JUnit tests")] = None
    fail_on: FailOnOption = None
    verbose: VerboseOption = False
    quiet: QuietOption = False

    @property
    def files(self) -> dict[str, Path]:
        """The files to write, by the format of a report."""
        given = {form: getattr(self, f"{form}_file") for form in ("json", "markdown", "comment", "junit")}
        return {form: file for form, file in given.items() if file}

    def publish(
        self,
        text_of: Callable[[str], str],
        show: Callable[[], None],
        gates: Callable[[], None],
        *,
        kept: str = "",
    ) -> None:
        """Write the files, show the page, and apply the gates. Each is done whatever becomes of the others.

        ``text_of`` makes the text of a format. ``kept``: the command that makes it again from the run. Raises
        what the gates raise, or else the first error; the others are printed.
        """
        steps: list[Callable[[], None]] = [
            *(partial(_write, file, form, text_of, kept) for form, file in self.files.items()),
            show,
            gates,
        ]
        errors: dict[int, KteardownError] = {}
        for number, step in enumerate(steps):
            try:
                step()
            except KteardownError as error:
                errors[number] = error
        if not errors:
            return
        raised = errors.pop(len(steps) - 1, None) or errors.pop(min(errors))
        for other in errors.values():
            echo(f"kteardown: {other.message}\n  what to do: {other.hint}", err=True)
        raise raised

    def reporter(self) -> TerminalReporter:
        """Return the reporter of progress."""
        return reporter(self.verbose, self.quiet)


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Return ``verb`` with each parameter that is a group of options replaced by the group's fields."""
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
    """Return ``experiment`` changed by these options. Raises InputError."""

    from kteardown.inputs.override import Overrides, apply, parse_seconds, parse_share
    from kteardown.inputs.sweep_syntax import parse_assignments

    parts, kernels, designed = parts or Parts(), kernels or Kernels(), designed or Designed()
    given = {"source": [parts.source], "lost-limit": [designed.lost_limit], "variant": parts.variant or ()}
    for option, values in given.items():
        if "" in values:
            raise InputError(
                f"--{option}: is empty",
                hint="give a value, or leave the option out; a variable of the shell may be unset.",
            )
    return apply(
        experiment,
        Overrides(
            clock=_one_clock(designed.clock),
            source=parts.source,
            arch=kernels.arch,
            boots=designed.boots,
            seeds=designed.seeds,
            repetitions=designed.repetitions,
            until=designed.until,
            budget_s=parse_seconds(designed.budget, "--budget") if designed.budget is not None else None,
            lost_limit=parse_share(designed.lost_limit, "--lost-limit") if designed.lost_limit else None,
            layout_twin=kernels.layout_twin,
            config=tuple(kernels.config or ()),
            counts=designed.counts,
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


def on_clocks(
    experiment: Experiment, parts: Parts, kernels: Kernels, designed: Designed
) -> tuple[Experiment, ...]:
    """Return ``experiment`` changed by these options, once for each clock that is to be measured.

    Raises InputError.
    """
    from kteardown.inputs.counted import without_counts
    from kteardown.rundir.find import CLOCKS

    if designed.clock is not ClocksChoice.both:
        return (changed(experiment, parts, kernels, designed),)
    return tuple(
        changed(
            experiment if clock == "wall" else without_counts(experiment),
            parts,
            dataclasses.replace(kernels, layout_twin=kernels.layout_twin and clock == "wall"),
            dataclasses.replace(designed.only_of(clock), clock=ClocksChoice(clock)),
        )
        for clock in CLOCKS
    )


def reporter(verbose: bool, quiet: bool) -> TerminalReporter:
    """Return a reporter of progress that prints to standard error."""
    from kteardown.cli.terminal import TerminalReporter
    from kteardown.report.console import TextConsole

    return TerminalReporter(TextConsole(stderr=True), verbose=verbose, quiet=quiet)


def output() -> Console:
    """Return the console for results on standard output.

    It has at least 120 columns unless it is a terminal, so that a table in a file is not cut at 80.
    """
    from kteardown.report.console import TextConsole

    width = None if sys.stdout.isatty() else max(120, shutil.get_terminal_size().columns)
    return TextConsole(width=width)


def note_skipped(skipped: Mapping[str, str]) -> None:
    """Print, beside the output, which runs are left out and why."""
    if skipped:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped.items())
        reporter(verbose=False, quiet=False).note(f"left out, since they cannot be read: {reasons}")


def need_writable(*files: Path | None) -> None:
    """Check that files can be written, before a run and not after it. Raises InputError."""
    from kteardown.rundir.directory import CLOCKS_FILE, RunDir

    seen: set[Path] = set()
    for file in filter(None, files):
        place = file.resolve()
        # A device takes several reports.
        if place in seen and (place.is_file() or not place.exists()):
            raise InputError(f"{file}: is named for two reports", hint="name a file of its own for each.")
        seen.add(place)
        for parent in place.parents:
            run = RunDir(parent)
            if (run.is_whole and run.plan_file.is_file()) or (parent / CLOCKS_FILE).is_file():
                raise InputError(
                    f"{file}: is inside of the run directory {parent}, whose files are kept as they are",
                    hint="name a file in another folder.",
                )
        folder = file.absolute().parent
        if not folder.is_dir():
            raise InputError(
                f"{file}: cannot be written: there is no folder {file.parent}",
                hint="create the folder first.",
            )
        if file.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
            reason = "it is a folder" if file.is_dir() else "permission denied"
            raise InputError(
                f"{file}: cannot be written: {reason}",
                hint="name a file in a folder in which you can write.",
            )


def _write(file: Path, form: str, text_of: Callable[[str], str], kept: str) -> None:
    try:
        write_text(file, text_of(form))
    except KteardownError as error:
        if kept:
            error.hint = f"{error.hint} The result is kept: {kept} --format {form}"
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``. Raises InputError or LabError that names the file."""
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}",
            hint="name a file in a folder in which you can write.",
        ) from error
    except OSError as error:
        raise LabError(
            f"{path}: cannot be written: {error.strerror}", hint="free disk space, or name another file."
        ) from error


def _one_clock(choice: ClocksChoice | None) -> Clock | None:
    from kteardown.rundir.find import CLOCKS

    return next((clock for clock in CLOCKS if choice is not None and clock == choice.value), None)


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]
