"""Records as tables: DuckDB over the ``records.ndjson`` files of run directories.

``records`` has a row for each line; a last line that was cut by a crash is left out. ``attempts``
and ``counted`` (the trials that count, by the rule of ``rundir.counting``) are made from it, and
the tables for users are made from those (``schema.sql``, ``views.sql.j2``).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import duckdb
from jinja2 import Environment, StrictUndefined

from kteardown.door import Entry
from kteardown.errors import InputError, LabError
from kteardown.model.clock import IN_INSTRUCTIONS
from kteardown.model.record import Record
from kteardown.model.workload import Unit
from kteardown.rundir import counting
from kteardown.rundir.counting import EXACT
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import read_json

_FILES = files("kteardown_history.sql")
_TEMPLATE = Environment(trim_blocks=True, undefined=StrictUndefined).from_string(
    _FILES.joinpath("views.sql.j2").read_text()
)
_TEXT = _TEMPLATE.render(in_instructions=IN_INSTRUCTIONS, units=get_args(Unit), exact=EXACT)
_PARTS = re.split(r"\n\n-- (\w+)\n", _TEXT.rstrip())[1:]
_SELECTS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
_STORED = ("attempts", "counted")
TABLES = tuple(name for name in _SELECTS if name not in _STORED)
"""The tables for users."""
_ROWS = 10_000
_READ = duckdb.StatementType
# MULTI is PIVOT. A PRAGMA that sets something is a SET.
_READING = (_READ.SELECT, _READ.EXPLAIN, _READ.PRAGMA, _READ.MULTI)
# A map cannot have a key twice.
_READ_WELL = """
SELECT count(*) FROM records
WHERE params IS NULL OR len(json_keys(params)) = len(list_distinct(json_keys(params)))"""
# Every parameter, and whether all its values are integers.
_PARAMS = """
SELECT key, bool_and(try_cast(params ->> key AS BIGINT) IS NOT NULL)
FROM (SELECT params, unnest(json_keys(params)) AS key FROM counted) GROUP BY key"""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query: the names of the columns, and an iterator over the rows."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class Database:
    """The tables of some runs, in memory."""

    _connection: duckdb.DuckDBPyConnection
    skipped: Mapping[str, str]
    """Why runs are left out, by name."""

    def query(self, sql: str) -> QueryResult:
        """Run ``sql``. Raises InputError if it does not only read, or with DuckDB's message if it
        fails."""
        try:
            statements = self._connection.extract_statements(sql)
            if not statements:
                raise InputError(
                    "the query is empty", hint="see the examples of `kteardown query --help`."
                )
            for statement in statements:
                if statement.type not in _READING:
                    word = statement.query.split(maxsplit=1)[0].rstrip(";").upper()
                    raise InputError(
                        f"{word} is refused: only statements that read are allowed",
                        hint="use SELECT, DESCRIBE, SUMMARIZE or EXPLAIN.",
                    )
            described = self._connection.execute(sql).description or []
            kinds = [str(column[1]) for column in described]
            # Fetch the first rows here, because many errors occur only when rows are computed.
            first = self._connection.fetchmany(_ROWS) if described else []
        except duckdb.Error as error:
            raise _refused(error) from error
        return QueryResult(tuple(column[0] for column in described), self._rows(first, kinds))

    def save(self, table: str, file: Path, form: str) -> int:
        """Write ``table`` to ``file`` as ``csv`` or ``parquet``; return the number of rows.

        Raises LabError.
        """
        how = "FORMAT csv, HEADER" if form == "csv" else "FORMAT parquet"
        chosen = "* EXCLUDE (params)" if "params" in _kinds(self._connection, table) else "*"
        try:
            self._connection.execute(
                f"COPY (SELECT {chosen} FROM {table}) TO {_text(str(file))} ({how})"
            )
            return int(self._connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
        except duckdb.Error as error:
            raise LabError(
                f"{file}: cannot be written: {error}", hint="check the folder and its disk."
            ) from error

    def _rows(
        self, chunk: list[tuple[Any, ...]], kinds: Sequence[str]
    ) -> Iterator[tuple[Any, ...]]:
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
    runs: Sequence[RunDir],
    *,
    parameters: Mapping[str, bool] = MappingProxyType({}),
    locked: bool = True,
) -> Iterator[Database]:
    """Open the tables of ``runs``. ``locked``: queries can neither read nor write files.

    ``parameters`` have a column even if no run has them; True: the values are integers. The records
    are read once, before files are locked. A run that cannot be read is left out
    (``Database.skipped``).
    """
    # A run that is named twice is one run.
    runs = list({run.path.resolve(): run for run in runs}.values())
    with duckdb.connect(":memory:") as connection:
        # DuckDB must not spill data that does not fit into memory into the current folder.
        connection.execute("SET temp_directory = ''; SET autoinstall_known_extensions = false")
        skipped = _fill(connection, runs, parameters)
        if locked:
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield Database(connection, skipped)


def _fill(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[RunDir], parameters: Mapping[str, bool]
) -> dict[str, str]:
    """Make the tables and return why runs are left out, by name."""
    connection.execute(_FILES.joinpath("schema.sql").read_text())
    skipped: dict[str, str] = {}
    for run in runs:
        connection.begin()
        try:
            _add(connection, run)
        except (duckdb.Error, InputError) as error:
            connection.rollback()
            skipped[run.name] = str(error)
        else:
            connection.commit()
    for name in _STORED:
        connection.execute(f"CREATE TABLE {name} AS {_SELECTS[name]}")
    params = {**parameters, **dict(connection.execute(_PARAMS).fetchall())}
    for name in TABLES:
        select = _SELECTS[name]
        connection.execute(f"CREATE VIEW {name} AS {select.replace(' COLUMNS', '')}")
        if " COLUMNS" in select:
            taken = set(_kinds(connection, name))
            point = "c -> 'point'" if name == "comparisons" else "counted.params"
            columns_of = _columns(params, taken, point)
            connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS {select.replace(' COLUMNS', columns_of)}"
            )
    return skipped


def _add(connection: duckdb.DuckDBPyConnection, run: RunDir) -> None:
    """Add a run to the tables. Raises InputError or DuckDB's error if it cannot be read whole."""
    records = run.records()
    files = [_json_or_none(file) for file in (run.experiment_file, run.environment_file)]
    connection.execute(
        "INSERT INTO run_files VALUES (?, ?, ?, ?)", [run.name, str(run.path), *files]
    )
    if run.current_result() is not None:
        connection.execute(
            "INSERT INTO results VALUES (?, ?)", [run.name, _json_or_none(run.result_file)]
        )
    if not records:
        return
    (before,) = connection.execute(_READ_WELL).fetchall()[0]
    fields = list(_kinds(connection, "records").items())[2:]
    kinds = ", ".join(f"{name}: {_text(kind)}" for name, kind in fields)
    # In brackets, a character of a pattern is only itself.
    file = re.sub(r"[*?[]", r"[\g<0>]", str(run.records_file.path))
    connection.execute(
        "INSERT INTO records SELECT ?, row_number() OVER () + ?, * FROM "
        f"read_ndjson(?, columns = {{{kinds}}}, ignore_errors = true) WHERE type IS NOT NULL",
        [run.name, before, file],
    )
    (after,) = connection.execute(_READ_WELL).fetchall()[0]
    if after - before < len(records):
        raise InputError(
            f"{run.records_file}: a line cannot be read as a table",
            hint="restore the file from a copy.",
        )
    _add_counting(connection, run.name, records)


