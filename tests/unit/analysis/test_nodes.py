"""On how many nodes a claim holds, and whether the change depends on the node."""

from __future__ import annotations

import random
from collections.abc import Mapping

from kteardown.analysis.nodes import node_notes
from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.model.result import MetricVerdict
from kteardown.rundir.counting import BootRecords

CLAIM = MetricVerdict(
    workload="zombies",
    variant="v",
    metric="freeze_user_ns",
    unit="ns",
    better="lower",
    points=1,
    planned=1,
    boots=8,
    ratio=0.9,
    ci=(0.85, 0.95),
    confidence=0.95,
    mde=None,
    verdict="better",
)


def _boot(number: int, block: int, kernel: str, node: str, value: float) -> BootRecords:
    start = BootStart(
        kernel=kernel, block=block, seed=1, acceleration="kvm", host_load=0, started_at="", node=node
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=0.5, command=[], host_load=0)
    records: tuple[Record, ...] = (
        TrialStart(trial=0, workload="zombies", params={"zombies": 3}),
        Sample(trial=0, repetition=0, metric="freeze_user_ns", value=value),
        TrialEnd(trial=0, status="ok"),
    )
    return BootRecords(number, 0, start, end, records)


def _boots(changes: Mapping[str, float], speeds: Mapping[str, float], blocks: int = 4) -> list[BootRecords]:
    rng, boots = random.Random(1), list[BootRecords]()
    for block in range(blocks * len(changes)):
        node = list(changes)[block % len(changes)]
        speed = speeds.get(node, 1.0) * 1000
        noise = 1 + rng.gauss(0, 0.002)
        boots.append(_boot(2 * block, block, "base", node, speed))
        boots.append(_boot(2 * block + 1, block, "v", node, speed * changes[node] * noise))
    return boots


def test_a_node_that_is_slower_as_a_whole_changes_nothing() -> None:
    alike = node_notes([CLAIM], _boots({"n1": 0.9, "n2": 0.9}, {}))
    slower = node_notes([CLAIM], _boots({"n1": 0.9, "n2": 0.9}, {"n2": 3.0}))
    assert alike == slower
    assert len(alike) == 1
    assert "on 2 of 2 nodes" in alike[0]


def test_a_change_that_depends_on_the_node_is_named() -> None:
    first, second = node_notes([CLAIM], _boots({"n1": 0.8, "n2": 1.02}, {}))
    assert "on 1 of 2 nodes; median of each, with its blocks: n1 -" in first
    assert "the change differs between the nodes (p = " in second


def test_a_run_on_one_node_and_a_metric_that_is_the_same_have_no_note() -> None:
    assert node_notes([CLAIM], _boots({"n1": 0.9}, {})) == []
    same = CLAIM.model_copy(update={"verdict": "same"})
    assert node_notes([same], _boots({"n1": 0.9, "n2": 0.9}, {})) == []
