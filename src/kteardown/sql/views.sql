-- The tables for users. COLUMNS is replaced by a column for every parameter of any trial, and a word in
-- braces by an expression of database.py.

-- runs
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
FROM run_files AS files ORDER BY run

-- boots
SELECT *, (run, boot, attempt) IN (SELECT run, boot, attempt FROM counted_attempts
    UNION ALL SELECT run, boot, attempt FROM counted) AS counts
FROM attempts ORDER BY run, boot, attempt

-- trials
SELECT {place}, status, detail, at_s, {params} AS params COLUMNS FROM counted ORDER BY run, line

-- samples
SELECT {place}, status, repetition, coalesce(warmup, false) AS warmup, metric, value,
    {unit_of_sample}, {params} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, warmup, metric, value, line AS place FROM records
    WHERE type = 'sample') JOIN counted USING (run, boot, attempt, trial) ORDER BY run, place

-- histograms
SELECT {place}, status, repetition, coalesce(warmup, false) AS warmup, metric, bits, pair[1] AS low,
    CASE WHEN low >> (bits + 1) > 0 THEN 1::BIGINT << (floor(log2(low))::BIGINT - bits) ELSE 1 END AS width,
    pair[2] AS n, {unit_of_sample}, {params} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, warmup, metric, bits, unnest(buckets) AS pair,
    line AS place FROM records WHERE type = 'histogram') JOIN counted USING (run, boot, attempt, trial)
ORDER BY run, place, low

-- checks
SELECT {place}, repetition, name, ok, said AS detail, {params} AS params COLUMNS
FROM (SELECT run, boot, attempt, trial, repetition, name, ok, detail AS said, line AS place FROM records
    WHERE type = 'check') JOIN counted USING (run, boot, attempt, trial) ORDER BY run, place

-- comparisons
SELECT run, c ->> 'workload' AS workload, c ->> 'variant' AS variant, c ->> 'metric' AS metric,
    coalesce(c ->> 'statistic', 'median') AS statistic, {unit_of_result}, c ->> 'better' AS better,
    {base}, {changed}, (c ->> 'ratio')::DOUBLE AS ratio,
    {ci}, (c ->> 'confidence')::DOUBLE AS confidence, (c ->> 'mde')::DOUBLE AS mde,
    c ->> 'verdict' AS verdict, (c ->> 'exact')::BOOLEAN AS exact, {null_ci},
    {layout_ci}, {p_values}, (c ->> 'outliers')::BIGINT AS outliers,
    c ->> 'reason' AS reason, {point} AS params COLUMNS
FROM (SELECT run, result ->> 'clock' AS clock, unnest(try_cast(result -> 'comparisons' AS JSON[])) AS c,
    c -> 'point' AS point FROM results)

-- laws
SELECT run, c ->> 'workload' AS workload, c ->> 'kernel' AS kernel, c ->> 'metric' AS metric,
    {unit_of_result}, c ->> 'param' AS param, c ->> 'model' AS model,
    (c ->> 'per_unit')::DOUBLE AS per_unit, {per_unit_ci},
    (c ->> 'intercept')::DOUBLE AS intercept, (c ->> 'exponent')::DOUBLE AS exponent,
    {exponent_ci}, (c ->> 'r2')::DOUBLE AS r2,
    (c ->> 'points')::BIGINT AS points, {point} AS params
FROM (SELECT run, result ->> 'clock' AS clock, unnest(try_cast(result -> 'laws' AS JSON[])) AS c
    FROM results)
