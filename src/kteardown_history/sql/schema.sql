-- The tables that are filled from the files of runs. ``records`` has the columns that are read from a line of
-- ``records.ndjson``; they are NULL if the line does not have the field.
CREATE TABLE records (run VARCHAR, line BIGINT,
    boot BIGINT, attempt BIGINT, trial BIGINT, repetition BIGINT, block BIGINT, seed BIGINT, session BIGINT,
    type VARCHAR, kernel VARCHAR, acceleration VARCHAR, started_at VARCHAR, outcome VARCHAR, detail VARCHAR,
    workload VARCHAR, metric VARCHAR, name VARCHAR, status VARCHAR, release VARCHAR, cmdline VARCHAR,
    banner VARCHAR, clocksource VARCHAR, cpu_model VARCHAR, hypervisor VARCHAR,
    memory_kb BIGINT, cpus_online BIGINT, cpus_possible BIGINT, nodes BIGINT, peak_rss_kb BIGINT,
    value DOUBLE, duration_s DOUBLE, first_record_s DOUBLE, host_load DOUBLE, at_s DOUBLE,
    ok BOOLEAN, warmup BOOLEAN, bits BIGINT, buckets BIGINT[][], params JSON, mitigations JSON, debug JSON);
CREATE TABLE run_files (run VARCHAR, path VARCHAR, experiment JSON, environment JSON);
CREATE TABLE results (run VARCHAR, result JSON);
CREATE TABLE counted_attempts (run VARCHAR, boot BIGINT, attempt BIGINT);
-- Every trial that counts, and whether its samples are usable (rundir.counting).
CREATE TABLE counting (run VARCHAR, boot BIGINT, attempt BIGINT, trial BIGINT, usable BOOLEAN);
