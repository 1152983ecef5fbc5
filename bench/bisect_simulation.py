"""How often a bisection in real time names the right commit, and how many boots it takes.

    python bench/bisect_simulation.py

A thousand histories of 128 commits, of which one adds an effect of one standard deviation of the
difference of two boots in a block. Three rules: ours (``kteardown.flows.bisection.search``), five
blocks for each commit, and the rule of Bayes that boots one block at a time where half of the
probability is. A block is two boots.
"""

import math
import sys
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from kteardown.analysis.estimate.bootstrap import student
from kteardown.analysis.margins import Margins
from kteardown.analysis.sequential import levels, looks
from kteardown.flows.bisection.search import MOST_BOOTS, RISK, boots_needed, confidence_of_step
from kteardown.model.judged import MetricVerdict

COMMITS = 128
HISTORIES = 1000
MOST = MOST_BOOTS
SD = 0.1
"""One standard deviation, as the logarithm of a ratio: the figures do not depend on it."""
Draw = Callable[[int], Iterator[float]]


def decided(
    blocks: Iterator[float], confidence: float, size: float
) -> tuple[bool | None, int, float, float]:
    """Boot blocks until a step of ``size`` is decided by the rule of a real bisection (0: until a
    verdict).

    Return whether it is bad, the blocks, and the mean logarithm of the ratio with its error.
    """
    values: list[float] = []
    for look, level in zip(looks(MOST), levels(looks(MOST), confidence), strict=True):
        values += [next(blocks) for _ in range(look - len(values))]
        mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5
        half = student(len(values) - 1, level) * error
        verdict = "worse" if mean > half else "better" if mean < -half else "inconclusive"
        if not size and verdict != "inconclusive":
            return verdict == "worse", len(values), mean, error
        metric = MetricVerdict.model_construct(
            metric="cost",
            better="lower",
            verdict=verdict,
            ratio=math.exp(SD * mean),
            ci=(math.exp(SD * (mean - half)), math.exp(SD * (mean + half))),
        )
        keeps = (
            Margins(0.99, {"cost": math.expm1(SD * size)}, as_steps=True).keeps(metric)
            if size
            else None
        )
        if keeps is not None:
            return not keeps, len(values), mean, error
    return None, MOST, mean, error


def ours(draw: Draw) -> tuple[int, int, int]:
    """Return the commit that is named (-1: none), the number of blocks, and of commits that were
    built."""
    ends = draw(COMMITS - 1)
    worse, blocks, size, error = decided(ends, confidence_of_step(COMMITS), 0.0)
    if not worse or boots_needed(size, error * blocks**0.5, confidence_of_step(COMMITS)) > MOST:
        return -1, blocks, 1
    good, bad, built = 0, COMMITS - 1, 1
    while bad - good > 1:
        middle = (good + bad) // 2
        is_bad, more, _, _ = decided(draw(middle), confidence_of_step(COMMITS), size)
        blocks, built = blocks + more, built + 1
        if is_bad is None:
            return -1, blocks, built
        good, bad = (good, middle) if is_bad else (middle, bad)
    return bad, blocks, built


def five(draw: Draw) -> tuple[int, int, int]:
    """Five blocks at each commit, whose mean decides."""
    size, good, bad, built = (
        float(np.mean([next(draw(COMMITS - 1)) for _ in range(5)])),
        0,
        COMMITS - 1,
        1,
    )
    while bad - good > 1:
        middle, built = (good + bad) // 2, built + 1
        mean = np.mean([next(draw(middle)) for _ in range(5)])
        good, bad = (good, middle) if mean > size / 2 else (middle, bad)
    return bad, 5 * built, built


def bayes(draw: Draw, effect: float = 1.0) -> tuple[int, int, int]:
    """One block at a time where half of the probability is, until a commit has 95%; it knows the
    effect."""
    logs, blocks, built = np.zeros(COMMITS - 1), 0, set[int]()
    while True:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        if shares.max() >= 1 - RISK:
            return int(shares.argmax()) + 1, blocks, len(built)
        at = int(np.searchsorted(np.cumsum(shares), 0.5)) + 1
        if at > 1 and abs(np.cumsum(shares)[at - 2] - 0.5) < abs(np.cumsum(shares)[at - 1] - 0.5):
            at -= 1
        value = next(draw(at))
        # Commits up to `at` would have made it bad.
        logs += np.where(np.arange(1, COMMITS) <= at, -((value - effect) ** 2) / 2, -(value**2) / 2)
        blocks, built = blocks + 1, built | {at}


def history(seed: int, effect: float) -> tuple[int, Draw]:
    """Return the commit that makes a history worse, and the differences of the blocks of each
    commit."""
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, COMMITS))

    def draw(commit: int) -> Iterator[float]:
        while True:
            yield float(rng.normal(effect * (commit >= culprit), 1))

    return culprit, draw


def main() -> int:
    for effect, rule in product(
        (1.0, 0.5, 2.0) if "--all" in sys.argv else (1.0,), (ours, five, bayes)
    ):
        right, cost = 0, []
        for seed in range(HISTORIES):
            culprit, draw = history(seed, effect)
            named, blocks, built = bayes(draw, effect) if rule is bayes else rule(draw)
            right += named == culprit
            cost.append((2 * blocks, built, named < 0))
        boots, kernels, none = np.mean(cost, axis=0)
        print(
            f"{effect:g} sd, {rule.__name__}: right {right / HISTORIES:.1%}, none named {none:.1%}",
            end=", ",
        )
        print(f"{boots:.0f} boots, {kernels:.1f} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
