"""The command line. Each verb is a module of this folder."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Annotated

import typer

from kteardown import version
from kteardown.cli.verbs import Verbs
from kteardown.errors import KteardownError, LabError
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
    "6 a variant is broken; 7 nothing of the patch is in the kernel; 8 no workload executes what it changes; "
    "130 interrupted, resumable.",
)
_OF_THE_HOST = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR),
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO),
)
"""What is wrong with the host, in whatever step it is met: a folder without permission, a full disk."""
_HOST_HINT = "set KTEARDOWN_CACHE and KTEARDOWN_RUNS to folders that you can write, on a disk with space."


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
    try:
        code = app(prog_name="kteardown", standalone_mode=False)
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
        code = 130
    except BrokenPipeError:
        # The reader of the pipe (`| head`) has exited; without this the interpreter prints a warning.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if error.errno not in _OF_THE_HOST:
            raise
        _print_error(
            f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror), _HOST_HINT
        )
        code = LabError.exit_code
    sys.exit(code if isinstance(code, int) else 0)


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
