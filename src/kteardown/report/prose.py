"""The figures of a result in sentences, as a cover letter has them.

With 15,000 zombies, freezing user space takes 1.16 million instructions instead of 1.03 million
(+13.1%, 95% interval +12.6% to +13.7%); each zombie adds 77 instead of 68.
"""

from collections.abc import Iterator, Mapping, Sequence

from kteardown.judge.answer import DIRECTIONS, Direction, MetricAnswer
from kteardown.judge.deciding import boots_to_decide, is_far_from_no_change
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.clock import Clock
from kteardown.model.judged import Comparison, Judged, MetricVerdict
from kteardown.model.laws import Law
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import parameter, percent, scale, with_remedy
from kteardown.report.material import Measured
from kteardown.report.metrics import is_activity
from kteardown.report.sentence import change_words, opposite

_MILLION = 1e6


def change_sentences(material: Measured) -> Iterator[list[str]]:
    """Yield a paragraph for each variant and clock: a sentence for each headline metric, the worst
    first."""
    for variant in material.answer.variants:
        for clock_material in material.clocks:
            findings = [f for f in variant.headlines if f.clock == clock_material.result.clock]
            if findings and variant.is_built and not variant.with_status("broken"):
                findings.sort(key=lambda finding: VERDICTS.index(finding.verdict))
                first, *others = _sentences(
                    findings, clock_material.result, clock_material.workloads
                )
                yield [
                    f"With {variant.name}, {first}",
                    *(f"{text[:1].upper()}{text[1:]}" for text in others),
                ]


def why_unsure(metric: MetricVerdict, clock: Clock) -> str:
    """Return why a metric is inconclusive, and what would decide it; empty without a reason."""
    if not metric.reason:
        return ""
    boots = boots_to_decide(metric)
    if boots is not None:
        option = f"--seeds {boots}" if clock != "wall" else f"--boots {boots}"
        return f"{metric.reason}; about {boots} pairs of boots would decide it (add {option})"
    if is_far_from_no_change(metric):
        return f"{metric.reason}, with {metric.boots} pairs of boots"
    return with_remedy(metric.reason, clock)


def _sentences(
    findings: Sequence[MetricAnswer], result: Result, workloads: Mapping[str, Workload]
) -> Iterator[str]:
    """Yield a sentence for each metric. A place that is that of the sentence before is not said
    again."""
    last = ""
    for finding in findings:
        point = _example_point(finding)
        workload = workloads.get(finding.group.workload)
        law = workload.law if workload else ""
        turned = [direction for direction in DIRECTIONS if finding.is_turned(direction)]
        if point.verdict in ("better", "worse") and len(turned) == 1:
            place = place_in_words(point.point, law)
            text = f"{_figures(finding, point, result.clock)} ({_change_in_words(point)})"
            text = f"at {place}, {text}" if place and place != last else text
            text += _growth(finding, point, result, law)
            last = place
        else:
            text = _over_points(finding, point, result.clock, turned)
        yield f"{text}."


def _over_points(
    finding: MetricAnswer, point: Comparison, clock: Clock, turned: Sequence[Direction]
) -> str:
    """Return what is said of a metric over all its points."""
    name = finding.group.name
    judged = finding.evidence or point
    if turned:
        changes = (" ".join(change_words(finding, direction)) for direction in turned)
        return f"{name} {' and '.join(changes)}"
    size = _change_in_words(judged)
    if finding.verdict == "same":
        return f"{'the cost of ' * is_activity(name)}{name} does not change measurably ({size})"
    if finding.verdict == "mixed":
        return f"{opposite([name])} (on average {size})"
    reason = why_unsure(finding.whole, clock) if finding.whole else with_remedy(judged.reason)
    return f"whether {name} changes is inconclusive ({size}){f': {reason}' if reason else ''}"


def _one_of(objects: str) -> str:
    """Return the singular of the name of a parameter: ``zombies``, ``processes``."""
    return objects.removesuffix("es" if objects.endswith("sses") else "s")


def _example_point(finding: MetricAnswer) -> Comparison:
    """Return the last point that got worse, or else that got better, or else the last one."""
    turned = finding.turned("worse") if finding.is_turned("worse") else finding.turned("better")
    return (turned or finding.points)[-1]


def place_in_words(point: Mapping[str, ParamValue], law: str) -> str:
    """Return a point in words: ``15,000 zombies (make=fork)``; ``law``: the parameter of the growth
    law."""
    size = point.get(law)
    others = [
        f"{name}={parameter(value)}" for name, value in point.items() if name != law or size is None
    ]
    if not isinstance(size, int):
        return " ".join(others)
    what = f"{size:,} {_one_of(law) if size == 1 else law}"
    return f"{what} ({' '.join(others)})" if others else what


def _figures(finding: MetricAnswer, point: Comparison, clock: Clock) -> str:
    sides = (point.changed.compared, point.base.compared)
    unit = scale(point.unit, clock, sides)
    after, before = _amounts([side / unit.divisor for side in sides])
    verb = "takes" if is_activity(finding.group.name) else "is"
    # The unit is given once: "1.16 million instructions instead of 1.03 million".
    return f"{finding.group.name} {verb} {after} {unit.unit} instead of {before}"


def _amounts(values: Sequence[float]) -> list[str]:
    """Return figures in one unit, with four digits that matter: ``1.165 million``, ``323,640``,
    ``68``."""
    if min(map(abs, values)) >= _MILLION:
        return [f"{value / _MILLION:,.3f} million" for value in values]
    return [f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" for value in values]


def _change_in_words(judged: Judged) -> str:
    if judged.ratio is None:
        return "no ratio"
    digits = 2 if judged.ci and judged.ci[1] - judged.ci[0] < 0.002 and not judged.exact else 1
    size = percent(judged.ratio, digits)
    if judged.exact:
        return f"{size}, exact"
    if judged.ci is None:
        return size
    low, high = (percent(end, digits) for end in judged.ci)
    if low == high:
        return f"{size} in every boot"
    return f"{size}, {judged.confidence * 100:.4g}% interval {low} to {high}"


def _growth(finding: MetricAnswer, point: Comparison, result: Result, law: str) -> str:
    """Return what one more object adds, on the variant and on base; empty if a law of either is not
    known."""
    laws = [_law(result.laws, kernel, finding, point) for kernel in (finding.variant, "base")]
    costs = [fit.per_unit for fit in laws if fit is not None and fit.per_unit is not None]
    growing = [fit for fit in laws if fit is not None and fit.model not in ("unknown", "constant")]
    if len(costs) < 2 or len(growing) < 2 or finding.group.statistic != "median":
        return ""
    unit = scale(point.unit, result.clock, costs)
    after, before = _amounts([cost / unit.divisor for cost in costs])
    subject = f"each {_one_of(law)}" if law.endswith("s") else f"one more {law}"
    # Instructions are the unit of the sentence; a time is in a smaller unit here.
    what = "" if unit.unit == "instructions" else f" {unit.unit}"
    return f"; {subject} adds {after}{what} instead of {before}"


def _law(laws: Sequence[Law], kernel: str, finding: MetricAnswer, point: Comparison) -> Law | None:
    group = finding.group
    return next(
        (
            law
            for law in laws
            if (law.kernel, law.workload, law.metric) == (kernel, group.workload, group.metric)
            and law.point.items() <= point.point.items()
        ),
        None,
    )
