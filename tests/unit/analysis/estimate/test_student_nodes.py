"""The node of a cluster as a factor: what cancels, what an interval includes, and what the report
says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kteardown.analysis.estimate.student import over_nodes
from kteardown.analysis.estimate.verdict import Estimate, Rules
from kteardown.model.record import Record, Sample
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from unit import validation as v
from unit.worlds import World, experiment, normal

QUIET = World(name="", shifts=normal(0.01), jitter=normal(0.01))
RULES = Rules(0.95, 0.02)


def _result(
    changes: Mapping[str, float], speeds: Mapping[str, float] | None = None, *, points: int = 1
) -> Result:
    """Return the result of 12 blocks that are dealt to the nodes, on which the variant costs
    ``changes``."""
    names = sorted(changes)

    def on(boot: BootRecords) -> BootRecords:
        node = names[boot.start.block % len(names)]
        cost = changes[node] if boot.start.kernel.startswith("variant") else 1.0
        factor = cost * (speeds or {}).get(node, 1.0)
        scaled: list[Record] = [
            record.model_copy(update={"value": record.value * factor})
            if isinstance(record, Sample)
            else record
            for record in boot.records
        ]
        place = {"acceleration": "kvm", "node": node, "job": str(boot.start.block)}
        start = boot.start.model_copy(update=place)
        return replace(boot, start=start, records=tuple(scaled))

    return v.reports(QUIET, 1.0, experiment(12, points=points), 1, on=on)()


def _of_nodes(result: Result) -> list[str]:
    return [note for note in result.notes if note.startswith("variant-0, ")]


@pytest.mark.parametrize("points", [1, 3])
def test_a_node_that_is_slower_as_a_whole_changes_no_mean(points: int) -> None:
    alike = _result({"n1": 0.5, "n2": 0.5, "n3": 0.5}, points=points)
    slower = _result({"n1": 0.5, "n2": 0.5, "n3": 0.5}, {"n2": 3.0}, points=points)
    for result in (alike, slower):
        (metric,) = result.metric_verdicts
        assert metric.verdict == "better"
        (note,) = _of_nodes(result)
        assert "on 3 of 3 nodes" in note
    if points > 1:
        assert slower.metric_verdicts[0].ci == pytest.approx(alike.metric_verdicts[0].ci, rel=1e-9)


@pytest.mark.parametrize("points", [1, 3])
def test_a_change_that_depends_on_the_node_is_not_claimed_for_all(points: int) -> None:
    uneven = {"n1": 0.7, "n2": 0.95, "n3": 1.02}
    on_nodes = _result(uneven, points=points).metric_verdicts[0]
    assert on_nodes.verdict == "inconclusive"
    assert on_nodes.ci is not None
    assert on_nodes.ci[0] < 0.7
    assert on_nodes.ci[1] > 1.02


def test_a_claim_that_differs_in_size_is_named() -> None:
    claim, differs = _of_nodes(
        _result({f"n{n}": cost for n, cost in enumerate((0.5, 0.52, 0.54, 0.5))})
    )
    assert "on 4 of 4 nodes; median of each, with its blocks: n0 -" in claim
    assert "the size of the change differs between the nodes (p = " in differs


def test_a_run_on_one_node_is_as_on_one_host() -> None:
    result = _result({"n1": 0.5})
    assert _of_nodes(result) == []
    plain = v.reports(QUIET, 0.5, experiment(12), 1)()
    assert result.metric_verdicts[0].ci == pytest.approx(plain.metric_verdicts[0].ci, rel=1e-6)


def test_blocks_that_are_the_nodes_are_enough() -> None:
    found = Estimate(0.9, (0.85, 0.95), 0.001, 0.1, p_same=0.9)
    each = {block: -0.1 + 0.01 * block for block in range(4)}
    assert over_nodes(found, each, {block: f"n{block}" for block in each}, RULES) == found
    assert over_nodes(found, each, {}, RULES) == found
    assert (
        over_nodes(found, dict.fromkeys(each, -0.1), {0: "n1", 1: "n1", 2: "n2", 3: "n2"}, RULES)
        == found
    )


def test_p_is_below_the_error_exactly_where_the_interval_excludes_no_change() -> None:
    found = Estimate(0.9, (0.85, 0.95), 0.001, 0.1, p_same=0.9)
    nodes = {block: f"n{block % 3}" for block in range(9)}
    seen = set()
    for step in range(40):
        logs = {b: -0.1 + 0.004 * step * (b % 3 - 1) + 0.001 * (b // 3) for b in range(9)}
        wider = over_nodes(found, logs, nodes, RULES)
        assert wider.ci is not None and wider.p is not None
        assert (wider.p < 0.05) == (wider.ci[1] < 1)
        seen.add(wider.p < 0.05)
    assert seen == {True, False}


@pytest.mark.parametrize(("nodes", "between"), [(2, 0.2), (4, 0.07), (4, 0.2), (8, 0.2)])
def test_the_interval_covers_other_nodes(nodes: int, between: float) -> None:
    found = v.node_coverage(nodes, 20, between, 300)
    assert found.inside > 0.9
    assert found.alone < 0.85


def test_nodes_that_are_alike_cost_little_if_there_are_some() -> None:
    found = v.node_coverage(8, 20, 0.0, 200)
    assert found.alone > 0.9
    assert found.width < 1.3 * found.width_alone
