"""Records as tables: DuckDB over the ``records.ndjson`` files of run directories.

``records`` has a row for each line; a last line that was cut by a crash is left out. ``attempts`` and
``counted`` (the trials that count, by the rule of ``rundir.counting``) are made from it, and the tables for
users are made from those.
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

from kteardown.errors import InputError, LabError
from kteardown.model.clock import IN_INSTRUCTIONS
from kteardown.model.record import Record
from kteardown.model.workload import Unit
from kteardown.rundir import counting
from kteardown.rundir.counting import EXACT
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import read_json

_RECORD: Mapping[str, str] = {
    **dict.fromkeys(("boot", "attempt", "trial", "repetition", "block", "seed", "session"), "BIGINT"),
    **dict.fromkeys(("type", "kernel", "acceleration", "started_at", "outcome", "detail"), "VARCHAR"),
    **dict.fromkeys(("workload", "metric", "name", "status", "release", "cmdline", "banner"), "VARCHAR"),
    **dict.fromkeys(("clocksource", "cpu_model", "hypervisor"), "VARCHAR"),
    **dict.fromkeys(("memory_kb", "cpus_online", "cpus_possible", "nodes", "peak_rss_kb"), "BIGINT"),
    **dict.fromkeys(("value", "duration_s", "first_record_s", "host_load", "at_s"), "DOUBLE"),
    **dict.fromkeys(("ok", "warmup"), "BOOLEAN"),
    "bits": "BIGINT",
    "buckets": "BIGINT[][]",
    **dict.fromkeys(("params", "mitigations", "debug"), "JSON"),
}
"""The columns read from a line of ``records.ndjson``; NULL if the line does not have the field."""

_OF = "(FROM records WHERE type = '{}')"
_SAME_ATTEMPT = "USING (run, boot, attempt)"

_ATTEMPTS = f"""
SELECT s.run, s.boot, s.attempt, s.kernel, s.block, s.seed,
    CASE s.acceleration WHEN '{EXACT}' THEN 'instructions' ELSE 'wall' END AS clock,
    s.acceleration, s.session, try_cast(left(s.started_at, 23) AS TIMESTAMP) AS started_at,
    e.outcome, e.detail, e.duration_s, e.first_record_s, e.peak_rss_kb,
    s.host_load AS host_load_before, e.host_load AS host_load_after,
    h.release, h.cpu_model, h.hypervisor, h.cpus_online, h.cpus_possible, h.nodes, h.memory_kb,
    h.clocksource, h.cmdline, h.banner, h.mitigations, h.debug
FROM {_OF.format("boot_start")} AS s
LEFT JOIN {_OF.format("boot_end")} AS e {_SAME_ATTEMPT}
LEFT JOIN {_OF.format("hello")} AS h {_SAME_ATTEMPT}"""

# The table ``counting`` has every trial that counts, and whether its samples are usable (rundir.counting).
_COUNTED = f"""
SELECT run, kernel, block, seed, clock, boot, attempt, trial, workload, params, ended.status,
    ended.detail, at_s, line, usable
