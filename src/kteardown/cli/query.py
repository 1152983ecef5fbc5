"""``kteardown query``: questions on all records, in SQL."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kteardown.cli.extras import need
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload, workload_names
from kteardown.rundir.find import all_runs

if TYPE_CHECKING:
    from kteardown.sql.database import Answer

_WIDE = 100_000


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=query.__doc__)(query)


def query(
    sql: Annotated[str, typer.Argument(help="What to ask, in DuckDB's SQL.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV with a header.")] = False,
) -> None:
    """Ask the records of all runs, in SQL. They are read where they lie; nothing can be written.

    Tables:

      runs         a run: its experiment, clock, source, command, host

      boots        an attempt at a boot: kernel, block, seed, outcome, seconds, memory, the guest; counts

      trials       a workload at one point in one boot: status, at_s

      samples      one measured value of a metric: repetition, warmup, value

      histograms   all values of a metric in buckets: low, width, n

      checks       an invariant that was checked: ok, detail

      comparisons  of the results: ratio, ci_low, ci_high, mde, verdict, p

      laws         of the results: model, per_unit, exponent, r2

    Every table has run. Trials, samples, histograms, checks and comparisons have params, a map, and a column
    for every parameter (zombies, make). They hold what counts; records has every line. DESCRIBE samples
    shows columns.

    Examples:

      kteardown query "SELECT kernel, zombies, median(value) FROM samples WHERE metric = 'freeze_user_ns'
      AND NOT warmup GROUP BY ALL ORDER BY ALL"

      kteardown query "SELECT run, kernel, outcome, detail FROM boots WHERE outcome <> 'ok'"

      kteardown query --csv "SELECT run, variant, metric, zombies, ratio, ci_low, ci_high FROM comparisons
      WHERE verdict = 'better'" > better.csv
    """
    if as_json and as_csv:
        raise InputError("--json or --csv, not both", hint="leave one of them out.")
    need("query", "`query`")
    from kteardown.sql.database import database

    with database(all_runs(), parameters=known_parameters()) as found:
        answer = found.query(sql)
        if as_json:
            _json(answer)
        elif as_csv:
            _csv(answer)
        else:
            _table(answer)


def known_parameters() -> dict[str, bool]:
    """The parameters of the workloads that are known here, and whether their values are integers."""
    here = Path.cwd()
    workloads = [load_workload(name, str(here)) for name in workload_names(here)]
    return {
        name: isinstance(parameter.default, int)
        for workload in workloads
        for name, parameter in workload.parameters.items()
    }


def _json(answer: Answer) -> None:
    rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    typer.echo(json.dumps(rows, indent=1, ensure_ascii=False, default=str))


def _csv(answer: Answer) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if answer.columns:
        writer.writerow(answer.columns)
    writer.writerows([_flat(value) for value in row] for row in answer.rows)


def _table(answer: Answer) -> None:
    rows = list(answer.rows)
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(answer.columns):
        numeric = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else _escaped(_flat(value)) for value in row))
    # Nothing is cut where somebody pipes it on.
    out = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    if answer.columns:
        out.print(table, highlight=False)


def _plain(value: Any) -> Any:
    """As JSON has it: no NaN, no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else value


def _escaped(value: Any) -> str:
    # Brackets are markup to the table.
    return str(value).replace("[", r"\[")
