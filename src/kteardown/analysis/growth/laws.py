"""The growth laws of a result: each metric of each kernel over the parameter of its workload."""

from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.analysis.compared_pairs import Data
from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.growth.fit import fit, predict
from kteardown.analysis.growth.slope_ratio import SlopeRatio, families, rows_of
from kteardown.model.point import Key, Point
from kteardown.model.result import Law, Verdict

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
    ratios: dict[tuple[str, str, str, Key], dict[str, Any]] = {
        (s.workload, s.metric, s.variant, s.rest): {
            "ratio": tidy(s.found.ratio),
            "ratio_ci": tidy_pair(s.found.ci),
            "ratio_p": tidy(s.found.p),
            "verdict": verdict,
            "reason": reason,
        }
        for s, (verdict, reason) in zip(slopes, verdicts, strict=True)
    }
    for workload, metric, spec in compared(data.experiment, data.workloads):
        param = data.workloads[workload].law
        for others, family in families(data.expected, workload, param).items():
            for kernel in kernels:
                sizes, rows = _costs(data.collected, kernel, family, param, metric)
                found = fit(sizes, rows, data.rules.confidence) if rows else None
                if found is None:
                    continue
                wanted = predict_at.get(param) or (_FURTHER * max(sizes),)
                law = Law(
                    workload=workload,
                    kernel=kernel,
                    metric=metric,
                    unit=spec.unit,
                    param=param,
                    point={name: value for name, value in family[0].shown.items() if name != param},
                    predictions=tuple(
                        p.model_copy(
                            update={name: tidy(getattr(p, name)) for name in ("value", "low", "high")}
                        )
                        for p in (predict(found, at, data.rules.confidence) for at in wanted)
                    ),
                    model=found.model,
                    per_unit=tidy(found.per_unit),
                    per_unit_ci=tidy_pair(found.per_unit_ci),
                    intercept=tidy(found.intercept),
                    exponent=tidy(found.exponent),
                    exponent_ci=tidy_pair(found.exponent_ci),
                    r2=tidy(found.r2),
                    points=found.points,
                    **ratios.get((workload, metric, kernel, others), {}),
                )
                result.append(law)
    return tuple(result)


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
    return sizes, list(rows_of(medians).values())
