"""``kteardown export``: write records to files for other programs."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from kteardown.cli import options
from kteardown.errors import InputError, LabError
from kteardown.extras import need
from kteardown.rundir.find import all_runs, find_runs
from kteardown.visible import echo


def export(
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The folder to write to.")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs: ids or beginnings of ids, paths, or `last`. Default: all runs."),
    ] = None,
    form: Annotated[Literal["csv", "parquet"], typer.Option("--format", help="csv or parquet.")] = "csv",
    as_json: Annotated[bool, typer.Option("--json", help="Print the list of files as JSON.")] = False,
) -> None:
    """Write each table of `kteardown query` to a file, such as samples.csv or samples.parquet.

    Each parameter is a column, except in laws, which has none of them. Existing files of these names are
    replaced.

    Example:

      kteardown export last --format parquet --to ./data
    """
    need("query", "`export`")
    from kteardown.sql.database import TABLES, database

    chosen = [run for name in runs for run in find_runs(name).runs] if runs else all_runs()
    try:
        to.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError(f"--to {to}: not a folder", hint="name a folder.") from error
    except OSError as error:
        raise LabError(
            f"--to {to}: cannot be created: {error.strerror}", hint="name another folder."
        ) from error
    written: list[dict[str, str | int]] = []
    with database(chosen, locked=False) as found:
        options.note_skipped(found.skipped)
        for table in TABLES:
            file = to / f"{table}.{form}"
            rows = found.save(table, file, form)
            written.append({"table": table, "file": str(file), "rows": rows})
    if as_json:
        echo(json.dumps(written, indent=1))
        return
    out = options.output()
    for entry in written:
        out.print(f"{entry['file']}: {entry['rows']:,} rows", soft_wrap=True)
