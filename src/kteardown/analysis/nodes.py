"""On how many nodes of a cluster a claim holds, and whether the change depends on the node.

A block is on one node, and every comparison is inside blocks, so what makes a node faster or slower as a
whole is not in a ratio. What can be is a change whose size depends on the machine, which the interval takes
into account (``estimate.over_nodes``).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from kteardown.analysis.comparisons import JudgedComparisons
from kteardown.rundir.counting import EXACT, BootRecords

_LEVEL = 0.05


def nodes_of(boots: Sequence[BootRecords]) -> dict[int, str]:
    """Return the node of each block; empty on the instruction clock, on one node, and on this host."""
    nodes = {boot.start.block: boot.start.node for boot in boots if boot.start.acceleration != EXACT}
    return nodes if len(set(nodes.values())) > 1 else {}


def node_notes(found: JudgedComparisons, nodes: Mapping[int, str]) -> list[str]:
    """Return notes for each claimed change of a metric, if the blocks were on several nodes.

    Whether its size differs between the nodes is tested by one-way analysis of variance, unless a node has a
    single block.
    """
    notes = []
    for claim, logs in zip(found.metric_verdicts, found.figures, strict=True) if nodes else ():
        by_node: dict[str, list[float]] = {}
        for block, change in logs.items():
            by_node.setdefault(nodes.get(block) or "this host", []).append(change)
        if claim.verdict not in ("better", "worse") or len(by_node) < 2 or claim.ratio is None:
            continue
        down, groups = claim.ratio < 1, list(by_node.values())
        holds = sum((median(changes) < 0) == down for changes in groups)
        each = ", ".join(
            f"{node} {math.expm1(median(changes)) * 100:+.1f}% ({len(changes)})"
            for node, changes in sorted(by_node.items())
        )
        notes.append(
            f"{claim.variant}, {claim.metric}: the change has the claimed direction on {holds} of "
            f"{len(by_node)} nodes; median of each, with its blocks: {each}"
        )
        if min(map(len, groups)) > 1 and any(len(set(group)) > 1 for group in groups):
            from scipy.stats import f_oneway

            p = float(f_oneway(*groups).pvalue)
            if p < _LEVEL:
                notes.append(
                    f"{claim.variant}, {claim.metric}: the size of the change differs between the nodes "
                    f"(p = {p:.2g}); its interval includes that"
                )
    return notes
