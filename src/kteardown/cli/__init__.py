"""The command line. Each verb is a module of this folder."""

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from kteardown import version
from kteardown.cli import streams
from kteardown.cli.verbs import Verbs
from kteardown.errors import INTERNAL, InputError, KteardownError, LabError
from kteardown.visible import echo

app = typer.Typer(
    name="kteardown",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Benchmarks Linux kernel patches that kill, freeze or free things in bulk, and says whether the "
    "difference is real.\n\n"
    "`kteardown doctor` says what this machine lacks, `kteardown run freezer --quick` measures an example, "
    "and `kteardown try ./patch.mbox` your patch.",
    epilog="Exit codes: 0 done; 1 a verdict matched --fail-on; 2 the input is wrong; "
    "3 a kernel or the agent did not build, or a patch did not apply; 4 guests failed so often that "
    "there is nothing to report; 5 the host or a tool on it failed; "
    "6 a variant is broken; 7 nothing of a patch is in the kernel; 8 no workload executes what it changes; "
    "70 an error in kteardown itself; 130 interrupted, resumable.",
)
_INTERRUPTED = 130
_HOST_HINT = (
    "check that it is there, that you may write to it, and that its disk has space; KTEARDOWN_CACHE and "
    "KTEARDOWN_RUNS name other folders for the cache and for runs."
)


def _print_version(requested: bool) -> None:
    if requested:
        echo(f"kteardown {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _requested: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    # No docstring: typer would print it in place of the help text of `app`.
    return


def main() -> None:
    """Run the command line and exit with its exit code."""
    # A shell without job control starts `kteardown ... &` with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = streams.tolerate_loss()
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
        code = 2 if error.format_message() else 0
        if code:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "kteardown"
            _print_error(_as_message(error.format_message()), f"see `{command} --help`.")
    except (KeyboardInterrupt, typer.Abort):
        echo("interrupted", err=True)
        code = _INTERRUPTED
    except Exception as error:
        code = _unexpected(error)
    sys.exit(code)


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
    """Print an error that no verb expects, of the host or of this program, and return its exit code."""
    import traceback

    trace = traceback.extract_tb(error.__traceback__)
    if isinstance(error, OSError) and error.errno is not None:
        # The system calls that take no file name are found by their line.
        what = (
            error.filename or f"{Path(trace[-1].filename).name}, line {trace[-1].lineno} ({trace[-1].line})"
        )
        _print_error(f"{what}: {error.strerror}", _HOST_HINT)
        return LabError.exit_code
    echo("".join(traceback.format_exception(error)), err=True)
    command = shlex.join(["kteardown", *sys.argv[1:]])
    _print_error(
        f"internal error: {type(error).__name__} in kteardown {version()}, from: {command}",
        "report it as a bug, with all of the lines above. What a run has measured is kept: "
        "`kteardown run --resume last` continues it.",
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


def _as_message(text: str) -> str:
    """Return ``text`` in the form of the project's messages: lower case first, no final full stop."""
    text = text.replace("Value error, ", "")  # Of pydantic, with which typer checks choices.
    return text[:1].lower() + text[1:].rstrip(".")
