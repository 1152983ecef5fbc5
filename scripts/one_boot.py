"""How far the figure of one more boot may be from published ones: prediction intervals.

One boot is not compared with the interval of a result, which is that of a median over boots: single
boots spread more. From boots with the standard deviation ``sd``, one more is within ``t * sd *
sqrt(1 + pi / 2n)`` of the median of ``n`` of them (the variance of a median is at most pi / 2n of
that of one boot), and within ``t * sd * sqrt(2)`` of one other.

Three boots alone show their spread badly: at the rate that each of many figures gets, ``t`` is 30
and more. So the spreads of one metric at all its points and on all kernels are seen together, and
each is moved towards the others as far as they agree: the moderated variances of Smyth 2004,
"Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

RATE = 0.05
"""How often a result is called stale though nothing changed: at most, all its figures together.

It is exact for normal boots and spreads seen alone; of simulated results with 24 figures whose
spreads are of two sorts, up to 7% were.
"""
_TOGETHER = 12
"""So many spreads show how far they agree. With fewer, figures were outside twice as often as
stated."""
_LEAST = 5e-4
"""Relative spreads below this are alike: a tenth of what a figure of three digits cannot show."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of single boots; it is unknown with 0 degrees of freedom."""

    sd: float
    df: float

    def allowed(self, rate: float, boots: int | None) -> float:
        """How far one boot may be from the median of ``boots``, or, if None, from one other boot.

        It is farther away at ``rate``. Zero if the spread is unknown.
        """
        if not self.df:
            return 0
        of_the_other = math.pi / (2 * boots) if boots else 1
        # scipy.stats.t.isf() gives the same in a hundred times the time.
        return -float(special.stdtrit(self.df, rate / 2)) * self.sd * math.sqrt(1 + of_the_other)


def spread_of(sd: float, samples: int, boots: int) -> Spread:
    """The spread of boots from the standard deviation of all their samples, which ``Summary`` has.

    If the samples of a boot differ among themselves, boots spread less than this.
    """
    if boots < 2:
        return Spread(0, 0)
    return Spread(sd * math.sqrt((samples - 1) * boots / (samples * (boots - 1))), boots - 1)


def moderated(spreads: Sequence[Spread]) -> list[Spread]:
    """Relative spreads of one metric, each moved towards the others as far as they agree."""
    known = [each for each in spreads if each.df]
    if len(known) < _TOGETHER:
        return list(spreads)
    sd, df = np.array([(max(each.sd, _LEAST), each.df) for each in known]).T
    logs = np.log(sd**2) - special.digamma(df / 2) + np.log(df / 2)
    apart = float(logs.var(ddof=1) - special.polygamma(1, df / 2).mean())
    if apart <= 0:
        pooled = math.exp(logs.mean() / 2)
        return [Spread(pooled, float(df.sum())) if each.df else each for each in spreads]
    # The prior of the variances: their middle, with the degrees of freedom that explain how they
    # differ. Only a quarter of these counts, as spreads may be of two sorts, such as none and some:
    # with all of them, 12% of results with such spreads were called stale.
    prior = 2 * optimize.brentq(
        lambda half: math.log(special.polygamma(1, half) / apart), 1e-6, 1e9
    )
    middle = math.exp(logs.mean() + special.digamma(prior / 2) - math.log(prior / 2))
    prior /= 4
    return [
        Spread(
            math.sqrt((prior * middle + each.df * each.sd**2) / (prior + each.df)),
            min(prior + each.df, float(df.sum())),
        )
        if each.df
        else each
        for each in spreads
    ]
