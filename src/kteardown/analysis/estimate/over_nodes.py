"""The interval of a change over the nodes of a cluster, with the node as a random effect.

All boots of a block are on one node, so what makes a node faster as a whole cancels in the ratio of a block.
A change whose size depends on the machine does not: blocks on one node then resemble each other, and an
interval that takes them as independent is about these nodes and too narrow for any other. With ``K`` nodes
the mean of each is one figure. They are weighted by the variance between nodes (R. DerSimonian, N. Laird,
Controlled Clinical Trials 7, 1986) and the pooled variance inside them, and the interval is that of J.
Hartung and G. Knapp (Statistics in Medicine 20, 2001): Student's t with K - 1 degrees of freedom, which
covers with few nodes as well. The interval of a result is the smallest that contains this one and that of the
blocks.

There is no second interval if each block has a node of its own: the blocks are the nodes then.
``bench/node_coverage.py`` measures the coverage; results/simulations has the figures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from kteardown.analysis.estimate.bootstrap import bounded_exp, power_quantile, student
from kteardown.analysis.estimate.verdict import Estimate, Rules


def over_nodes(
    found: Estimate, figures: Mapping[int, float], nodes: Mapping[int, str], rules: Rules
) -> Estimate:
    """Return ``found`` with an interval that also holds for other nodes of this kind.

    ``figures`` are the logarithms of the change, by block; ``nodes`` has the node of each block, and is empty
    if the run was on one host. An estimate without an interval is returned as it is.
    """
    groups: dict[str, list[float]] = {}
    for block, figure in figures.items():
        groups.setdefault(nodes.get(block, ""), []).append(figure)
    mean = _mean(list(groups.values()))
    if mean is None or found.ci is None or found.exact:
        return found
    centre, se, df = mean
    half, edge = student(df, rules.confidence) * se, math.log1p(rules.same_within)
    away = centre if found.higher else -centre
    p = 1.0 if away <= 0 else 2 * float(special.stdtr(df, -away / se))
    outside = max(float(special.stdtr(df, -distance / se)) for distance in (edge - centre, edge + centre))
    farthest = half + power_quantile(df, twin=True) * se
    return replace(
        found,
        ci=(min(found.ci[0], bounded_exp(centre - half)), max(found.ci[1], bounded_exp(centre + half))),
        p=max(found.p or 0.0, p),
        p_same=max(found.p_same or 0.0, outside),
        mde=max(found.mde or 0.0, bounded_exp(farthest) - 1),
    )


def log_ratios(base: Mapping[int, float], changed: Mapping[int, float]) -> dict[int, float]:
    """Return the logarithm of changed / base of each block that has both, which must be above zero."""
    return {block: math.log(changed[block] / base[block]) for block in base if block in changed}


def _mean(groups: Sequence[Sequence[float]]) -> tuple[float, float, int] | None:
    """Return the mean of the log ratios over nodes, its standard error, and the degrees of freedom of that.

    None with one node, or if no node has two blocks that differ.
    """
    count, blocks = len(groups), sum(map(len, groups))
    if count < 2 or blocks == count:
        return None
    sizes = np.array([len(group) for group in groups])
    means = np.array([np.mean(group) for group in groups])
    inside = sum(float(np.var(group)) * len(group) for group in groups) / (blocks - count)
    if inside <= 0:
        return None
    distance = float(sizes @ (means - (sizes @ means) / blocks) ** 2) - (count - 1) * inside
    between = max(0.0, distance / (blocks - float(sizes @ sizes) / blocks))
    weights = 1 / (between + inside / sizes)
    centre = float(weights @ means / weights.sum())
    variance = float(weights @ (means - centre) ** 2) / ((count - 1) * float(weights.sum()))
    return (centre, math.sqrt(variance), count - 1) if variance > 0 else None
