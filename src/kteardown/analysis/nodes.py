"""On how many nodes of a cluster a claim holds, and whether the change depends on the node.

A block is on one node, and every comparison is inside blocks, so what makes a node faster or slower as a
whole is not in a ratio. What can be is a change whose size depends on the machine, which the interval takes
into account (``estimate.over_nodes``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from kteardown.analysis.comparisons import JudgedComparisons
from kteardown.model.result import MetricVerdict
from kteardown.rundir.counting import EXACT, BootRecords

_LEVEL = 0.05


def nodes_of(boots: Sequence[BootRecords]) -> dict[int, str]:
    """Return the node of each block; empty on the instruction clock, on one node, and on this host."""
    nodes = {boot.start.block: boot.start.node for boot in boots if boot.start.acceleration != EXACT}
    return nodes if len(set(nodes.values())) > 1 else {}


def node_notes(found: JudgedComparisons, nodes: Mapping[int, str]) -> list[str]:
    """Return notes for each claimed change of a metric, if the blocks were on several nodes."""
    verdicts = zip(found.metric_verdicts, found.figures, strict=True)
    claimed = [(each, logs) for each, logs in verdicts if each.verdict in ("better", "worse")]
    return [note for each, logs in claimed for note in _note(each, logs, nodes)] if nodes else []


def _note(claim: MetricVerdict, logs: Mapping[int, float], nodes: Mapping[int, str]) -> Iterator[str]:
    by_node: dict[str, list[float]] = {}
    for block, change in logs.items():
        by_node.setdefault(nodes.get(block) or "this host", []).append(change)
    if len(by_node) < 2 or claim.ratio is None:
        return
    down = claim.ratio < 1
    holds = sum((median(changes) < 0) == down for changes in by_node.values())
    each = ", ".join(
        f"{node} {math.expm1(median(changes)) * 100:+.1f}% ({len(changes)})"
        for node, changes in sorted(by_node.items())
    )
    yield (
        f"{claim.variant}, {claim.metric}: the change has the claimed direction on {holds} of {len(by_node)} "
        f"nodes; median of each, with its blocks: {each}"
    )
    p = _differs(list(by_node.values()))
    if p is not None and p < _LEVEL:
        yield (
            f"{claim.variant}, {claim.metric}: the size of the change differs between the nodes "
            f"(p = {p:.2g}); its interval includes that"
        )


def _differs(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the p-value of one-way analysis of variance; None if a node has a single block."""
    if any(len(group) < 2 for group in groups) or all(len(set(group)) == 1 for group in groups):
        return None
    from scipy.stats import f_oneway

    return float(f_oneway(*groups).pvalue)
