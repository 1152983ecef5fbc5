"""The statistics applied to known truths: how often they have the promised properties.

The simulations use the code that makes a report. ``tests/unit/analysis/test_validation.py`` asserts
what ``bench/validate_stats.py`` prints from many more runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kteardown.analysis.conclude import analyse
from kteardown.analysis.estimate.bootstrap import Boots, Resampler, ratio_interval
from kteardown.analysis.estimate.student import (
    PointBoots,
    estimate_over_points,
    log_ratios,
    over_nodes,
)
from kteardown.analysis.estimate.verdict import Rules, estimate, holm
from kteardown.analysis.sequential import Rule, conclude
from kteardown.model.experiment import Experiment
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, Logs, Noise
from unit.worlds import WORLDS, World, experiment, records

HEADLINE = {("zombies_cgroup", "freeze_cgroup_ns")}
_FACTS = KernelFacts(
    release="", source="", arch="x86_64", compiler="", config_hash="", image_hash=""
)


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
        found = ratio_interval(
            base, changed, resampler, confidence=confidence, within=True, twin=twin
        )
        assert found is not None
        inside += found.low <= ratio <= found.high
        outside += not found.low <= 1 <= found.high
        widths.append(found.high / found.low - 1)
        mdes.append(found.mde)
    return Covered(inside / runs, outside / runs, float(np.median(widths)), float(np.median(mdes)))


@dataclass(frozen=True)
class NodesCovered:
    """Shares of runs in which the true change over all nodes was inside of an interval, and median
    widths.

    ``alone`` is the interval that takes the blocks as independent, ``inside`` the one with the node
    as a random effect.
    """

    alone: float
    inside: float
    width_alone: float
    width: float


def node_coverage(
    nodes: int,
    blocks: int,
    between: float,
    runs: int,
    *,
    speed: float = 0.3,
    mean: bool = True,
    seed: int = 1,
) -> NodesCovered:
    """Return the coverage of a change of -20% that differs between nodes by ``between``.

    Both spreads are of logarithms; ``speed`` is that of the nodes as a whole. ``mean``: of the
    interval over points, else of that at one point.
    """
    rng = np.random.default_rng([seed, nodes, blocks])
    rules, resampler, truth = Rules(0.95, 0.02), Resampler(seed), 0.8
    found = []
    for _ in range(runs):
        base, changed = WORLDS[1].pair(truth, blocks, rng)
        place = dict(enumerate((rng.permutation(blocks) % nodes).tolist()))
        speeds, changes = np.exp(rng.normal(0, speed, nodes)), np.exp(rng.normal(0, between, nodes))
        base, changed = _scaled(base, place, speeds), _scaled(changed, place, speeds * changes)
        if mean:
            alone = estimate_over_points(
                [PointBoots(base, changed)], "wall", rules, resampler
            ).estimate
        else:
            alone = estimate(base, changed, "wall", rules, resampler)
        logs = log_ratios(base.medians, changed.medians)
        both = over_nodes(alone, logs, {block: str(node) for block, node in place.items()}, rules)
        assert alone.ci is not None and both.ci is not None
        row = []
        for low, high in (alone.ci, both.ci):
            row += [float(low <= truth <= high), high / low - 1]
        found.append(row)
    shares, widths = np.mean(found, axis=0), np.median(found, axis=0)
    return NodesCovered(float(shares[0]), float(shares[2]), float(widths[1]), float(widths[3]))


def _scaled(boots: Boots, place: Mapping[int, int], factors: Logs) -> Boots:
    return Boots(
        {
            block: [value * float(factors[place[block]]) for value in values]
            for block, values in boots.samples.items()
        }
    )


@dataclass(frozen=True)
class MetricCovered:
    """Shares of runs in which the interval over points contained the truth, and was above or below
    1."""

    inside: float
    outside: float
    width: float


def metric_coverage(
    world: World,
    boots: int,
    ratio: float,
    runs: int,
    *,
    points: int = 8,
    own: bool = False,
    seed: int = 1,
) -> MetricCovered:
    """Return the coverage of the interval of a metric whose points change by ratios around
    ``ratio``."""
    rng = np.random.default_rng([seed, boots, points])
    around = [ratio * math.exp(0.2 * (n - (points - 1) / 2)) for n in range(points)]
    inside = outside = 0
    widths = []
    for _ in range(runs):
        sides = world.points(around, boots, rng, own=own)
        found = estimate_over_points(sides, "wall", Rules(0.95, 0.02), Resampler(seed)).estimate
        assert found.ci is not None
        inside += found.ci[0] <= ratio <= found.ci[1]
        outside += not found.ci[0] <= 1 <= found.ci[1]
        widths.append(found.ci[1] / found.ci[0] - 1)
    return MetricCovered(inside / runs, outside / runs, float(np.median(widths)))


@dataclass(frozen=True)
class Ruled:
    """Reports of several points, by two rules: one correction of every comparison, and gatekeeping.

    ``all_false`` and ``false``: shares of reports with a false better, worse or mixed anywhere.
    ``all_whole``: shares of reports in which every point of the first variant has its right
    verdict; ``all_any``: at least one has. ``metric``: its metric has. ``points``: the mean share
    of its points that have, by gatekeeping. ``mixed``: its metric is mixed.
    """

    all_false: float
    all_any: float
    all_whole: float
    false: float
    metric: float
    points: float
    mixed: float


def ruled(
    world: Noise,
    wanted: Experiment,
    runs: int,
    *,
    ratio: float = 1.0,
    but: Mapping[int, float] | None = None,
) -> Ruled:
    """Simulate reports in which variants cost ``ratio`` times base, the first one ``but`` at some
    points.

    Points, metrics and laws without a true change have the right verdicts ``same`` and
    ``inconclusive``.
    """
    size = len(wanted.workloads[0].params["zombies"])
    true = [dict(enumerate([ratio] * size)) for _ in wanted.variants]
    true[0] |= but or {}
    counts = np.zeros(7)
    for run in range(runs):
        result = reports(world, ratio, wanted, run, but=but)()
        counts += _rules(result, {name: true[n] for n, name in enumerate(wanted.variants)})
    return Ruled(*(counts / runs).tolist())


def _direction(ratio: float) -> Verdict | None:
    return None if abs(ratio - 1) < 1e-9 else "worse" if ratio > 1 else "better"


def _rules(result: Result, true: Mapping[str, Mapping[int, float]]) -> list[float]:
    """Return the numbers of ``Ruled`` for one report."""

    def right(c: Comparison) -> Verdict | None:
        return _direction(true[c.variant][int(c.point["zombies"]) // 1000 - 1])

    before = [c.verdict for c in judged_by_holm(result)]
    expected = [right(c) for c in result.comparisons]
    found = {m.variant: m.verdict for m in result.metric_verdicts}
    means = {name: math.exp(float(np.mean(np.log(list(of.values()))))) for name, of in true.items()}
    directions = {name: {_direction(r) for r in of.values()} - {None} for name, of in true.items()}
    false = any(
        verdict not in ("inconclusive", "same", _direction(means[name]))
        and not (verdict == "mixed" and len(directions[name]) == 2)
        for name, verdict in found.items()
    )
    false |= any(
        c.verdict not in ("inconclusive", "same", e)
        for c, e in zip(result.comparisons, expected, strict=True)
    )
    first = next(iter(true))
    mine = [
        (b, c.verdict, e)
        for b, c, e in zip(before, result.comparisons, expected, strict=True)
        if c.variant == first and e is not None
    ]
    old = [b == e for b, _, e in mine]
    return [
        any(b not in ("inconclusive", "same", e) for b, e in zip(before, expected, strict=True)),
        any(old),
        bool(old) and all(old),
        false,
        found[first] == _direction(means[first]) and found[first] is not None,
        float(np.mean([v == e for _, v, e in mine])) if mine else 0.0,
        found[first] == "mixed",
    ]


def judged_by_holm(result: Result) -> list[Comparison]:
    """Return the comparisons of a report, judged with one Holm correction of all of them."""
    adjusted = holm([c.p for c in result.comparisons])
    judged = []
    for c, p in zip(result.comparisons, adjusted, strict=True):
        verdict = c.verdict
        if verdict != "same":
            null = c.null_ci or (1.0, 1.0)
            alpha = 1 - c.confidence
            outside = c.ratio is not None and not min(1, null[0]) <= c.ratio <= max(1, null[1])
            sure = p is not None and p < alpha and outside
            verdict = "inconclusive" if not sure else _direction(c.ratio or 1.0) or "inconclusive"
        judged.append(c.model_copy(update={"verdict": verdict}))
    return judged


def verdicts(
    world: World, ratio: float, wanted: Experiment, runs: int, *, seed: int = 1
) -> dict[str, float]:
    """Return, for each verdict, the share of reports with at least one comparison that has it."""
    counts = dict.fromkeys(("better", "worse", "same", "inconclusive", "mixed"), 0)
    for run in range(runs):
        result = reports(world, ratio, wanted, seed * 100_000 + run)()
        for verdict in {comparison.verdict for comparison in result.comparisons}:
            counts[verdict] += 1
    return {verdict: count / runs for verdict, count in counts.items()}


def false_verdicts(
    world: World, boots: int, runs: int, *, points: int = 3, variants: int = 2
) -> float:
    """Return the share of A/A reports with a verdict of better or worse."""
    wanted = experiment(boots, points=points, variants=variants)
    wrong = 0
    for run in range(runs):
        result = reports(world, 1.0, wanted, run)()
        wrong += bool({"better", "worse", "mixed"} & every_verdict(result))
    return wrong / runs


def every_verdict(result: Result) -> set[Verdict | None]:
    """Return the verdicts of points, metrics and growth laws."""
    of_points = {c.verdict for c in result.comparisons}
    return (
        of_points
        | {m.verdict for m in result.metric_verdicts}
        | {law.verdict for law in result.laws}
    )


@dataclass(frozen=True)
class Stopped:
    """Properties of runs with a stopping rule.

    Shares of reports with a false verdict (``wrong``), with an interval that ``covers``, and that
    ended because the rule held (``sure``); ``blocks`` is the mean number of blocks at the end.
    """

    wrong: float
    covers: float
    sure: float
    blocks: float


def stopped(
    world: World,
    ratio: float,
    most: int,
    width: Rule,
    runs: int,
    *,
    points: int = 1,
    variants: int = 1,
) -> Stopped:
    """Simulate runs of at most ``most`` blocks, at a confidence of 95% over all their looks."""
    wanted = experiment(most, points=points, variants=variants)
    wrong, covers, sure, blocks = 0, [], 0, []
    right: set[Verdict | None] = {"inconclusive", None}
    right.add("same" if ratio == 1 else "worse" if ratio > 1 else "better")
    for run in range(runs):
        analysed = reports(world, ratio, wanted, run)
        result, stopping = conclude(analysed, most, most, width, 0.95, HEADLINE)
        assert stopping is not None
        assert stopping.done
        wrong += bool(every_verdict(result) - right)
        covers += [c.ci is not None and c.ci[0] <= ratio <= c.ci[1] for c in result.comparisons]
        sure += "no more blocks" not in stopping.reason
        blocks.append(stopping.stopped_at)
    return Stopped(wrong / runs, float(np.mean(covers)), sure / runs, float(np.mean(blocks)))


def reports(
    noise: Noise,
    ratio: float,
    wanted: Experiment,
    seed: int,
    *,
    but: Mapping[int, float] | None = None,
    on: Callable[[BootRecords], BootRecords] = lambda boot: boot,
) -> Callable[..., Result]:
    """Return a function that analyses a run, or its first blocks at a given confidence.

    ``on`` changes each boot, such as to one on a node of a cluster.
    """
    boots = list(map(on, records(noise, ratio, wanted, seed, but=but)))
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
