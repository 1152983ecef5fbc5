"""``kteardown export``: records as files for other programs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.extras import need
from kteardown.cli.query import known_parameters
from kteardown.errors import InputError, LabError
from kteardown.rundir.find import all_runs, find_run


class Format(StrEnum):
    """What the files can be."""

    csv = "csv"
    parquet = "parquet"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=export.__doc__)(export)


def export(
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the files go.")],
    runs: Annotated[list[str] | None, typer.Argument(help="Runs, as for `show`; all where left out.")] = None,
    form: Annotated[Format, typer.Option("--format", help="csv or parquet.")] = Format.csv,
    as_json: Annotated[bool, typer.Option("--json", help="What was written, as JSON.")] = False,
) -> None:
    """Write the tables of `kteardown query` as files, one a table: samples.csv or samples.parquet and so on.

    Parameters are columns. Files of these names that are already there are replaced.

    Example:

      kteardown export last --format parquet --to ./data
    """
    need("query", "`export`")
    from kteardown.sql.database import TABLES, database

    chosen = [find_run(name) for name in runs] if runs else all_runs()
    try:
        to.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError(f"{to} is not a folder", hint="give --to another one.") from error
    except OSError as error:
        raise LabError(f"{to}: cannot be made: {error.strerror}", hint="give --to another one.") from error
    written: list[dict[str, str | int]] = []
    with database(chosen, parameters=known_parameters(), locked=False) as found:
        for table in TABLES:
            file = to / f"{table}.{form.value}"
            rows = found.save(table, file, form.value)
            written.append({"table": table, "file": str(file), "rows": rows})
    if as_json:
        typer.echo(json.dumps(written, indent=1))
        return
    out = options.output()
    for entry in written:
        out.print(f"{entry['file']}: {entry['rows']:,} rows", highlight=False, soft_wrap=True)
