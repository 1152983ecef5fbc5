"""Stopping rules: analyse a growing run at several looks, with an error rate that holds over all of
them.

All looks share one alpha: a spending function gives the part of alpha that is spent when a share of
the blocks is complete. The tests and intervals of each look use the part that is added there, with
the correction for the number of tests inside it, so the probability of any false verdict among
headline metrics and their points, at whichever look it ends, is at most alpha. The verdicts of the
metrics over all their points decide, not those of single points.

``ci=W%`` ends when every headline metric's ratio is known to within W percent: on the log scale its
interval extends at most log(1 + W) to either side. ``margin=W%`` ends when it is known of every
headline metric whether it is worse by more than W percent. METHODOLOGY.md has the reasons and
sources.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from kteardown.analysis.margins import Margins
from kteardown.errors import InputError
from kteardown.model.judged import MetricVerdict
from kteardown.model.result import Result, Stopping

FIRST_LOOK = 4
"""In blocks; with fewer blocks, the intervals at a fraction of alpha are too wide for any
decision."""
_GROWTH = 1.4
_POWER = 1.5
"""The power of the spending function."""

Headline = set[tuple[str, str]]
"""Workload and metric of the metrics that decide when the run stops."""


Rule = float | Margins | None
"""When a run stops: at this width, when these margins are decided, or None: with verdicts."""


def parse_until(text: str) -> Rule:
    """Return a stopping rule: 0.02 for ``ci=2%``, None for ``verdict``. Raises InputError."""
    if text == "verdict":
        return None
    kind, _, shares = text.partition("=")
    if kind in ("margin", "step"):
        return replace(Margins.parse(shares, "--until"), as_steps=kind == "step")
    match = re.fullmatch(r"ci=(\d+(?:\.\d*)?|\.\d+)%", text)
    width = float(match[1]) / 100 if match else 0.0
    if not 0 < width < 1:
        raise InputError(
            f"--until: {text!r} is not a stopping rule",
            hint="give verdict, or ci=W% with W above 0 and below 100, as in ci=2%, or margin=W%.",
        )
    return width


def _named(rule: Rule) -> tuple[str, str]:
    """Return a rule as it is written, and what metrics have that meet it."""
    if rule is None:
        return "verdict", "have a verdict"
    if isinstance(rule, Margins):
        kind = "step" if rule.as_steps else "margin"
        return f"{kind}={rule.text}", "are known to keep their margin or not"
    return f"ci={rule * 100:g}%", f"are known to within {rule * 100:g}%"


def looks(most: int) -> tuple[int, ...]:
    """Return the numbers of blocks after which a run of at most ``most`` may stop; the last is
    ``most``."""
    # They grow by a factor of about 1.4, because a look that adds few blocks still uses a part of
    # alpha.
    result = []
    look = FIRST_LOOK
    while look * 1.2 <= most:
        result.append(look)
        look = round(look * _GROWTH)
    return (*result, most)


def levels(looks: Sequence[int], confidence: float) -> tuple[float, ...]:
    """Return the confidence of each look; the errors of all looks add up to 1 - ``confidence``."""
    shares = [(look / looks[-1]) ** _POWER for look in looks]
    return tuple(
        1 - (1 - confidence) * (share - before)
        for before, share in zip([0.0, *shares], shares, strict=False)
    )


def stop_here(result: Result, width: Rule, headline: Headline) -> tuple[bool, str]:
    """Return whether the rule holds for all headline metrics, and the reason in a few words."""
    decisive = [m for m in result.metric_verdicts if (m.workload, m.metric) in headline]
    if not decisive:
        return False, "nothing to compare yet"
    count = sum(_is_met(metric, width) for metric in decisive)
    return count == len(decisive), f"{count} of {len(decisive)} headline metrics {_named(width)[1]}"


def conclude(
    analyse_at: Callable[[int, float], Result],
    complete_blocks: int,
    most: int,
    width: Rule,
    confidence: float,
    headline: Headline,
    spent: bool = False,
) -> tuple[Result, Stopping | None]:
    """Return the result at the first look at which the rule holds, or at the last look so far.

    The function is pure: equal records give an equal result, whether the run continued in between
    or not. ``width`` is that of ``parse_until``. ``analyse_at`` gets the number of blocks to use
    and the confidence. ``spent``: the time budget is used up, so no blocks will be added; the last
    look then gets all of the remaining alpha. Before the first look, the result is computed at the
    confidence of that look, and it decides nothing.
    """
    planned = looks(most)
    rule = _named(width)[0]
    plan = list(zip(planned, levels(planned, confidence), strict=True))
    reached = [(look, level) for look, level in plan if look <= complete_blocks]
    if spent and complete_blocks < most:
        before = [(look, level) for look, level in reached if look < complete_blocks]
        reached = [*before, (complete_blocks, confidence + sum(1 - level for _, level in before))]
    if not reached:
        stopping = Stopping(
            rule=rule,
            looks=planned,
            stopped_at=complete_blocks,
            confidence=plan[0][1],
            alpha=0.0,
            done=False,
            reason=f"the first look is after {planned[0]} blocks",
        )
        return analyse_at(complete_blocks, plan[0][1]), stopping
    alpha = 0.0
    for look, level in reached:
        alpha += 1 - level
        result = analyse_at(look, level)
        holds, reason = stop_here(result, width, headline)
        if holds:
            break
    last = look == reached[-1][0]
    if not holds and last and look == most:
        reason += "; no more blocks are planned"
    elif not holds and spent:
        reason += "; the budget is used up"
    return result, Stopping(
        rule=rule,
        looks=planned,
        stopped_at=look,
        confidence=level,
        alpha=alpha,
        spent=spent and last and not holds,
        done=holds or spent or look == most,
        reason=reason,
    )


def _is_met(metric: MetricVerdict, width: Rule) -> bool:
    """Return whether a metric has a verdict, or its interval extends at most ``width`` to either
    side."""
    # More boots do not confirm a figure that is not seen from outside.
    if metric.outside == "contradicts":
        return True
    if isinstance(width, Margins):
        ignored = width.as_steps and metric.metric not in width.of_metric
        return ignored or metric.verdict in ("broken", "mixed") or width.keeps(metric) is not None
    # Without an interval, the test is whether it has a verdict other than inconclusive.
    if width is None or metric.ci is None or not metric.ratio:
        return metric.verdict != "inconclusive"
    low, high = metric.ci
    return max(math.log(high / metric.ratio), math.log(metric.ratio / low)) <= math.log1p(width)
