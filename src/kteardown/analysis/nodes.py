"""On how many nodes of a cluster a claim holds.

A block is on one node, and every comparison is inside blocks, so what makes a node faster or slower as a
whole is not in a ratio. What can be is a change whose size depends on the machine. The intervals take the
blocks as independent; if the change differs between nodes more than within them, they are about these nodes
and not about others, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, median

from kteardown.model.record import BASE
from kteardown.model.result import MetricVerdict
from kteardown.rundir.counting import BootRecords, trials

_LEVEL = 0.05
_Place = tuple[str, str, tuple[tuple[str, int | str], ...]]
_Medians = Mapping[tuple[int, str], Mapping[_Place, float]]
"""By block and kernel, the median of each metric at each point."""


def node_notes(found: Sequence[MetricVerdict], boots: Sequence[BootRecords]) -> list[str]:
    """Return a note for each claimed change of a metric, if the blocks were on several nodes."""
    nodes = {boot.start.block: boot.start.node for boot in boots if boot.start.node}
    if len(set(nodes.values())) < 2 or any(boot.start.acceleration == "icount" for boot in boots):
        return []
    medians = {(boot.start.block, boot.start.kernel): _medians(boot) for boot in boots}
    claimed = [each for each in found if each.verdict in ("better", "worse")]
    return [note for each in claimed for note in _note(each, nodes, medians)]


def _note(claim: MetricVerdict, nodes: Mapping[int, str], medians: _Medians) -> Iterator[str]:
    by_node: dict[str, list[float]] = {}
    for block, node in nodes.items():
        change = _log_ratio(claim, medians.get((block, claim.variant), {}), medians.get((block, BASE), {}))
        if change is not None:
            by_node.setdefault(node, []).append(change)
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
            f"{claim.variant}, {claim.metric}: the change differs between the nodes (p = {p:.2g}), so its "
            "interval is about these nodes and may not hold for others"
        )


def _medians(boot: BootRecords) -> dict[_Place, float]:
    return {
        (trial.workload, metric, tuple(sorted(trial.params.items()))): median(values)
        for trial in trials(boot.records)
        if trial.usable
        for metric, values in trial.samples.items()
    }


def _log_ratio(
    claim: MetricVerdict, changed: Mapping[_Place, float], base: Mapping[_Place, float]
) -> float | None:
    """Return the logarithm of the change in one block, the mean over the points; None if there is none."""
    ratios = [
        math.log(value / base[place])
        for place, value in changed.items()
        if place[:2] == (claim.workload, claim.metric) and value > 0 and base.get(place, 0) > 0
    ]
    return mean(ratios) if ratios else None


def _differs(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the p value of one-way analysis of variance; None if a node has a single block."""
    if any(len(group) < 2 for group in groups) or all(len(set(group)) == 1 for group in groups):
        return None
    from scipy.stats import f_oneway

    return float(f_oneway(*groups).pvalue)