def _kinds(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}


def _add_counting(
    connection: duckdb.DuckDBPyConnection, run: str, records: Sequence[Record]
) -> None:
    """Fill the tables of the attempts and trials that count, by the rule of ``rundir.counting``."""
    boots = counting.boots(records)
    trials = [trial for boot in boots for trial in counting.trials(boot.records)]
    attempts = [(run, boot.boot, boot.attempt) for boot in boots]
    counted = [(run, trial.boot, trial.attempt, trial.index, trial.usable) for trial in trials]
    for table, rows in (("counted_attempts", attempts), ("counting", counted)):
        if rows:
            kinds = _kinds(connection, table).values()
            select = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
            connection.execute(
                f"INSERT INTO {table} SELECT {select}",
                [list(column) for column in zip(*rows, strict=True)],
            )


def _columns(params: Mapping[str, bool], taken: set[str], point: str) -> str:
    """Return a column for every parameter, with the prefix ``param_`` if the name is in ``taken``.

    In SQL, N and n are the same name.
    """
    columns = ""
    used = {name.lower() for name in taken}
    for key, numeric in sorted(params.items()):
        name = f"param_{key}" if key.lower() in used else key
        used.add(name.lower())
        value = f"{point} ->> {_text(key)}"
        columns += f", {f'try_cast({value} AS BIGINT)' if numeric else value} AS {_name(name)}"
    return columns


def _json_or_none(file: Entry) -> str | None:
    """Return the text of a file that is a JSON object, or None without the file. Raises
    InputError."""
    return json.dumps(read_json(file)) if file.exists() else None


def _refused(error: duckdb.Error) -> InputError:
    return InputError(
        f"the query failed: {error}",
        hint=(
            "see the tables in `kteardown query --help`, and the columns of one with `DESCRIBE "
            "samples`."
        ),
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
