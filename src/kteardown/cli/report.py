"""``kteardown report``: the report of a run again, from its records."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.run import context_of, gate, show_result


class Format(StrEnum):
    """What a report can be."""

    text = "text"
    markdown = "markdown"
    json = "json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=report.__doc__)(report)


def report(
    run: options.RunArg = "last",
    form: Annotated[Format, typer.Option("--format", help="text, markdown or json.")] = Format.text,
    fail_on: options.FailOnOption = None,
) -> None:
    """Make the report of a run again, from the records that it kept."""
    found = pipeline.find_run(run)
    result = pipeline.conclude(found)
    if form is Format.text:
        show_result(found, result)
    else:
        file = found.report_file if form is Format.markdown else found.result_file
        typer.echo(file.read_text(encoding="utf-8"), nl=False)
    gate(found.name, result, context_of(found)[0], fail_on)
