"""The command line: a verb is a module of this folder."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from kteardown import version
from kteardown.cli import (
    analyse,
    build,
    compare,
    diff,
    doctor,
    export,
    history,
    listing,
    new,
    plan,
    prune,
    query,
    report,
    run,
    serve,
    show,
)
from kteardown.errors import KteardownError

app = typer.Typer(
    name="kteardown",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evidence about changes to the paths on which Linux stops and tears things down at mass scale. "
    "Builds the base kernel and every variant, boots them in virtual machines, runs the workloads, "
    "and prints a table with a verdict.",
    epilog="Exit codes: 0 done; 1 a verdict asked for as a gate failed; 2 the input is wrong; "
    "3 a kernel did not build; 4 guests failed; 5 the lab or its machine failed; 130 interrupted, resumable.",
)
VERBS = (
    run,
    compare,
    build,
    plan,
    report,
    analyse,
    show,
    diff,
    history,
    serve,
    query,
    export,
    listing,
    new,
    prune,
    doctor,
)
for verb in VERBS:
    verb.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kteardown {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    # What is said of the program is said above, where the program is made.
    return


def main() -> None:
    """Run the command line and exit with the code that says how it went."""
    errors = Console(stderr=True)
    try:
        code = app(prog_name="kteardown", standalone_mode=False)
    except KteardownError as error:
        errors.print(
            f"kteardown: {error.message}", style="red", highlight=False, markup=False, soft_wrap=True
        )
        if error.hint:
            errors.print(f"  what to do: {error.hint}", highlight=False, markup=False, soft_wrap=True)
        code = error.exit_code
    except typer.TyperException as error:
        # Without a message it is the help that a bare `kteardown` asks for, already printed.
        code = 2 if error.format_message() else 0
        if code:
            errors.print(f"kteardown: {error.format_message()}", style="red", highlight=False, markup=False)
            errors.print("  what to do: `kteardown VERB --help` shows what a verb takes.", highlight=False)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("interrupted", highlight=False)
        code = 130
    except BrokenPipeError:
        # The reader of a pipe (`| head`) has seen enough; keep the interpreter from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
