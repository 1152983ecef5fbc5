"""What is compared in a bisection: a metric, its cost of one more object, or a way to fail."""

import math
from dataclasses import dataclass

from kteardown.analysis.margins import Margins
from kteardown.errors import InputError
from kteardown.flows.bisection import search
from kteardown.judge.answer import DIRECTIONS
from kteardown.model.judged import MetricVerdict
from kteardown.model.record import BASE
from kteardown.model.result import Result


@dataclass(frozen=True)
class BisectedValue:
    """What is compared: a way in which kernels fail, or a metric, by its cost of one more
    ``param``."""

    outcome: str = ""
    metric: str = ""
    param: str = ""
    unit: str = ""
    size: float = 0.0
    """On the wall clock: by how much the bad commit is worse than the good one, as a share of
    it."""
    blocks: int = 0
    """On the wall clock: how many blocks decide a commit, as the noise of those of the ends has
    it."""

    @classmethod
    def of(cls, result: Result, metric: str, outcome: str) -> "BisectedValue":
        """Return the first law, or else metric, that differs between base and the variant of
        ``result``.

        Raises InputError if none does.
        """
        if outcome:
            return cls(outcome)
        if result.clock == "wall":
            return cls._in_real_time(result, metric)
        laws = [law for law in result.laws if law.kernel != BASE and metric in ("", law.metric)]
        for law in laws:
            if law.verdict in DIRECTIONS:
                return cls(metric=law.metric, param=law.param, unit=law.value_unit)
        rows = [
            c for c in result.comparisons if c.statistic == "median" and metric in ("", c.metric)
        ]
        for row in reversed(rows):
            if row.verdict in DIRECTIONS:
                return cls(metric=row.metric, unit=row.value_unit)
        why = "; ".join(dict.fromkeys(row.reason for row in rows if row.reason))
        raise InputError(
            "no difference between the good and the bad commit is "
            f"measured{f': {why}' if why else ''}",
            hint=(
                "name other points with --set, more --seeds, or other commits; `kteardown report "
                "last` has the figures."
            ),
        )

    @classmethod
    def _in_real_time(cls, result: Result, metric: str) -> "BisectedValue":
        rows = [m for m in result.metric_verdicts if metric in ("", m.metric) and m.ratio]
        why = "no headline metric for which lower is better is worse in the bad commit"
        for row in rows:
            if row.ratio is None or row.ratio <= 1 or row.better != "lower" or row.spread is None:
                continue
            most = result.stopping.looks[-1] if result.stopping else row.boots
            needed = search.boots_needed(math.log(row.ratio), row.spread, row.confidence)
            if row.verdict == "worse" and needed <= most:
                return cls(metric=row.metric, size=row.ratio - 1, blocks=needed)
            why = (
                f"{row.metric} is {row.ratio - 1:.2%} worse and blocks differ by {row.spread:.2%}: "
                f"about {needed} boots of each commit would show it"
            )
        raise InputError(
            f"this clock cannot see the difference between the good and the bad commit: {why}",
            hint=(
                "give that many --boots, or use --clock instructions, which also finds what became "
                "better."
            ),
        )

    def figures(
        self, result: Result, kernel: str
    ) -> tuple[float | None, tuple[float, float] | None]:
        """Return the value of a kernel and its interval; None for what it does not have."""
        failed = [fault.kind for fault in result.broken(kernel)]
        if self.outcome:
            return float(self.outcome in failed), None
        if failed:
            return None, None
        if self.size:
            metric = self.verdict(result, kernel)
            return (
                (1.0, None)
                if kernel == BASE
                else (metric.ratio, metric.ci)
                if metric
                else (None, None)
            )
        if self.param:
            law_key = (kernel, self.metric, self.param)
            laws = (w for w in result.laws if (w.kernel, w.metric, w.param) == law_key)
            return next(((law.per_unit, law.per_unit_ci) for law in laws), (None, None))
        rows = [
            c for c in result.comparisons if c.metric == self.metric and c.statistic == "median"
        ]
        kernel_rows = [
            (c.base if kernel == BASE else c.changed) for c in rows if kernel in (BASE, c.variant)
        ]
        return (kernel_rows[-1].median if kernel_rows else None), None

    def verdict(self, result: Result, kernel: str) -> MetricVerdict | None:
        """Return the verdict on the metric of a kernel."""
        verdicts = (
            m for m in result.metric_verdicts if (m.metric, m.variant) == (self.metric, kernel)
        )
        return next(verdicts, None)

    def is_bad(self, metric: MetricVerdict) -> bool | None:
        """On the wall clock, return whether a kernel has the change; None if its blocks do not
        say."""
        keeps = Margins(0.99, {metric.metric: self.step}, as_steps=True).keeps(metric)
        return None if keeps is None else not keeps

    @property
    def until(self) -> str:
        """On the wall clock, the rule by which a commit is decided."""
        return f"step=99%,{self.metric}={100 * self.step:.6f}%"

    @property
    def step(self) -> float:
        """The change by which a commit is decided; a margin is below 100%."""
        return min(self.size, 0.99)

    @property
    def text(self) -> str:
        """What it is in words."""
        if self.size:
            return f"{self.metric} as a ratio to the good commit, in real time"
        return self.outcome or (
            f"{self.metric} for one more of {self.param}" if self.param else self.metric
        )
