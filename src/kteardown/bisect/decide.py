"""Bisection with noise: how certain each step must be, and how probable each commit is."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from kteardown.analysis.sequential import FIRST_LOOK

MOST_BOOTS = 80
"""The most blocks for a commit, unless --boots gives another number."""
RISK = 0.05
"""The probability that some step of a bisection decides wrongly."""
_POWER = 0.99
"""Of a step: one that is not decided is skipped, and the answer is then several commits."""


class BlockMean(NamedTuple):
    """What blocks of one commit showed: the mean logarithm of its ratio to the good one, and its error."""

    mean: float
    error: float


def confidence_of_step(commits: int) -> float:
    """Return the confidence of each step of a bisection of ``commits``, and of the comparison of its ends."""
    return 1 - RISK / (1 + steps_of(commits))


def steps_of(commits: int) -> int:
    """Return how many of ``commits`` a bisection measures to find one."""
    return math.ceil(math.log2(max(commits, 2)))


def boots_needed(size: float, spread: float, confidence: float) -> int:
    """Return after how many blocks a change of the logarithm by ``size`` is decided in 99 of 100 cases.

    ``spread`` is the standard deviation of a block, ``confidence`` that of the step.
    """
    errors = float(special.ndtri((1 + confidence) / 2) + special.ndtri(_POWER))
    return max(FIRST_LOOK, math.ceil((errors * spread / size) ** 2))


def posterior(
    commits: Sequence[str], within: Mapping[str, frozenset[str]], seen: Mapping[str, BlockMean], size: float
) -> dict[str, float]:
    """Return the probability that each of ``commits`` is the one that made the difference ``size``.

    ``within`` has the commits that each commit of ``seen`` contains, itself included. Each was equally
    probable before, and the means are normal around zero or ``size``.
    """
    logs = np.zeros(len(commits))
    for commit, (mean, error) in seen.items():
        bad = np.array([one in within[commit] for one in commits])
        logs -= np.where(bad, (mean - size) ** 2, mean**2) / (2 * max(error, 1e-9) ** 2)
    shares = np.exp(logs - logs.max())
    return dict(zip(commits, (shares / shares.sum()).tolist(), strict=True))