FROM counting
    JOIN (SELECT run, boot, attempt, trial, workload, params, line FROM records WHERE type = 'trial_start')
        USING (run, boot, attempt, trial)
    JOIN attempts {_SAME_ATTEMPT}
    LEFT JOIN (SELECT run, boot, attempt, trial, status, detail, at_s FROM records WHERE type = 'trial_end')
        AS ended USING (run, boot, attempt, trial)"""

_AS_MAP = "MAP_FROM_ENTRIES([{{k: key, v: {0} ->> key}} FOR key IN json_keys({0})])"
_PLACE = "run, kernel, block, seed, clock, boot, attempt, trial, workload"
_COUNTED_PARAMS = _AS_MAP.format("counted.params")
_POINT = _AS_MAP.format("(c -> 'point')")
_PAIR = "(c -> '{0}' ->> 0)::DOUBLE AS {1}_low, (c -> '{0}' ->> 1)::DOUBLE AS {1}_high"
_PAIRS = ("ci", "null_ci", "layout_ci", "per_unit_ci", "exponent_ci")
_SIDE = ", ".join(
    f"(c -> '{{0}}' ->> '{name}')::{kind} AS {{0}}_{name}"
    for name, kind in {
        **dict.fromkeys(("median", "mean", "sd"), "DOUBLE"),
        **dict.fromkeys(("n", "boots"), "BIGINT"),
        "percentile": "DOUBLE",
    }.items()
)
_P_VALUES = ", ".join(f"(c ->> '{name}')::DOUBLE AS {name}" for name in ("p", "p_holm", "p_rank", "p_same"))


def _value_unit(unit: str, clock: str) -> str:
    """Return the SQL of ``model.value_unit``."""
    counted = " ".join(f"WHEN '{name}' THEN '{of_values}'" for name, of_values in IN_INSTRUCTIONS.items())
    return f"CASE {clock} WHEN 'instructions' THEN CASE {unit} {counted} ELSE {unit} END ELSE {unit} END"


_CAST = re.compile(r"(\(c ->[^()]*\))::(\w+)")
# The key of a metric ends in its unit.
_OF_KEY = f"nullif(regexp_extract(metric, '_({'|'.join(get_args(Unit))})$', 1), '')"
_OF_SAMPLE = f"{_value_unit(_OF_KEY, 'clock')} AS value_unit"
_OF_RESULT = f"c ->> 'unit' AS unit, {_value_unit('unit', 'clock')} AS value_unit"

_NAMED = {
    **{"place": _PLACE, "params": _COUNTED_PARAMS, "point": _POINT, "p_values": _P_VALUES},
    **{"unit_of_sample": _OF_SAMPLE, "unit_of_result": _OF_RESULT},
    **{side: _SIDE.format(side) for side in ("base", "changed")},
    **{pair: _PAIR.format(pair, pair.removesuffix("_ci")) for pair in _PAIRS},
}
_TEXT = files("kteardown.sql").joinpath("views.sql").read_text().format(**_NAMED)
_PARTS = re.split(r"\n\n-- (\w+)\n", _TEXT.rstrip())[1:]
# A result whose fields have other types must not end the queries of all runs: there they are NULL.
VIEWS = {n: _CAST.sub(r"try_cast(\1 AS \2)", t) for n, t in zip(_PARTS[::2], _PARTS[1::2], strict=True)}
"""The tables for users. ``COLUMNS`` is replaced by a column for every parameter of any trial."""


TABLES = tuple(VIEWS)
_ROWS = 10_000
_READ = duckdb.StatementType
# MULTI is PIVOT. A PRAGMA that sets something is a SET.
_READING = (_READ.SELECT, _READ.EXPLAIN, _READ.PRAGMA, _READ.MULTI)
# A map cannot have a key twice.
_READ_WELL = """
SELECT count(*) FROM records
WHERE params IS NULL OR len(json_keys(params)) = len(list_distinct(json_keys(params)))"""
_TABLES: Mapping[str, Mapping[str, str]] = {
    "records": {"run": "VARCHAR", "line": "BIGINT", **_RECORD},
    "run_files": {"run": "VARCHAR", "path": "VARCHAR", "experiment": "JSON", "environment": "JSON"},
    "results": {"run": "VARCHAR", "result": "JSON"},
    "counted_attempts": {"run": "VARCHAR", "boot": "BIGINT", "attempt": "BIGINT"},
    "counting": {
        "run": "VARCHAR",
        **dict.fromkeys(("boot", "attempt", "trial"), "BIGINT"),
        "usable": "BOOLEAN",
    },
}
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

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, skipped: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._connection = connection
        self.skipped = skipped
        """Why runs are left out, by name."""

    def query(self, sql: str) -> Answer:
        """Run ``sql``. Raises InputError if it does not only read, or with DuckDB's message if it fails."""
        try:
            statements = self._connection.extract_statements(sql)
            if not statements:
                raise InputError("the query is empty", hint="see the examples of `kteardown query --help`.")
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
    once, before files are locked. A run that cannot be read is left out (``Database.skipped``).
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
    for table, columns in _TABLES.items():
        listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({listed})")
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
    connection.execute(f"CREATE TABLE attempts AS {_ATTEMPTS}")
    connection.execute(f"CREATE TABLE counted AS {_COUNTED}")
    params = {**parameters, **dict(connection.execute(_PARAMS).fetchall())}
    for name, select in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {select.replace(' COLUMNS', '')}")
        if " COLUMNS" in select:
            taken = set(Database(connection).columns(name))
            point = "c -> 'point'" if name == "comparisons" else "counted.params"
            columns_of = _columns(params, taken, point)
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS {select.replace(' COLUMNS', columns_of)}")
    return skipped


