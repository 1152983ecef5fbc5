"""The command line. The module of a verb is imported when the verb is used.

To import all of them takes most of a second, more than `kteardown --version` and many verbs need in
all. A command ends with its own exit code, and writes all of its files, whatever becomes of what it
prints: a closed pipe or a full disk do not fail it. What --help says of the verbs and of their
options is in ``texts``.
"""

import copy
import errno
import io
import os
import shlex
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from kteardown import spawn, version
from kteardown.cli import verbs
from kteardown.errors import INTERNAL, InputError, KteardownError, LabError
from kteardown.visible import echo

_ABOUT, _, _EXIT_CODES = verbs.help_texts(verbs.TEXTS)["kteardown"].rpartition("\n\n")


class Verbs(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": None})
        self.commands = cast(Any, verbs.Commands(_command))

    def get_params(self, ctx: Any) -> list[Any]:
        return with_short_types(super().get_params(ctx), ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        listed = copy.copy(self)
        listed.commands = {
            verb.name: TyperCommand(verb.name, help=verb.help, rich_help_panel=verb.group)
            for verb in verbs.every().values()
        }
        super(Verbs, listed).format_help(ctx, formatter)


@cache
def _command(verb: verbs.VerbText) -> Any:
    from kteardown.cli.options import grouped

    verb_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    verb_app.command(verb.name, cls=Verb, help=verb.help)(grouped(verb.function))
    command = get_command(verb_app)
    texts = verb.options
    for parameter in cast(Any, command.params):
        # The text of report's --format is made in code, from the names of the formats.
        parameter.help = texts.get(parameter.name, parameter.help)
    return command


class Verb(TyperCommand):
    """A command whose help has short types."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_short_types(super().get_params(ctx), ctx)


def with_short_types(parameters: list[Any], ctx: Any) -> list[Any]:
    """Return ``parameters``; an option that does not name its value gets a short name for it.

    typer shows Python's types, as ``<list[str]>``, in a column that is as wide as the longest one.
    The texts then have less than half of 80 columns. An argument has a name, and its text says what
    it may be.
    """
    for option in parameters:
        if isinstance(option, TyperArgument):
            option.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        if isinstance(option, TyperOption) and option.metavar is None:
            option.metavar = _value(option, ctx)
    return parameters


def _value(option: TyperOption, ctx: Any) -> str:
    """Return what an option is followed by; a flag by nothing."""
    kind = option.type_descriptor
    if option.is_flag:
        return ""
    if kind.is_choice:
        return option.display_type(ctx).strip("<>")
    if kind.is_path:
        return "FILE"
    return "N" if kind.is_ranged else max(option.opts, key=len).lstrip("-").upper()


app = typer.Typer(
    name="kteardown",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_ABOUT,
    epilog=_EXIT_CODES,
)
_INTERRUPTED = 130
_COMPLETES = {"_KTEARDOWN_COMPLETE", "_TYPER_COMPLETE_ARGS"}
"""Variables with which a shell asks what may follow on its command line."""
_HINTS: dict[tuple[str, str | None], str] = {
    ("kteardown try", "--branch"): (
        "give the range of commits as the argument: kteardown try BASE..TOPIC in the current "
        "folder, or kteardown try git:PATH@BASE..TOPIC."
    ),
    ("kteardown try", ""): (
        "give a patch: kteardown try ./my.patch, git diff | kteardown try -, or kteardown try "
        "git:~/linux@v6.12..my-topic"
    ),
}
"""What to do about an option that a command does not have, or without one, about its arguments."""
_HOST_HINT = (
    "check that the file exists, that you may write to it, and that its disk has space; "
    "KTEARDOWN_CACHE and KTEARDOWN_RUNS name other folders for the cache and for runs."
)


def _print_version(requested: bool) -> None:
    if requested:
        echo(f"kteardown {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _requested: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    # No docstring: typer would print it in place of the help text of `app`.
    return


def main() -> None:
    ended_by = _handle_signals()
    notes = spawn.use_absolute_paths_only()
    # The standard streams lose what cannot be written to them.
    sys.stdout, output = _tolerant(sys.stdout, 1)
    sys.stderr, _ = _tolerant(sys.stderr, 2)
    for note in notes if not _COMPLETES.intersection(os.environ) else ():
        echo(f"kteardown: {note}", err=True)
    if os.geteuid() == 0:
        os.umask(0o022)  # Programs in the sandbox and QEMU, which are not root, read the cache.
    try:
        code = _run()
        sys.stdout.flush()
        if output.lost is not None:
            raise output.lost
    except KteardownError as error:
        _print_error(error.message, error.hint)
        code = error.exit_code
    except typer.TyperException as error:
        # `kteardown` without arguments prints its help and raises an error without a message.
        # The value error is of pydantic, with which typer checks choices.
        text = error.format_message().replace("Value error, ", "").rstrip(".")
        code = 2 if text else 0
        if text:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "kteardown"
            option = "" if _is_missing(error) else getattr(error, "option_name", None)
            hint = _HINTS.get((command, option))
            _print_error(text[:1].lower() + text[1:], hint or f"see `{command} --help`.")
    except (KeyboardInterrupt, typer.Abort):
        echo("interrupted", err=True)
        code = _INTERRUPTED
    except Exception as error:
        code = _unexpected(error)
    sys.exit(128 + ended_by[0] if ended_by else code)


def _is_missing(error: Exception) -> bool:
    """Return whether an argument is missing; only the error that says so has a ``param_type``."""
    return hasattr(error, "param_type")


def _handle_signals() -> list[int]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does, so that they leave nothing behind either.

    Return the list to which they add their numbers.
    """
    # A shell without job control starts `kteardown ... &` with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        signal.raise_signal(
            signal.SIGINT
        )  # What handles it may have been replaced, as asyncio does.

    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signal_number) is not signal.SIG_IGN:  # As after nohup.
            signal.signal(signal_number, interrupt)
    return received


