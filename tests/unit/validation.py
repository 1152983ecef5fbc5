"""The statistics applied to known truths: how often they have the promised properties.

The simulations use the code that makes a report. ``tests/unit/analysis/test_validation.py`` asserts what
``bench/validate_stats.py`` prints from many more runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kteardown.analysis.analyse import analyse
from kteardown.analysis.estimate.bootstrap import Resampler, ratio_interval
from kteardown.analysis.growth.fit import fit, predict
from kteardown.analysis.sequential import StopRule, conclude
from kteardown.model.experiment import Experiment
from kteardown.model.point import points_of
from kteardown.model.result import KernelFacts, Result
from unit.simulation import WORKLOADS, Noise
from unit.worlds import World, experiment, records

HEADLINE = {("zombies_cgroup", "freeze_cgroup_ns")}
_FACTS = KernelFacts(release="", source="", arch="x86_64", compiler="", config_hash="", image_hash="")


@dataclass(frozen=True)
class Covered:
    """Shares of runs in which the truth was ``inside`` the interval and no change was ``outside``.

    ``width`` (high / low - 1) and ``mde`` are medians over runs of the interval and of the smallest
    detectable change.
    """

    inside: float
    outside: float
    width: float
    mde: float


def coverage(
    world: World,
    boots: int,
    ratio: float,
    runs: int,
    *,
    confidence: float = 0.95,
    twin: bool = False,
    seed: int = 1,
) -> Covered:
    """Return the coverage of the interval of a known ratio."""
    rng = np.random.default_rng([seed, boots])
    resampler = Resampler(seed)
    inside = outside = 0
    widths, mdes = [], []
    for _ in range(runs):
        base, changed = world.pair(ratio, boots, rng)
        found = ratio_interval(base, changed, resampler, confidence=confidence, within=True, twin=twin)
        assert found is not None
        inside += found.low <= ratio <= found.high
        outside += not found.low <= 1 <= found.high
        widths.append(found.high / found.low - 1)
        mdes.append(found.mde)
    return Covered(inside / runs, outside / runs, float(np.median(widths)), float(np.median(mdes)))


def verdicts(world: World, ratio: float, wanted: Experiment, runs: int, *, seed: int = 1) -> dict[str, float]:
    """Return, for each verdict, the share of reports with at least one comparison that has it."""
    counts = dict.fromkeys(("better", "worse", "same", "inconclusive"), 0)
    for run in range(runs):
        result = reports(world, ratio, wanted, seed * 100_000 + run)()
        for verdict in {comparison.verdict for comparison in result.comparisons}:
            counts[verdict] += 1
    return {verdict: count / runs for verdict, count in counts.items()}


def false_verdicts(world: World, boots: int, runs: int, *, points: int = 3, variants: int = 2) -> float:
    """Return the share of A/A reports with a verdict of better or worse."""
    wanted = experiment(boots, points=points, variants=variants)
    wrong = 0
    for run in range(runs):
        result = reports(world, 1.0, wanted, run)()
        wrong += any(c.verdict in ("better", "worse") for c in result.comparisons)
    return wrong / runs


@dataclass(frozen=True)
class Stopped:
    """Properties of runs with a stopping rule.

    Shares of reports with a false verdict (``wrong``), with an interval that ``covers``, and that ended
    because the rule held (``sure``); ``blocks`` is the mean number of blocks at the end.
    """

    wrong: float
    covers: float
    sure: float
    blocks: float


def stopped(
    world: World, ratio: float, most: int, rule: StopRule, runs: int, *, points: int = 1, variants: int = 1
) -> Stopped:
    """Simulate runs of at most ``most`` blocks, at a confidence of 95% over all their looks."""
    wanted = experiment(most, points=points, variants=variants)
    wrong, covers, sure, blocks = 0, [], 0, []
    right = {"inconclusive", "same" if ratio == 1 else "worse" if ratio > 1 else "better"}
    for run in range(runs):
        analysed = reports(world, ratio, wanted, run)
        result, stopping = conclude(analysed, most, most, rule, 0.95, HEADLINE)
        assert stopping is not None
        assert stopping.done
        wrong += any(c.verdict not in right for c in result.comparisons)
        covers += [c.ci is not None and c.ci[0] <= ratio <= c.ci[1] for c in result.comparisons]
        sure += "no more blocks" not in stopping.reason
        blocks.append(stopping.stopped_at)
    return Stopped(wrong / runs, float(np.mean(covers)), sure / runs, float(np.mean(blocks)))


@dataclass(frozen=True)
class LawCovered:
    """Shares of fits whose interval contains the truth; ``exponents`` is of fits that have one."""

    per_unit: float
    exponents: float


SIZES = tuple(float(n) for n in range(0, 30001, 3000))


def straight(n: float) -> float:
    """Return the cost of the linear law that is used in simulations."""
    return 20_000 + 205 * n


def costs(
    cost: Callable[[float], float],
    boots: int,
    boot: float,
    trial: float,
    rng: np.random.Generator,
    sizes: Sequence[float] = SIZES,
) -> list[list[float]]:
    """Return a row of costs for each boot: the true costs with noise for each boot and each trial."""
    true = np.array([cost(n) for n in sizes])
    noise = rng.normal(0, boot, (boots, 1)) + rng.normal(0, trial, (boots, len(sizes)))
    rows: list[list[float]] = (true * np.exp(noise)).tolist()
    return rows


def law_coverage(boots: int, boot: float, trial: float, runs: int, *, seed: int = 1) -> LawCovered:
    """Return the coverage of the slope and the exponent of a linear law."""
    rng = np.random.default_rng([seed, boots])
    slopes, exponents = 0, []
    for _ in range(runs):
        found = fit(SIZES, costs(straight, boots, boot, trial, rng), 0.95)
        assert found is not None
        slopes += found.per_unit_ci[0] <= 205 <= found.per_unit_ci[1]
        if found.exponent_ci:
            exponents.append(found.exponent_ci[0] <= 1 <= found.exponent_ci[1])
    return LawCovered(slopes / runs, float(np.mean(exponents)))


@dataclass(frozen=True)
class Predicted:
    """Properties of predictions.

    ``given`` is the share that is not refused. Of those, ``inside`` is the share whose interval contains the
    true cost, and ``again`` the share whose interval contains the median of as many new boots. ``width`` is
    the median of high / low - 1.
    """

    given: float
    inside: float
    again: float
    width: float


def predictions(
    cost: Callable[[float], float],
    times: float,
    boots: int,
    boot: float,
    trial: float,
    runs: int,
    *,
    seed: int = 1,
) -> Predicted:
    """Extrapolate a law over ``SIZES`` to ``times`` the largest size."""
    rng = np.random.default_rng([seed, boots])
    at = times * SIZES[-1]
    inside, again, widths = [], [], []
    for _ in range(runs):
        found = fit(SIZES, costs(cost, boots, boot, trial, rng), 0.95)
        assert found is not None
        prediction = predict(found, at, 0.95)
        if prediction.low is not None and prediction.high is not None:
            inside.append(prediction.low <= cost(at) <= prediction.high)
            new = float(np.median(costs(cost, boots, boot, trial, rng, [at])))
            again.append(prediction.low <= new <= prediction.high)
            widths.append(prediction.high / prediction.low - 1)
    if not inside:
        return Predicted(0.0, float("nan"), float("nan"), float("nan"))
    return Predicted(
        len(inside) / runs, float(np.mean(inside)), float(np.mean(again)), float(np.median(widths))
    )


def reports(noise: Noise, ratio: float, wanted: Experiment, seed: int) -> Callable[..., Result]:
    """Return a function that analyses a run, or its first blocks at a given confidence."""
    boots = records(noise, ratio, wanted, seed)
    kernels = {name: _FACTS for name in ("base", *wanted.variants)}
    used = {"zombies_cgroup": WORKLOADS["zombies_cgroup"]}

    def at(blocks: int | None = None, confidence: float | None = None) -> Result:
        return analyse(
            wanted,
            used,
            boots,
            kernels,
            {},
            "",
            points=points_of(wanted, used),
            blocks=blocks,
            confidence=confidence,
        )

    return at