def _add(connection: duckdb.DuckDBPyConnection, run: RunDir) -> None:
    """Add a run to the tables. Raises InputError or DuckDB's error if it cannot be read whole."""
    records = run.records()
    files = [_json_or_none(file) for file in (run.experiment_file, run.environment_file)]
    connection.execute("INSERT INTO run_files VALUES (?, ?, ?, ?)", [run.name, str(run.path), *files])
    if run.current_result() is not None:
        connection.execute("INSERT INTO results VALUES (?, ?)", [run.name, _json_or_none(run.result_file)])
    if not records:
        return
    (before,) = connection.execute(_READ_WELL).fetchall()[0]
    kinds = ", ".join(f"{name}: {_text(kind)}" for name, kind in _RECORD.items())
    # In brackets, a character of a pattern is only itself.
    file = re.sub(r"[*?[]", r"[\g<0>]", str(run.records_file))
    connection.execute(
        "INSERT INTO records SELECT ?, row_number() OVER () + ?, * FROM "
        f"read_ndjson(?, columns = {{{kinds}}}, ignore_errors = true) WHERE type IS NOT NULL",
        [run.name, before, file],
    )
    (after,) = connection.execute(_READ_WELL).fetchall()[0]
    if after - before < len(records):
        raise InputError(
            f"{run.records_file}: a line cannot be read as a table", hint="restore the file from a copy."
        )
    _add_counting(connection, run.name, records)


def _add_counting(connection: duckdb.DuckDBPyConnection, run: str, records: Sequence[Record]) -> None:
    """Fill the tables of the attempts and trials that count, by the rule of ``rundir.counting``."""
    boots = counting.boots(records)
    trials = [trial for boot in boots for trial in counting.trials(boot.records)]
    attempts = [(run, boot.boot, boot.attempt) for boot in boots]
    counted = [(run, trial.boot, trial.attempt, trial.index, trial.usable) for trial in trials]
    for table, rows in (("counted_attempts", attempts), ("counting", counted)):
        if rows:
            kinds = _TABLES[table].values()
            select = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
            connection.execute(
                f"INSERT INTO {table} SELECT {select}", [list(column) for column in zip(*rows, strict=True)]
            )


def _columns(params: Mapping[str, bool], taken: set[str], point: str) -> str:
    """Return a column for every parameter, with the prefix ``param_`` if the name is in ``taken``.

    In SQL, N and n are the same name.
    """
    columns, used = "", {name.lower() for name in taken}
    for key, numeric in sorted(params.items()):
        name = f"param_{key}" if key.lower() in used else key
        used.add(name.lower())
        value = f"{point} ->> {_text(key)}"
        columns += f", {f'try_cast({value} AS BIGINT)' if numeric else value} AS {_name(name)}"
    return columns


def _json_or_none(file: Path) -> str | None:
    """Return the text of a file that is a JSON object, or None without the file. Raises InputError."""
    return json.dumps(read_json(file)) if file.is_file() else None


def _refused(error: duckdb.Error) -> InputError:
    return InputError(
        f"the query failed: {error}",
        hint="see the tables in `kteardown query --help`, and the columns of one with `DESCRIBE samples`.",
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