def _run() -> int:
    """Run the verb and return the exit code. Raises what the verb raises."""
    if any("\udc80" <= letter <= "\udcff" for letter in "".join(sys.argv)):
        # A run keeps its command, and the names of its patches, as text.
        raise InputError("an argument is not text in UTF-8", hint="give the file another name.")
    try:
        code = app(prog_name="kteardown", standalone_mode=False)
    except (SystemExit, typer.Abort) as made:
        # typer makes the exit code 1 of a broken pipe, and an interrupt of the end of a file.
        raise (made.__context__ or made) from None
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> int:
    """Print an error that no verb expects, of the host or of this program, and return its exit
    code."""
    import traceback

    trace = traceback.extract_tb(error.__traceback__)
    if isinstance(error, OSError) and error.errno is not None:
        # The system calls that take no file name are found by their line.
        what = (
            error.filename
            or f"{Path(trace[-1].filename).name}, line {trace[-1].lineno} ({trace[-1].line})"
        )
        _print_error(f"{what}: {error.strerror}", _HOST_HINT)
        return LabError.exit_code
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # Of Path.expanduser().
        _print_error(
            "a path names a user after ~, and this host has no user of that name",
            "write the whole path.",
        )
        return InputError.exit_code
    echo("".join(traceback.format_exception(error)), err=True)
    command = shlex.join(["kteardown", *sys.argv[1:]])
    _print_error(
        f"internal error: {type(error).__name__} in kteardown {version()}, from: {command}",
        "report it as a bug, with all of the lines above. What a run has measured is kept: "
        "`kteardown run --resume last` continues the run.",
    )
    return INTERNAL


def _print_error(message: str, hint: str) -> None:
    from kteardown.report.console import (
        TextConsole,  # Imported here: `--version` needs no rich, which takes time.
    )

    errors = TextConsole(stderr=True)
    errors.print(f"kteardown: {message}", style="red", soft_wrap=True)
    if hint:
        errors.print(f"  what to do: {hint}", soft_wrap=True)


class Lossy(io.FileIO):
    """A file that loses what cannot be written to it.

    ``lost`` is the reason; None if it is that the other end of a pipe was closed.
    """

    lost: OSError | None = None
    _open = True

    def write(self, data: object) -> int:
        """Write ``data``, of which all counts as written once the file takes no more."""
        if self._open:
            try:
                return super().write(data)  # type: ignore[arg-type]
            except OSError as error:
                self._open = False
                if error.errno != errno.EPIPE:
                    self.lost = OSError(error.errno, error.strerror, "standard output")
        return memoryview(data).nbytes  # type: ignore[arg-type]


def _tolerant(stream: io.TextIOWrapper | object, number: int) -> tuple[io.TextIOWrapper, Lossy]:
    encoding = getattr(stream, "encoding", "utf-8")
    errors = getattr(stream, "errors", "strict")
    if stream is None:
        # Closed: no file that is opened later may have its number.
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    raw = Lossy(number, "w", closefd=False)
    lines = number == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=lines), raw
