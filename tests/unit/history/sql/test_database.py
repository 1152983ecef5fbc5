"""Records as tables: the records that count are those of ``rundir``, and damaged files are
ignored."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kteardown.errors import InputError, LabError
from kteardown.model.record import (
    BootEnd,
    BootStart,
    Buckets,
    Check,
    Outcome,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown_history.sql.database import TABLES, database


def start(acceleration: str) -> BootStart:
    return BootStart(
        kernel="base",
        block=0,
        seed=7,
        acceleration=acceleration,
        host_load=0.5,
        started_at="2026-03-01T12:30:59.250+00:00",
    )


def end(outcome: Outcome = "ok") -> BootEnd:
    return BootEnd(
        outcome=outcome, duration_s=2.5, first_record_s=1.0, command=["q"], host_load=0.5
    )


def trial(index: int, value: int, *, whole: bool = True) -> list[Record]:
    begun: list[Record] = [
        TrialStart(
            trial=index,
            workload="zombies",
            params={"zombies": 100 * index, "make": "shared", "run": 1},
        ),
        Sample(trial=index, repetition=0, metric="freeze_user_ns", value=value, warmup=True),
        Sample(trial=index, repetition=1, metric="freeze_user_ns", value=value),
        Check(trial=index, repetition=1, name="all", ok=True, detail="3"),
    ]
    return [*begun, TrialEnd(trial=index, status="ok", at_s=1.5)] if whole else begun


def make(
    root: Path, attempts: Sequence[Sequence[Record]], result: dict[str, Any] | None = None
) -> RunDir:
    run = RunDir.create(root, "freezer")
    run.save(
        run.environment_file,
        json.dumps({"command": "kteardown run", "machine": {"cpu": {"model": "A"}}}),
    )
    design = {"clock": "wall"}
    run.save(
        run.experiment_file,
        json.dumps({"name": "freezer", "source": "debian:6.12", "design": design}),
    )
    with open_writer(run) as log:
        for number, records in enumerate(attempts):
            for record in records:
                log.append(record, boot=0, attempt=number)
    if result is not None:
        run.save(run.result_file, json.dumps({**result, "ended_boots": run.ended_boots()}))
    return run


CUT = [
    [start("kvm"), *trial(0, 10), *trial(1, 11, whole=False)],
    [start("kvm"), *trial(1, 21), *trial(2, 22, whole=False)],
    [start("kvm"), *trial(2, 32), end()],
]


def ask(runs: Sequence[RunDir], sql: str) -> list[tuple[Any, ...]]:
    with database(runs) as tables:
        return list(tables.query(sql).rows)


@pytest.mark.parametrize(
    "attempts",
    [
        CUT,
        [[start("icount"), *trial(0, 10)], [start("icount"), *trial(0, 10), *trial(1, 11), end()]],
        [
            [start("icount"), *trial(0, 10), *trial(1, 1)],
            [start("icount"), *trial(0, 10), end("panic")],
        ],
        [
            [start("kvm"), *trial(0, 1), end("infrastructure-error")],
            [start("kvm"), *trial(0, 2), end()],
        ],
        [[start("kvm"), *trial(0, 1), *trial(1, 1)], [start("kvm"), *trial(0, 2), end("panic")]],
        [[start("kvm"), *trial(0, 1)]],
        [[start("kvm"), *trial(0, 1), end()], [start("kvm"), *trial(0, 2)]],
    ],
)
def test_the_samples_that_count_are_those_of_rundir(
    tmp_path: Path, attempts: Sequence[Sequence[Record]]
) -> None:
    run = make(tmp_path, attempts)
    expected = [
        (r.trial, r.repetition, float(r.value))
        for boot in run.boots()
        for r in boot.records
        if isinstance(r, Sample)
    ]
    assert ask([run], "SELECT trial, repetition, value FROM samples") == expected


def test_boots_has_every_attempt_and_whether_it_counts(tmp_path: Path) -> None:
    run = make(tmp_path, [*CUT, [start("kvm")]])
    found = ask([run], "SELECT attempt, clock, outcome, counts FROM boots")
    assert found == [
        (0, "wall", None, True),
        (1, "wall", None, True),
        (2, "wall", "ok", True),
        (3, "wall", None, False),
    ]


def test_parameters_are_a_map_and_columns(tmp_path: Path) -> None:
    run = make(tmp_path, CUT)
    chosen = "zombies, make, param_run, params['zombies'], run"
    sql = f"SELECT {chosen} FROM samples WHERE NOT warmup ORDER BY zombies"
    assert ask([run], sql) == [(n, "shared", 1, str(n), run.name) for n in (0, 100, 200)]
    assert ask([run], "SELECT status, at_s, zombies FROM trials WHERE trial = 1") == [
        ("ok", 1.5, 100)
    ]
    assert ask([run], "SELECT name, ok, detail, zombies FROM checks WHERE trial = 1") == [
        ("all", True, "3", 100)
    ]


def test_parameters_and_columns_that_differ_only_in_capitals(tmp_path: Path) -> None:
    params: dict[str, int | str] = {"N": 5, "n": 6, "STATUS": 1}
    started = TrialStart(trial=0, workload="mine", params=params)
    left: list[Record] = [
        OutputLine(trial=0, repetition=0, source="script", at_ns=5, text="x"),
        Delta(trial=0, repetition=0, file="meminfo", name="Slab", before=-1, after=2**62),
        ScriptEnd(trial=0, repetition=0, how="exit", code=0),
    ]
    run = make(tmp_path, [[start("icount"), started, *left, TrialEnd(trial=0, status="ok"), end()]])
    assert ask([run], "SELECT N, param_n, status, param_STATUS FROM trials") == [(5, 6, "ok", 1)]
    # Of other types of records there are no tables.
    assert (
        ask([run], "SELECT count(*) FROM checks")
        == ask([run], "SELECT count(*) FROM samples")
        == [(0,)]
    )


def test_a_histogram_has_a_row_for_each_bucket(tmp_path: Path) -> None:
    first, *others, last = trial(0, 1)
    lines = [
        Buckets(
            trial=0, repetition=1, metric="wakeup_ns", bits=8, buckets=((3, 2), (511, 1), (512, 4))
        ),
        Buckets(trial=0, repetition=1, metric="wakeup_ns", bits=8, buckets=((2**39, 5),)),
    ]
    run = make(tmp_path, [[start("kvm"), first, *others, *lines, last, end()]])
    assert ask([run], "SELECT metric, low, width, n, zombies FROM histograms WHERE NOT warmup") == [
        ("wakeup_ns", 3, 1, 2, 0),
        ("wakeup_ns", 511, 1, 1, 0),
        ("wakeup_ns", 512, 2, 4, 0),
        ("wakeup_ns", 2**39, 2**31, 5, 0),
    ]


def test_an_incomplete_line_is_ignored(tmp_path: Path) -> None:
    run = make(tmp_path, CUT)
    whole = ask([run], "SELECT * EXCLUDE (params) FROM samples")
    for cut in (b'{"boot":0,"att', b"\x00\xff", b'{"type":"sam'):
        with run.records_file.path.open("ab") as stream:
            stream.write(cut)
        assert ask([run], "SELECT * EXCLUDE (params) FROM samples") == whole
        run.records_file.path.write_bytes(run.records_file.path.read_bytes()[: -len(cut)])


def test_without_runs_tables_are_empty() -> None:
    with database([], parameters={"zombies": True}) as tables:
        assert [list(tables.query(f"SELECT * FROM {table}").rows) for table in TABLES] == [[]] * 8
        assert list(tables.query("SELECT sum(zombies) FROM samples").rows) == [(None,)]


RESULT: dict[str, Any] = {
    "comparisons": [
        {
            "workload": "zombies",
            "variant": "v",
            "metric": "m",
            "point": {"zombies": 3},
            "base": {"median": 2.0, "boots": 4},
            "ratio": 0.5,
            "ci": [0.4, 0.6],
            "verdict": "better",
            "null_ci": None,
        }
    ],
    "boots": {"ok": 1},
    "laws": [
        {
            "kernel": "base",
            "model": "linear",
            "per_unit": 68.0,
            "exponent_ci": [0.9, 1.1],
            "point": {},
        }
    ],
}


@pytest.mark.parametrize(("acceleration", "clock"), [("icount", "instructions"), ("kvm", "wall")])
def test_each_value_has_the_unit_that_the_clock_gives(
    tmp_path: Path, acceleration: str, clock: str
) -> None:
    begin, *samples, check, last = trial(0, 1)
    more = [
        Sample(trial=0, repetition=1, metric=f"x_{unit}", value=1)
        for unit in ("us", "per_s", "kb", "parts")
    ]
    bucket = Buckets(trial=0, repetition=1, metric="wakeup_ns", bits=8, buckets=((3, 2),))
    records = [start(acceleration), begin, *samples, *more, bucket, check, last, end()]
    law = {**RESULT["laws"][0], "unit": "ns"}
    comparison = {**RESULT["comparisons"][0], "unit": "ns"}
    run = make(
        tmp_path, [records], {**RESULT, "clock": clock, "comparisons": [comparison], "laws": [law]}
    )
    exact = clock == "instructions"
    time = "instructions" if exact else "ns"
    assert ask([run], "SELECT metric, value_unit FROM samples WHERE NOT warmup") == [
        ("freeze_user_ns", time),
        ("x_us", "1000 instructions" if exact else "us"),
        ("x_per_s", "per 1e9 instructions" if exact else "per_s"),
        ("x_kb", "kb"),
        ("x_parts", None),
    ]
    for table in ("histograms", "comparisons", "laws"):
        assert ask([run], f"SELECT value_unit FROM {table}") == [(time,)], table


def test_results_of_all_schemas_are_tables(tmp_path: Path) -> None:
    run = make(tmp_path, [[start("kvm"), *trial(0, 1), end()]], RESULT)
    chosen = "zombies, statistic, base_median, ratio, ci_low, ci_high, null_low, p, verdict"
    (row,) = ask([run], f"SELECT {chosen} FROM comparisons")
    assert row == (3, "median", 2.0, 0.5, 0.4, 0.6, None, None, "better")
    assert ask([run], "SELECT kernel, per_unit, exponent_low FROM laws") == [("base", 68.0, 0.9)]
    assert ask([run], "SELECT experiment, clock, boots, concluded, host_cpu FROM runs") == [
        ("freezer", "wall", 1, True, "A")
    ]


def test_with_a_damaged_result_the_rest_can_be_queried(tmp_path: Path) -> None:
    good, bad = (make(tmp_path, [[start("kvm"), *trial(0, 1), end()]], RESULT) for _ in range(2))
    bad.result_file.path.write_text('{"comparisons": [')
    assert ask([good, bad], "SELECT run FROM comparisons") == [(good.name,)]
    assert ask([good, bad], "SELECT run, concluded FROM runs") == [
        (good.name, True),
        (bad.name, False),
    ]


def test_a_result_of_fewer_boots_is_not_shown(tmp_path: Path) -> None:
    boot = [start("kvm"), *trial(0, 1), end()]
    run = make(tmp_path, [boot], RESULT)
    assert ask([run], "SELECT concluded FROM runs") == [(True,)]
    with open_writer(run) as log:
        for record in boot:
            log.append(record, boot=1, attempt=0)
    for table in ("comparisons", "laws"):
        assert ask([run], f"SELECT count(*) FROM {table}") == [(0,)]
    assert ask([run], "SELECT concluded FROM runs") == [(False,)]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE samples",
        "drop view samples",
        "SELECT 1; DROP TABLE records",
        "CREATE TABLE x AS SELECT 1",
        "DELETE FROM records",
        "COPY samples TO 'x.csv'",
        "ATTACH 'x.db'",
        "EXPORT DATABASE 'x'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "PRAGMA threads = 1",
    ],
)
def test_a_query_can_only_read(tmp_path: Path, sql: str) -> None:
    words = "DROP|CREATE|DELETE|COPY|ATTACH|EXPORT|INSTALL|SET|PRAGMA"
    with pytest.raises(
        InputError, match=rf"^({words}) is refused: only statements that read are allowed$"
    ):
        ask([make(tmp_path, CUT)], sql)


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE samples",
        "SUMMARIZE samples",
        "EXPLAIN SELECT 1",
        "SHOW TABLES",
        "FROM samples",
        "WITH a AS (SELECT 1 AS b) SELECT b FROM a",
        "PIVOT (SELECT kernel, value FROM samples) ON kernel USING sum(value)",
    ],
)
def test_every_statement_that_reads_is_allowed(tmp_path: Path, sql: str) -> None:
    assert ask([make(tmp_path, CUT)], sql)


def test_a_query_cannot_access_files(tmp_path: Path) -> None:
    run = make(tmp_path, CUT)
    with pytest.raises(InputError, match="the query failed"):
        ask([run], f"SELECT * FROM read_text('{run.environment_file}')")


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "SELECT nonesuch FROM samples", "SELECT 'x'::INT", "", " "]
)
def test_a_query_that_fails_is_an_input_error(tmp_path: Path, sql: str) -> None:
    with pytest.raises(InputError):
        ask([make(tmp_path, CUT)], sql)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_exported_file_can_be_read(tmp_path: Path, form: str) -> None:
    run = make(tmp_path / "runs", CUT, RESULT)
    with database([run], locked=False) as tables:
        rows = {table: tables.save(table, tmp_path / f"{table}.{form}", form) for table in TABLES}
        file = tmp_path / f"samples.{form}"
        again = list(tables.query(f"SELECT zombies, value FROM '{file}'").rows)
        assert again == list(tables.query("SELECT zombies, value FROM samples").rows)
    assert rows == {
        "runs": 1,
        "boots": 3,
        "trials": 3,
        "samples": 6,
        "histograms": 0,
        "checks": 3,
        "comparisons": 1,
        "laws": 1,
    }
    if form == "csv":
        header = next(csv.reader(file.open()))
        assert "params" not in header
        assert "zombies" in header


def test_the_error_of_a_failed_write_names_the_file(tmp_path: Path) -> None:
    with (
        database([], locked=False) as tables,
        pytest.raises(LabError, match=r"nowhere/samples\.csv"),
    ):
        tables.save("samples", tmp_path / "nowhere" / "samples.csv", "csv")
