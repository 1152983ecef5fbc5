"""JSON, and metrics for Prometheus."""

from __future__ import annotations

import json
import re

from kteardown_observe.documents import document_of, openmetrics_of
from kteardown_observe.judge import judge
from unit.observe.documents import counted, counts
from unit.observe.test_limits import machine, use

FOUND = judge(
    counts(
        zombies=counted(4213, ("bash[123]", 4000)),
        dying_memory_cgroups=counted(19_400),
        flocks=counted(3, ("fd:00:1", 3)),
    )
)
_LINE = re.compile(
    r'# (TYPE|HELP|UNIT) kteardown_[a-z_]+ .+|# EOF|kteardown_[a-z_]+(\{[a-z]+="[a-z0-9_]+"'
    r'(,[a-z]+="[a-z_]+")*\})? [0-9.e+]+'
)


def test_the_json_has_a_version_and_every_problem() -> None:
    document = json.loads(json.dumps(document_of(FOUND, None)))
    assert document["kteardown_observe"] == 1
    assert [problem["name"] for problem in document["problems"]] == [
        "dying_memory_cgroups",
        "zombies_suspend",
    ]
    assert "flocks" in document["absent"]
    assert document["unknown"]["mounts"]


def test_every_line_of_the_metrics_is_in_the_format() -> None:
    text = openmetrics_of(FOUND)
    assert text.endswith("# EOF\n")
    for line in text.splitlines():
        assert _LINE.fullmatch(line), line


def test_limits_have_lists_and_metrics_of_their_own() -> None:
    found = judge(machine(use("pid_max", 30_000, 32_768)))
    document = document_of(found, None)
    assert document["limits"][0]["is_close"]
    assert not document["problems"]
    metrics = openmetrics_of(found)
    assert 'kteardown_limit_used_ratio{limit="pid_max"} 0.915527' in metrics
    for line in metrics.splitlines():
        assert _LINE.fullmatch(line), line


def test_a_problem_that_is_absent_has_its_number_too() -> None:
    text = openmetrics_of(FOUND)
    assert 'kteardown_problem_objects{problem="flocks"} 3' in text
    assert 'kteardown_problem_present{problem="flocks"} 0' in text
    assert 'kteardown_problem_present{problem="zombies_suspend"} 1' in text
    assert 'kteardown_problem_memory_bytes{problem="dying_memory_cgroups"' in text
    assert 'kteardown_problem_cost_instructions{problem="dying_memory_cgroups"' not in text
