"""Options that several verbs share. Their texts are in ``texts/options.toml``.

A verb takes a group of options as one parameter, annotated with the class of the group. ``grouped``
makes the signature that typer reads, in which every field of the group is an option.
"""

import dataclasses
import functools
import inspect
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from kteardown.cli import complete
from kteardown.errors import InputError, KteardownError, LabError
from kteardown.report import formats
from kteardown.report.formats import FORMATS
from kteardown.visible import echo

# Every verb imports this module, and its help needs nothing else; the functions below import what
# they use.
if TYPE_CHECKING:
    from rich.console import Console

    from kteardown.cli.terminal import TerminalReporter
    from kteardown.flows.runner import Runner
    from kteardown.progress import Reporter
    from kteardown.report.publication import Publication

_out = partial(typer.Option, rich_help_panel="Execution and output")


ExperimentArg = Annotated[str, typer.Argument(autocompletion=complete.experiments)]
RunArg = Annotated[str, typer.Argument(autocompletion=complete.runs)]
JobsOption = Annotated[int | None, typer.Option("--jobs", min=1)]
PatchOption = Annotated[str, typer.Option("--patch", metavar="FILE")]
ScriptOption = Annotated[str, typer.Option("--script")]
VerboseOption = Annotated[bool, _out("-v", "--verbose")]
FailOnOption = Annotated[
    Literal["worse", "inconclusive"] | None, _out("--fail-on", metavar="VERDICT")
]
QuietOption = Annotated[bool, _out("-q", "--quiet")]


