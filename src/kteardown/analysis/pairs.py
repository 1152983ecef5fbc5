"""The pairs of a comparison: a variant and base at a point, with what their boots say before any
verdict."""

from dataclasses import dataclass, replace

from kteardown.analysis.dataset import Data, Dataset
from kteardown.analysis.estimate.bootstrap import Boots
from kteardown.analysis.estimate.student import log_ratios, over_nodes
from kteardown.analysis.estimate.verdict import (
    MEDIAN,
    Estimate,
    SupportingResults,
    estimate,
    paired,
)
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.workload import Metric


@dataclass(frozen=True, eq=False)
class Quantity:
    """A compared quantity at a point: a metric, and the quantile that is taken inside each boot."""

    point: Point
    metric: str
    spec: Metric
    quantile: float

    @property
    def statistic(self) -> str:
        return "median" if self.quantile == MEDIAN else f"p{self.quantile * 100:.6g}"


@dataclass(frozen=True, eq=False)
class Pair:
    """One comparison before its verdict."""

    figure: Quantity
    variant: str
    base: Boots
    changed: Boots
    estimate: Estimate
    supporting: SupportingResults


def pairs_of(data: Data, figure: Quantity) -> list[Pair]:
    """Return every variant that has samples, compared with base, and the results of the twins."""

    def compared_with(base: Boots, changed: Boots) -> Estimate:
        return estimate(
            base, changed, data.clock, data.rules, data.resampler, quantile=figure.quantile
        )

    def boots(kernel: str, collected: Dataset = data.collected) -> Boots | None:
        return collected.boots(kernel, figure.point, figure.metric)

    base = boots(BASE)
    if base is None:
        return []
    twin = boots(TWIN)
    not_moved = boots(BASE, data.moved)
    moved = boots(LAYOUT, data.moved)
    supporting = SupportingResults(
        twin=compared_with(base, twin) if twin else None,
        layout=compared_with(not_moved, moved) if not_moved and moved else None,
    )
    pairs = []
    for variant in data.variants:
        changed = boots(variant)
        if changed is not None:
            before, after = paired(base, changed)
            compared = compared_with(before, after)
            if data.nodes and compared.ci is not None:
                logs = log_ratios(
                    before.quantiles(figure.quantile), after.quantiles(figure.quantile)
                )
                compared = over_nodes(compared, logs, data.nodes, data.rules)
            # One step of what is printed at most, and that is not little.
            step = figure.spec.resolution
            value = before.quantile(figure.quantile)
            one_step = abs(after.quantile(figure.quantile) - value) <= step
            coarse = one_step and step > data.rules.same_within * abs(value)
            of_variant = replace(supporting, coarse=coarse)
            pairs.append(Pair(figure, variant, before, after, compared, of_variant))
    return pairs
