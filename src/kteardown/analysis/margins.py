"""Margins: how much worse each headline metric may become, and the verdicts that follow from
that."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kteardown.errors import InputError
from kteardown.model.judged import Comparison, Judged, MetricVerdict
from kteardown.model.result import Result

_Verdict = TypeVar("_Verdict", MetricVerdict, Comparison)
_ONE = re.compile(r"(?:(?P<metric>[\w-]+)=)?(?P<percent>\d+(?:\.\d+)?)%")
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Margins:
    """The margin of every metric, as a share: 0.02 is two percent. ``of_metric`` replaces
    ``default``.

    ``as_steps``: the change is either nothing or as large as the margin, as that of a commit in a
    bisection. It is then enough to exclude one of the two, and only the metrics of ``of_metric``
    matter.
    """

    default: float = 0.02
    of_metric: Mapping[str, float] = field(default_factory=dict)
    as_steps: bool = False

    @classmethod
    def parse(cls, text: str, option: str, default: float = 0.02) -> "Margins":
        """Read ``2%``, or ``2%,freeze_user_ns=0.5%``. Raises InputError that names ``option``."""
        of_metric: dict[str, float] = {}
        for part in filter(None, text.split(",")):
            match = _ONE.fullmatch(part)
            if match is None or float(match["percent"]) >= 100:
                raise InputError(
                    f"{option}: {part!r} is not a margin",
                    hint=(
                        "give a percentage below 100, for all metrics or one: 2% or "
                        "freeze_user_ns=0.5%."
                    ),
                )
            share = float(match["percent"]) / 100
            if match["metric"]:
                of_metric[match["metric"]] = share
            else:
                default = share
        return cls(default, of_metric)

    @property
    def text(self) -> str:
        """What ``parse`` reads."""
        parts = (f"{name}={_percent(share)}" for name, share in self.of_metric.items())
        return ",".join((_percent(self.default), *parts))

    @property
    def least(self) -> float:
        """The smallest of them."""
        return min((self.default, *self.of_metric.values()))

    def of(self, metric: str) -> float:
        """Return the margin of one metric."""
        return self.of_metric.get(metric, self.default)

    def check(self, headlines: Iterable[str]) -> None:
        """Raise InputError if a margin is of a metric that is not in ``headlines``."""
        metrics = dict.fromkeys(headlines)
        for name in self.of_metric:
            if name not in metrics:
                what = f"--margin {name}: the experiment has no headline metric of this name"
                raise InputError.unknown(what, name, metrics)

    def keeps(self, judged: Judged) -> bool | None:
        """Return whether a change is not worse than its margin; None if that is not certain.

        Without an interval, its verdict decides. That it is worse at all must hold after the
        correction for the number of tests, which the verdict has. A saving that is not seen outside
        of the kernel's own figure is not certain.
        """
        if judged.outside == "contradicts":
            return None
        if judged.ci is None or judged.ratio is None:
            return {"better": True, "same": True, "worse": False}.get(judged.verdict)
        low, high = (
            judged.ci
            if judged.better == "lower"
            else (1 / max(judged.ci[1], 1e-300), 1 / max(judged.ci[0], 1e-300))
        )
        limit = (1 + self.of(judged.metric)) * (1 + _ROUNDING)
        worse = low > (1 if self.as_steps else limit) and judged.verdict == "worse"
        if high <= limit:
            return not (self.as_steps and worse and judged.ratio > math.sqrt(limit))
        return False if worse else None

    def applied(self, result: Result) -> Result:
        """Return the result with the verdicts on its headline metrics by these margins.

        ``worse`` is worse than the margin, ``same`` no worse than it, ``inconclusive`` perhaps.
        """
        headline = {m.metric for m in result.metric_verdicts}
        points = tuple(self._judged(c) if c.metric in headline else c for c in result.comparisons)
        metrics = tuple(map(self._judged, result.metric_verdicts))
        return result.model_copy(update={"comparisons": points, "metric_verdicts": metrics})

    def _judged(self, judged: _Verdict) -> _Verdict:
        if judged.verdict == "broken":
            return judged
        kept = self.keeps(judged)
        limit = f"{100 * self.of(judged.metric):g}% worse"
        if kept is None:
            reasons = filter(None, (f"it may be more than {limit}", judged.reason))
            update = {"verdict": "inconclusive", "reason": "; ".join(reasons)}
        elif kept and judged.verdict in _KEPT:
            return judged
        else:
            word, size = ("same", "at most") if kept else ("worse", "more than")
            update = {"verdict": word, "reason": f"{size} {limit}"}
        return judged.model_copy(update=update)


def _percent(share: float) -> str:
    """Return a share as ``parse`` reads it: without an exponent."""
    return f"{100 * share:.9f}".rstrip("0").rstrip(".") + "%"


_KEPT = {"better", "same"}
