"""The growth laws of a result: each metric of each kernel over the parameter of its workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kteardown.analysis.compared_pairs import Data
from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.growth.fit import Fit, fit, predict
from kteardown.analysis.growth.slope_ratio import SlopeRatio, families
from kteardown.model.point import Point
from kteardown.model.result import Law, Prediction, Verdict

_FURTHER = 2.0
"""Without requested values, predict at this multiple of the largest measured value."""


def laws(
    data: Data,
    kernels: Sequence[str],
    predict_at: Mapping[str, Sequence[float]],
    slopes: Sequence[SlopeRatio],
    verdicts: Sequence[tuple[Verdict, str]],
) -> tuple[Law, ...]:
    """Return a law for each compared metric, each kernel, and each setting of the other parameters.

    ``predict_at`` has the values at which to predict, by parameter. ``verdicts`` are those of ``slopes``.
    """
    result: list[Law] = []
    ratios = {
        (s.workload, s.metric, s.variant, s.rest): _ratio_fields(s, verdict, reason)
        for s, (verdict, reason) in zip(slopes, verdicts, strict=True)
    }
    for workload, metric, spec in compared(data.experiment, data.workloads):
        param = data.workloads[workload].law
        for others, family in families(data.expected, workload, param).items():
            rest = {name: value for name, value in family[0].shown.items() if name != param}
            for kernel in kernels:
                sizes, rows = _costs(data.collected, kernel, family, param, metric)
                found = fit(sizes, rows, data.rules.confidence) if rows else None
                if found is not None:
                    fields = {"workload": workload, "kernel": kernel, "metric": metric, "unit": spec.unit}
                    predictions = _predictions(found, sizes, predict_at.get(param, ()), data.rules.confidence)
                    about = {"param": param, "point": rest, "predictions": predictions}
                    ratio = ratios.get((workload, metric, kernel, others), {})
                    result.append(Law.model_validate({**fields, **about, **_fields(found), **ratio}))
    return tuple(result)


def _predictions(
    found: Fit, sizes: Sequence[float], wanted: Sequence[float], confidence: float
) -> tuple[Prediction, ...]:
    """Return the predictions at ``wanted``, or at twice the largest size, rounded like all results."""
    exact = [predict(found, at, confidence) for at in wanted or (_FURTHER * max(sizes),)]
    return tuple(
        p.model_copy(update={"value": tidy(p.value), "low": tidy(p.low), "high": tidy(p.high)}) for p in exact
    )


def _costs(
    collected: Dataset, kernel: str, family: Sequence[Point], param: str, metric: str
) -> tuple[list[float], list[list[float]]]:
    """Return the sizes with samples of this kernel, and a row of medians for each boot that has them all."""
    sizes: list[float] = []
    medians: list[dict[int, float]] = []
    for point in family:
        found = collected.boots(kernel, point, metric)
        size = point.shown.get(param)
        if found is not None and isinstance(size, int):
            sizes.append(size)
            medians.append(found.medians)
    common = sorted(set.intersection(*(set(blocks) for blocks in medians))) if medians else []
    return sizes, [[blocks[block] for blocks in medians] for block in common]


def _ratio_fields(slopes: SlopeRatio, verdict: Verdict, reason: str) -> dict[str, object]:
    found = slopes.found
    return {
        "ratio": tidy(found.ratio),
        "ratio_ci": tidy_pair(found.ci),
        "ratio_p": tidy(found.p),
        "verdict": verdict,
        "reason": reason,
    }


def _fields(found: Fit) -> dict[str, object]:
    return {
        "model": found.model,
        "per_unit": tidy(found.per_unit),
        "per_unit_ci": tidy_pair(found.per_unit_ci),
        "intercept": tidy(found.intercept),
        "exponent": tidy(found.exponent),
        "exponent_ci": tidy_pair(found.exponent_ci),
        "r2": tidy(found.r2),
        "points": found.points,
    }