_Files: Any = dataclasses.make_dataclass(
    "_Files",
    [
        (f"{name}_file", Annotated[Path | None, _out(f"--{name}")], dataclasses.field(default=None))
        for name, form in FORMATS.items()
        if form.option
    ],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class Execution(_Files):  # type: ignore[misc]
    """How a run is executed, and the files that it writes: one option for each format that has
    one."""

    jobs: Annotated[int | None, _out("--jobs", min=1)] = None
    on: Annotated[str | None, _out("--on", "--machine", metavar="WHERE")] = None
    require: Annotated[Literal["kvm"] | None, _out("--require")] = None
    fail_on: FailOnOption = None
    verbose: VerboseOption = False
    quiet: QuietOption = False

    def runner(self, reporter: "Reporter", command: str = "") -> "Runner":
        """Return what runs experiments as these options say. ``command`` repeats it; empty: as
        typed."""
        from kteardown.flows.runner import Runner

        return Runner(
            reporter, command or command_line(), self.on, self.jobs, self.require is not None
        )

    @property
    def files(self) -> dict[str, Path]:
        """The files to write, by the format of a report."""
        paths = {name: getattr(self, f"{name}_file", None) for name in FORMATS}
        return {name: file for name, file in paths.items() if file}

    def publish(
        self,
        publication: "Publication",
        show: Callable[[], None],
        gates: Callable[[], None],
        *,
        kept: str = "",
        more_files: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """Apply the gates, write the files, and show the page. Each is done whatever becomes of the
        others.

        The JSON is last, since it has the error with which the command ends: that of the gates, or
        else the first one. This error is raised, and the others are printed. ``kept``: the command
        that makes the files again from the run. ``more_files``: those of options of the command,
        by their formats.
        """
        files = {**self.files, **more_files}
        last = files.pop("json", None)
        steps: list[Callable[[], None]] = [
            gates,
            *(partial(_write, file, form, publication, kept) for form, file in files.items()),
            show,
        ]
        errors = [error for error in map(error_of, steps) if error is not None]
        if last is not None:
            final = publication.ended_by(errors[0] if errors else None)
            lost = error_of(partial(_write, last, "json", final, kept))
            errors += [lost] if lost else []
        for later_error in errors[1:]:
            echo(f"kteardown: {later_error.message}\n  what to do: {later_error.hint}", err=True)
        if errors:
            raise errors[0]

    def begin(
        self, command: str = "it", offered: Collection[str] = formats.ALL
    ) -> "TerminalReporter":
        """Check these options, before anything is built, and return the reporter. Raises
        InputError.

        ``offered``: what the publication of the command has, for formats that need it.
        """
        from kteardown.run.places import place_of

        formats.check_formats(self.files, offered, command)
        need_writable(*self.files.values())
        place_of(self.on).check()
        return reporter(self.verbose, self.quiet)


def error_of(step: Callable[[], None]) -> KteardownError | None:
    """Return the error with which a step ends; None if it has none."""
    try:
        step()
    except KteardownError as error:
        return error
    return None


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Return ``verb`` with each parameter that is a group of options replaced by the group's
    fields."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        fields = get_type_hints(groups[name], include_extras=True)
        for field in dataclasses.fields(groups[name]):
            annotation = fields[field.name]
            if settings := dict(field.metadata):
                offers = (
                    getattr(complete, settings.pop("completes"))
                    if "completes" in settings
                    else None
                )
                option = typer.Option(settings.pop("flag"), autocompletion=offers, **settings)
                annotation = Annotated[annotation, option]
            parameters.append(
                inspect.Parameter(field.name, keyword, default=field.default, annotation=annotation)
            )

    @functools.wraps(verb)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            fields = {field.name: values.pop(field.name) for field in dataclasses.fields(group)}
            values[name] = group(**fields)  # type: ignore[operator]
        verb(**values)

    call.__signature__ = inspect.Signature([p.replace(kind=keyword) for p in parameters])  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def reporter(verbose: bool, quiet: bool) -> "TerminalReporter":
    """Return a reporter of progress that prints to standard error."""
    from kteardown.cli.terminal import TerminalReporter
    from kteardown.report.console import TextConsole

    return TerminalReporter(TextConsole(stderr=True), verbose=verbose, quiet=quiet)


def output() -> "Console":
    """Return the console for results on standard output.

    It has at least 120 columns unless it is a terminal, so that a table in a file is not cut at 80.
    """
    from kteardown.report.console import TextConsole

    width = None if sys.stdout.isatty() else max(120, shutil.get_terminal_size().columns)
    return TextConsole(width=width)


def note_skipped(skipped: Mapping[str, str]) -> None:
    if skipped:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped.items())
        reporter(verbose=False, quiet=False).note(
            f"kteardown left out what it could not read: {reasons}"
        )


def command_line() -> str:
    """Return the command as it was typed, for the run's ``environment.json``."""
    return shlex.join(["kteardown", *sys.argv[1:]])


def need_writable(*files: Path | None) -> None:
    """Check that files can be written, before a run and not after it. Raises InputError."""
    from kteardown.rundir.directory import CLOCKS_FILE, RunDir

    places: set[Path] = set()
    for file in filter(None, files):
        place = file.resolve()
        # A device takes several reports.
        if place in places and (place.is_file() or not place.exists()):
            raise InputError(
                f"{file} is named for two reports", hint="name another file for one of them."
            )
        places.add(place)
        for parent in place.parents:
            run = RunDir(parent)
            if (run.is_whole and run.plan_file.exists()) or (run.folder / CLOCKS_FILE).exists():
                raise InputError(
                    f"{file} is inside of the run directory {parent}, whose files kteardown does "
                    "not change",
                    hint="name a file in another folder.",
                )
        folder = file.absolute().parent
        reason = "it is a folder" if file.is_dir() else ""
        if not folder.is_dir():
            reason = f"there is no folder {file.parent}"
        elif not reason and not os.access(file if file.exists() else folder, os.W_OK):
            reason = "permission denied"
        if reason:
            raise InputError(
                f"{file}: cannot be written: {reason}",
                hint="name a file in a folder in which you can write.",
            )


def _write(file: Path, form: str, publication: "Publication", kept: str) -> None:
    try:
        write_text(file, formats.render(form, publication))
    except KteardownError as error:
        if kept:
            error.hint = f"{error.hint} The result is kept: {kept} --format {form}"
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, bytes that are no UTF-8 as they were. Raises InputError,
    LabError."""
    try:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}",
            hint="name a file in a folder in which you can write.",
        ) from error
    except OSError as error:
        raise LabError(
            f"{path}: cannot be written: {error.strerror}",
            hint="free disk space, or name another file.",
        ) from error
