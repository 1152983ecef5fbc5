"""``kteardown query`` and ``export``: the records of all runs in SQL, or in files for other
programs."""

import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from kteardown.cli import options
from kteardown.errors import InputError, LabError, failing
from kteardown.extras import need
from kteardown.inputs.load import load_workload, workload_names
from kteardown.report.console import TextConsole
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import all_runs, find_runs
from kteardown.rundir.snapshot import load_workloads
from kteardown.visible import echo

if TYPE_CHECKING:
    from kteardown_history.sql.database import QueryResult

_WIDE = 100_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With what a text begins that a spreadsheet takes for a formula."""


def query(
    sql: Annotated[str, typer.Argument()],
    as_json: Annotated[bool, typer.Option("--json")] = False,
    as_csv: Annotated[bool, typer.Option("--csv")] = False,
) -> None:
    if as_json and as_csv:
        raise InputError("--json and --csv cannot be used together", hint="use only one of them.")
    need("query", "`query`")
    from kteardown_history.sql.database import database

    runs = all_runs()
    with database(runs, parameters=parameters_of(runs)) as connection:
        options.note_skipped(connection.skipped)
        answer = connection.query(sql)
        if as_json:
            rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
            echo(json.dumps(rows, indent=1, ensure_ascii=False, default=str))
        elif as_csv:
            _csv(answer)
        else:
            _table(answer)


def parameters_of(runs: Sequence[RunDir]) -> dict[str, bool]:
    """Return the parameters of the workloads of ``runs``, with True if their values are integers.

    Without any run they are those of the shipped workloads, so that a query can be tried before the
    first run.
    """
    workloads = [] if runs else [load_workload(name) for name in workload_names()]
    for run in runs:
        # A run that does not have its workloads, or is damaged, has those parameters that its
        # records have.
        with suppress(InputError):
            workloads += load_workloads(run).values()
    return {
        name: isinstance(parameter.default, int)
        for workload in workloads
        for name, parameter in workload.parameters.items()
    }


def _csv(answer: "QueryResult") -> None:
    """Print the rows as CSV. A text that a spreadsheet would take for a formula has an apostrophe
    first."""
    out = io.StringIO()
    rows = ([_flat(value) for value in row] for row in answer.rows)
    csv.writer(out, lineterminator="\n").writerows(
        [
            f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
            for value in row
        ]
        for row in ([answer.columns, *rows] if answer.columns else rows)
    )
    echo(out.getvalue(), nl=False)


def _table(answer: "QueryResult") -> None:
    rows = list(answer.rows)
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(answer.columns):
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(_flat(value)) for value in row))
    # Into a pipe or a file, no column is cut.
    out = TextConsole() if sys.stdout.isatty() else TextConsole(width=_WIDE)
    if answer.columns:
        out.print(table)


def _plain(value: Any) -> Any:
    """Return ``value``, or None for NaN and infinity, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _flat(value: Any) -> Any:
    return (
        json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, dict | list)
        else value
    )


def export(
    to: Annotated[Path, typer.Option(metavar="FOLDER")],
    runs: Annotated[list[str] | None, typer.Argument()] = None,
    form: Annotated[Literal["csv", "parquet"], typer.Option("--format")] = "csv",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    need("query", "`export`")
    from kteardown_history.sql.database import TABLES, database

    chosen = [run for name in runs for run in find_runs(name).runs] if runs else all_runs()
    if to.exists() and not to.is_dir():
        raise InputError(f"--to {to}: not a folder", hint="name a folder.")
    with failing(f"--to {to}: cannot be created", hint="name another folder.", kind=LabError):
        to.mkdir(parents=True, exist_ok=True)
    written: list[dict[str, str | int]] = []
    with database(chosen, locked=False) as connection:
        options.note_skipped(connection.skipped)
        for table in TABLES:
            file = to / f"{table}.{form}"
            rows = connection.save(table, file, form)
            written.append({"table": table, "file": str(file), "rows": rows})
    if as_json:
        echo(json.dumps(written, indent=1))
        return
    out = options.output()
    for entry in written:
        out.print(f"{entry['file']}: {entry['rows']:,} rows", soft_wrap=True)
