"""Whether a claimed change is the same on all nodes of a cluster."""

import math
from collections.abc import Mapping
from statistics import median

from kteardown.analysis.comparisons import JudgedComparisons

_LEVEL = 0.05
"""Of the test whether the size of a change differs between nodes."""


def node_notes(judged: JudgedComparisons, nodes: Mapping[int, str]) -> list[str]:
    """Return notes for each claimed change of a metric, if the blocks were on several nodes."""
    # Comparisons are inside blocks, each on one node, so what makes a node faster or slower as a
    # whole is not in a ratio. A change whose size depends on the machine can be, and the interval
    # includes it (``over_nodes``). Whether its size differs between the nodes is tested by one-way
    # analysis of variance, unless a node has a single block.
    notes = []
    for claim, logs in zip(judged.metric_verdicts, judged.figures, strict=True) if nodes else ():
        by_node: dict[str, list[float]] = {}
        for block, change in logs.items():
            by_node.setdefault(nodes.get(block) or "this host", []).append(change)
        if claim.verdict not in ("better", "worse") or len(by_node) < 2 or claim.ratio is None:
            continue
        down = claim.ratio < 1
        groups = list(by_node.values())
        holds = sum((median(changes) < 0) == down for changes in groups)
        medians = ", ".join(
            f"{node} {math.expm1(median(changes)) * 100:+.1f}% ({len(changes)})"
            for node, changes in sorted(by_node.items())
        )
        notes.append(
            f"{claim.variant}, {claim.metric}: the change has the claimed direction on {holds} of "
            f"{len(by_node)} nodes; median of each, with its blocks: {medians}"
        )
        if min(map(len, groups)) > 1 and any(len(set(group)) > 1 for group in groups):
            from scipy.stats import f_oneway

            p = float(f_oneway(*groups).pvalue)
            if p < _LEVEL:
                notes.append(
                    f"{claim.variant}, {claim.metric}: the size of the change differs between the "
                    f"nodes (p = {p:.2g}); its interval includes that"
                )
    return notes
