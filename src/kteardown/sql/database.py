"""Records as tables: DuckDB over the ``records.ndjson`` files of run directories.

``sql.views`` has the columns. Lines that are not JSON, such as a last line cut by a crash, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from kteardown.errors import InputError, LabError
from kteardown.rundir import counting, saved_result
from kteardown.rundir.directory import RunDir
from kteardown.sql import views

TABLES = tuple(views.VIEWS)
_ROWS = 10_000
_READ = duckdb.StatementType
# MULTI is PIVOT. A PRAGMA that sets something is a SET.
_READING = (_READ.SELECT, _READ.EXPLAIN, _READ.PRAGMA, _READ.MULTI)
# Every parameter, and whether all its values are integers.
_PARAMS = """
SELECT key, bool_and(try_cast(params ->> key AS BIGINT) IS NOT NULL)
FROM (SELECT params, unnest(json_keys(params)) AS key FROM counted) GROUP BY key"""


@dataclass(frozen=True)
class Answer:
    """The result of a query: the names of the columns, and an iterator over the rows."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


class Database:
    """The tables of some runs, in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def query(self, sql: str) -> Answer:
        """Run ``sql``. Raises InputError if it does not only read, or with DuckDB's message if it fails."""
        try:
            statements = self._connection.extract_statements(sql)
            if not statements:
                raise InputError("the query is empty", hint="see the examples of `kteardown query --help`.")
            for statement in statements:
                if statement.type not in _READING:
                    raise _not_reading(statement.query)
            described = self._connection.execute(sql).description or []
            kinds = [str(column[1]) for column in described]
            # Fetch the first rows here, because many errors occur only when rows are computed.
            first = self._connection.fetchmany(_ROWS) if described else []
        except duckdb.Error as error:
            raise _refused(error) from error
        return Answer(tuple(column[0] for column in described), self._rows(first, kinds))

    def save(self, table: str, file: Path, form: str) -> int:
        """Write ``table`` to ``file`` as ``csv`` or ``parquet``; return the number of rows.

        Raises LabError.
        """
        how = "FORMAT csv, HEADER" if form == "csv" else "FORMAT parquet"
        chosen = "* EXCLUDE (params)" if "params" in self.columns(table) else "*"
        try:
            self._connection.execute(f"COPY (SELECT {chosen} FROM {table}) TO {_text(str(file))} ({how})")
            return int(self._connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
        except duckdb.Error as error:
            raise LabError(
                f"{file}: cannot be written: {error}", hint="check the folder and its disk."
            ) from error

    def columns(self, table: str) -> list[str]:
        """Return the names of the columns of a table."""
        return [row[0] for row in self._connection.execute(f"DESCRIBE {table}").fetchall()]

    def _rows(self, chunk: list[tuple[Any, ...]], kinds: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        json_at = {index for index, kind in enumerate(kinds) if kind == "JSON"}
        while chunk:
            for row in chunk:
                yield tuple(
                    json.loads(value) if index in json_at and isinstance(value, str) else value
                    for index, value in enumerate(row)
                )
            try:
                chunk = self._connection.fetchmany(_ROWS)
            except duckdb.Error as error:
                raise _refused(error) from error


@contextmanager
def database(
    runs: Sequence[RunDir], *, parameters: Mapping[str, bool] = MappingProxyType({}), locked: bool = True
) -> Iterator[Database]:
    """Open the tables of ``runs``. ``locked``: queries can neither read nor write files.

    ``parameters`` have a column even if no run has them; True: the values are integers. The records are read
    once, before files are locked. Raises InputError if they cannot be read.
    """
    # A run that is named twice is one run.
    runs = list({run.path.resolve(): run for run in runs}.values())
    with duckdb.connect(":memory:") as connection:
        # DuckDB must not spill data that does not fit into memory into the current folder.
        connection.execute("SET temp_directory = ''; SET autoinstall_known_extensions = false")
        try:
            _fill(connection, runs, parameters)
        except duckdb.Error as error:
            raise InputError(
                f"the runs cannot be read: {error}",
                hint="find the damaged run with `kteardown show RUN`, and move it away.",
            ) from error
        if locked:
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield Database(connection)


def _fill(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[RunDir], parameters: Mapping[str, bool]
) -> None:
    connection.execute(f"CREATE TABLE records AS {_records(runs)}")
    connection.execute(
        "CREATE TABLE run_files (run VARCHAR, path VARCHAR, experiment JSON, environment JSON)"
    )
    connection.execute("CREATE TABLE results (run VARCHAR, result JSON)")
    for run in runs:
        files = [_json_or_none(file) for file in (run.experiment_file, run.environment_file)]
        connection.execute("INSERT INTO run_files VALUES (?, ?, ?, ?)", [run.name, str(run.path), *files])
        if (result := saved_result.current(run)) is not None:
            connection.execute(
                "INSERT INTO results VALUES (?, ?)", [run.name, result.decode(errors="replace")]
            )
    connection.execute(f"CREATE TABLE attempts AS {views.ATTEMPTS}")
    _fill_counting(connection, runs)
    connection.execute(f"CREATE TABLE counted AS {views.COUNTED}")
    params = {**parameters, **dict(connection.execute(_PARAMS).fetchall())}
    for name, select in views.VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {select.replace(' COLUMNS', '')}")
        if " COLUMNS" in select:
            taken = set(Database(connection).columns(name))
            columns = _columns(params, taken, views.POINT.get(name, "counted.params"))
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS {select.replace(' COLUMNS', columns)}")


def _fill_counting(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunDir]) -> None:
    """Fill the tables of the attempts and trials that count, by the rule of ``rundir.counting``."""
    found_attempts: dict[str, list[object]] = {"run": [], "boot": [], "attempt": []}
    found_trials: dict[str, list[object]] = {**{n: [] for n in found_attempts}, "trial": [], "usable": []}
    for run in runs:
        for boot in counting.boots(run.records(strict=False)):
            for column, value in zip(
                found_attempts.values(), (run.name, boot.boot, boot.attempt), strict=True
            ):
                column.append(value)
            for trial in counting.trials(boot.records):
                row = (run.name, trial.boot, trial.attempt, trial.index, trial.usable)
                for column, value in zip(found_trials.values(), row, strict=True):
                    column.append(value)
    kinds = {"run": "VARCHAR[]", "usable": "BOOLEAN[]"}
    for table, columns in (("counted_attempts", found_attempts), ("counting", found_trials)):
        select = ", ".join(f"unnest(?::{kinds.get(name, 'BIGINT[]')}) AS {name}" for name in columns)
        connection.execute(f"CREATE TABLE {table} AS SELECT {select}", list(columns.values()))


def _records(runs: Sequence[RunDir]) -> str:
    """Return the query of every line of every run, with its run and its overall line number."""
    files = {str(run.records_file): run.name for run in runs if run.records_file.is_file()}
    if not files:
        columns = {"run": "VARCHAR", "line": "BIGINT", **views.RECORD}
        return "SELECT " + ", ".join(f"NULL::{k} AS {n}" for n, k in columns.items()) + " WHERE false"
    listed = ", ".join(map(_text, files))
    names = ", ".join(f"{_text(file)}: {_text(name)}" for file, name in files.items())
    kinds = ", ".join(f"{name}: {_text(kind)}" for name, kind in views.RECORD.items())
    return (
        f"SELECT (MAP {{{names}}})[filename] AS run, row_number() OVER () AS line, * EXCLUDE (filename) "
        f"FROM read_ndjson([{listed}], columns = {{{kinds}}}, ignore_errors = true, filename = true) "
        "WHERE type IS NOT NULL"
    )


def _columns(params: Mapping[str, bool], taken: set[str], point: str) -> str:
    """Return a column for every parameter, with the prefix ``param_`` if the name is in ``taken``."""
    columns = ""
    for key, numeric in sorted(params.items()):
        name = f"param_{key}" if key in taken else key
        value = f"{point} ->> {_text(key)}"
        columns += f", {f'try_cast({value} AS BIGINT)' if numeric else value} AS {_name(name)}"
    return columns


def _json_or_none(file: Path) -> str | None:
    """Return the text of a file, or None if it is not JSON: other runs can still be queried then."""
    try:
        text = file.read_text(encoding="utf-8")
        json.loads(text)
    except (OSError, ValueError):
        return None
    return text


def _not_reading(statement: str) -> InputError:
    word = statement.split(maxsplit=1)[0].rstrip(";").upper()
    return InputError(
        f"{word} is refused: only statements that read are allowed",
        hint="use SELECT, DESCRIBE, SUMMARIZE or EXPLAIN.",
    )


def _refused(error: duckdb.Error) -> InputError:
    return InputError(
        f"the query failed: {error}",
        hint="see the tables in `kteardown query --help`, and the columns of one with `DESCRIBE samples`.",
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
