"""The SQL of the tables over records: which columns, and which records count.

``records`` has a row for each line. ``attempts`` and ``counted`` (the trials that count, by the rule of
``model.record``) are made from it, and the tables for users are made from those.
"""

import re
from collections.abc import Mapping
from typing import get_args

from kteardown.model.clock import IN_INSTRUCTIONS
from kteardown.model.workload import Unit
from kteardown.rundir.counting import EXACT

RECORD: Mapping[str, str] = {
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

ATTEMPTS = f"""
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
COUNTED = f"""
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

VIEWS: Mapping[str, str] = {
    "runs": """
SELECT run, path, experiment ->> 'name' AS experiment, experiment -> 'design' ->> 'clock' AS clock,
    experiment ->> 'source' AS source,
    (SELECT min(started_at) FROM attempts WHERE attempts.run = files.run) AS started_at,
    (SELECT count(DISTINCT boot) FROM attempts WHERE attempts.run = files.run AND outcome IS NOT NULL)
        AS boots,
    run IN (SELECT run FROM results) AS concluded,
    environment -> 'machine' -> 'cpu' ->> 'model' AS host_cpu,
    environment -> 'machine' ->> 'kernel' AS host_kernel,
    environment ->> 'command' AS command, experiment ->> 'question' AS question,
    environment -> 'machine' AS machine
FROM run_files AS files ORDER BY run""",
    "boots": """
SELECT *, (run, boot, attempt) IN (SELECT run, boot, attempt FROM counted_attempts
    UNION ALL SELECT run, boot, attempt FROM counted) AS counts
FROM attempts ORDER BY run, boot, attempt""",
    "trials": f"""
SELECT {_PLACE}, status, detail, at_s, {_COUNTED_PARAMS} AS params COLUMNS FROM counted ORDER BY run, line""",
    "samples": f"""
SELECT {_PLACE}, status, repetition, coalesce(warmup, false) AS warmup, metric, value,
    {_OF_SAMPLE}, {_COUNTED_PARAMS} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, warmup, metric, value, line AS place FROM records
    WHERE type = 'sample') JOIN counted USING (run, boot, attempt, trial) ORDER BY run, place""",
    "histograms": f"""
SELECT {_PLACE}, status, repetition, coalesce(warmup, false) AS warmup, metric, bits, pair[1] AS low,
    CASE WHEN low >> (bits + 1) > 0 THEN 1::BIGINT << (floor(log2(low))::BIGINT - bits) ELSE 1 END AS width,
    pair[2] AS n, {_OF_SAMPLE}, {_COUNTED_PARAMS} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, warmup, metric, bits, unnest(buckets) AS pair,
    line AS place FROM records WHERE type = 'histogram') JOIN counted USING (run, boot, attempt, trial)
ORDER BY run, place, low""",
    "checks": f"""
SELECT {_PLACE}, repetition, name, ok, said AS detail, {_COUNTED_PARAMS} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, name, ok, detail AS said, line AS place FROM records
    WHERE type = 'check') JOIN counted USING (run, boot, attempt, trial) ORDER BY run, place""",
    "comparisons": f"""
SELECT run, c ->> 'workload' AS workload, c ->> 'variant' AS variant, c ->> 'metric' AS metric,
    coalesce(c ->> 'statistic', 'median') AS statistic, {_OF_RESULT}, c ->> 'better' AS better,
    {_SIDE.format("base")}, {_SIDE.format("changed")}, (c ->> 'ratio')::DOUBLE AS ratio,
    {_PAIR.format("ci", "ci")}, (c ->> 'confidence')::DOUBLE AS confidence, (c ->> 'mde')::DOUBLE AS mde,
    c ->> 'verdict' AS verdict, (c ->> 'exact')::BOOLEAN AS exact, {_PAIR.format("null_ci", "null")},
    {_PAIR.format("layout_ci", "layout")}, {_P_VALUES}, (c ->> 'outliers')::BIGINT AS outliers,
    c ->> 'reason' AS reason, {_POINT} AS params COLUMNS
FROM (SELECT run, result ->> 'clock' AS clock, unnest(try_cast(result -> 'comparisons' AS JSON[])) AS c,
    c -> 'point' AS point FROM results)""",
    "laws": f"""
SELECT run, c ->> 'workload' AS workload, c ->> 'kernel' AS kernel, c ->> 'metric' AS metric,
    {_OF_RESULT}, c ->> 'param' AS param, c ->> 'model' AS model,
    (c ->> 'per_unit')::DOUBLE AS per_unit, {_PAIR.format("per_unit_ci", "per_unit")},
    (c ->> 'intercept')::DOUBLE AS intercept, (c ->> 'exponent')::DOUBLE AS exponent,
    {_PAIR.format("exponent_ci", "exponent")}, (c ->> 'r2')::DOUBLE AS r2,
    (c ->> 'points')::BIGINT AS points, {_POINT} AS params
FROM (SELECT run, result ->> 'clock' AS clock, unnest(try_cast(result -> 'laws' AS JSON[])) AS c
    FROM results)""",
}
# A result whose fields have other types must not end the queries of all runs: there they are NULL.
VIEWS = {name: _CAST.sub(r"try_cast(\1 AS \2)", text) for name, text in VIEWS.items()}
"""The tables for users. ``COLUMNS`` is replaced by a column for every parameter of any trial."""

POINT: Mapping[str, str] = {"comparisons": "c -> 'point'"}
"""The JSON with the parameters of a view, if it is not ``counted.params``."""
