"""Presets, on what the benchmarks printed."""

from __future__ import annotations

import pytest

from kteardown.paths import data_dir
from kteardown.script.extract import metric_of, parse_reading, values
from kteardown.script.presets import PRESETS, preset_metrics, preset_of
from kteardown.script.tap import tap_failures
from unit.script.lines import logged, printed, recorded


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("schbench -m 2", "schbench"),
        ("LC_ALL=C A='b c' /usr/bin/stress-ng --fork 1", "stress-ng"),
        ("perf bench sched pipe", "perf bench"),
        ("perf_6.1 bench sched pipe", "perf bench"),
        ("perf stat true", ""),
        ("./page_fault1_processes -t 2", "will-it-scale"),
        ("hackbench", ""),
        ("cyclictest -q", "cyclictest"),
        ("sh -c schbench", ""),
        ("echo 'schbench", ""),
        ("A=1", ""),
        ("", ""),
    ],
)
def test_a_preset_is_found_by_the_program(command: str, program: str) -> None:
    assert preset_of(command) == program


@pytest.mark.parametrize(
    ("program", "recording", "expected"),
    [
        (
            "schbench",
            "schbench",
            {
                "wakeup_p50_ns": [4_000],
                "wakeup_p99_ns": [709_000],
                "request_p50_ns": [3_132_000],
                "request_p99_ns": [12_048_000],
                "requests_per_s": [138],
            },
        ),
        (
            "schbench",
            "schbench-reports",
            {
                "wakeup_p50_ns": [2_404_000],
                "wakeup_p99_ns": [9_872_000],
                "request_p50_ns": [3_188_000],
                "request_p99_ns": [11_056_000],
                "requests_per_s": [122.79],
            },
        ),
        (
            "stress-ng",
            "stress-ng",
            {
                "real_time_ns": [68_200_000],
                "system_time_ns": [20_297_000],
                "operations_per_s": [1466.278391],
            },
        ),
        (
            "perf bench",
            "perf-bench",
            {"operation_ns": [296_818], "operations_per_s": [3369], "total_ns": [148_000_000]},
        ),
        ("will-it-scale", "will-it-scale", {"iterations_per_s": [303_127]}),
        (
            "cyclictest",
            "cyclictest",
            {
                "latency_avg_ns": [473_000, 149_000],
                "latency_max_ns": [961_000, 1_419_000],
                "latency_min_ns": [119_000, 64_000],
            },
        ),
    ],
)
def test_a_preset_reads_its_benchmark(
    program: str, recording: str, expected: dict[str, list[float]]
) -> None:
    output = recorded(recording)
    metrics = preset_metrics(program, output)
    read = {
        key: [one.value for one in values(parse_reading(metric.read), metric.unit, output, [])]
        for key, metric in metrics.items()
    }
    assert read == expected
    assert all(
        metric.better == ("higher" if key.endswith("per_s") else "lower")
        for key, metric in metrics.items()
    )


def test_the_table_of_stress_ng_is_read_where_there_is_no_yaml() -> None:
    table = [line for line in recorded("stress-ng") if line.text.startswith("stress-ng:")]
    metrics = preset_metrics("stress-ng", table)
    (real,) = values(parse_reading(metrics["real_time_ns"].read), "ns", table, [])
    assert (real.value, real.resolution) == (70_000_000, 10_000_000)
    (system,) = values(parse_reading(metrics["system_time_ns"].read), "ns", table, [])
    assert system.value == 20_000_000
    (rate,) = values(parse_reading(metrics["operations_per_s"].read), "per_s", table, [])
    assert rate.value == 1466.28


def test_the_older_schbench_is_read() -> None:
    old = printed(
        "Latency percentiles (usec)", "\t50.0000th: 22", "\t*99.0000th: 2132", "\tmin=0, max=25313"
    )
    metrics = preset_metrics("schbench", old)
    assert {
        key: values(parse_reading(one.read), "ns", old, [])[0].value for key, one in metrics.items()
    } == {
        "wakeup_p50_ns": 22_000,
        "wakeup_p99_ns": 2_132_000,
    }


def test_every_entry_of_a_preset_is_a_metric() -> None:
    found = [
        (name, spec) for of in PRESETS.values() for name, forms in of.items() for spec in forms
    ]
    assert len(found) == 21
    for name, spec in found:
        metric_of(name, spec)


@pytest.mark.parametrize(
    ("lines", "failures"),
    [
        (["TAP version 13", "1..2", "ok 1 a", "ok 2 b"], []),
        (["TAP version 13", "1..2", "ok 1 a", "not ok 2 b"], ["not ok 2 b"]),
        (["KTAP version 1", "1..1", "    not ok 1 inner", "# not ok 2 inner", "ok 1 outer"], []),
        (["1..3", "ok 1", "not ok 2 # SKIP no swap", "not ok 3 x # TODO later"], []),
        (["1..2", "ok 1 a"], ["2 results were planned, and 1 printed"]),
        (["TAP version 13", "ok 1 a", "Bail out! no memory"], ["Bail out! no memory"]),
        (["1..1", "okay 1", "ok 1 a"], []),
        (["not ok, said the script"], []),
        (["1..0 # SKIP not root"], []),
    ],
)
def test_a_failed_result_of_tap_is_a_failure(lines: list[str], failures: list[str]) -> None:
    assert tap_failures([*printed(*lines), *logged((1, "not ok 9 in the log"))]) == failures


def test_a_script_has_the_preset_of_the_first_program_that_it_runs() -> None:
    assert preset_of((data_dir("postings") / "scripts" / "throttle.sh").read_text()) == "schbench"
    assert (
        preset_of("#!/bin/sh\n# schbench runs later\necho 'it is\n\tperf bench sched pipe\n")
        == "perf bench"
    )
    assert preset_of("") == ""
