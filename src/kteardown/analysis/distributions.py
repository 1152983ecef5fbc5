"""The histograms of a result: of each kernel at each point, merged over its boots."""

from __future__ import annotations

from collections.abc import Sequence

from kteardown.analysis.compared_pairs import Data
from kteardown.model.point import Point
from kteardown.model.result import Distribution
from kteardown.model.workload import HistogramSpec


def distributions(data: Data, kernels: Sequence[str]) -> tuple[Distribution, ...]:
    """Return a distribution for every histogram, kernel and point that has values."""
    found = [
        _distribution(data, kernel, metric, spec, point)
        for workload in dict.fromkeys(point.workload for point in data.expected)
        for metric, spec in data.workloads[workload].histograms.items()
        for kernel in kernels
        for point in data.expected
        if point.workload == workload
    ]
    return tuple(distribution for distribution in found if distribution is not None)


def _distribution(
    data: Data, kernel: str, metric: str, spec: HistogramSpec, point: Point
) -> Distribution | None:
    histogram = data.collected.histogram(kernel, point, metric)
    if histogram is None:
        return None
    return Distribution(
        workload=point.workload,
        kernel=kernel,
        metric=metric,
        unit=spec.unit,
        point=point.shown,
        n=histogram.n,
        percentiles={f"{percent:g}": histogram.percentile(percent) for percent in spec.percentiles},
        error=histogram.error,
    )
