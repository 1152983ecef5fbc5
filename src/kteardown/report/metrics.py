"""The metrics of a result: their names, their comparisons, and their verdicts in words.

The name for people, ``freezing user space``, is that of the workload's file; the key is
``freeze_user_ns``. Where there is no name, as in runs from before workloads had names, the key is
put into words. A metric that is no headline has the verdicts of its points alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.judge.answer import MetricAnswer
from kteardown.judge.deciding import is_far_from_no_change
from kteardown.judge.metrics import metric_name
from kteardown.model.judged import Comparison, Judged, MetricVerdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Metric, Workload
from kteardown.report.formatting import (
    change,
    change_of,
    counted,
    decimals,
    parameter,
    verdict_counts,
    with_remedy,
)

_EXPLAINED = ("same", "inconclusive")
"""The verdicts whose reason is worth reading with the change."""


def distinct_names(
    workloads: Mapping[str, Workload], metrics: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the name of each metric, by workload and key, so that no two are equal: options of a
    choice."""
    keys = list(dict.fromkeys(metrics))
    several = len({workload for workload, _ in keys}) > 1
    names = {key: metric_name(workloads, *key) for key in keys}
    counts = Counter((key[0], name) for key, name in names.items())
    distinct = {}
    for (workload, metric), name in names.items():
        alike = counts[workload, name] > 1
        apart = " ".join([workload] * several + [metric] * alike)
        distinct[workload, metric] = f"{name} ({apart})" if apart else name
    return distinct


@cache
def shipped_name(workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric where only its key is known: of a workload that is not shipped,
    the key."""
    try:
        workloads = {workload: load_workload(workload)}
    except InputError:
        workloads = {}
    return metric_name(workloads, workload, metric, statistic)


def help_of(spec: Metric) -> str:
    """Return what a metric is, and if the agent did not make the figure, what did."""
    if spec.reporter == "agent":
        return spec.help
    whole = f", within {spec.whole}" if spec.whole else ""
    return f"{spec.help} (the {spec.reporter}'s own figure{whole})"


def point_cells(
    points: Sequence[Mapping[str, ParamValue]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the parameters whose values differ between the points, and a row of their values for
    each point.

    All parameters are returned if none differs.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if len({point.get(name) for point in points}) > 1] or names
    rows = [tuple(parameter(point.get(name, "-")) for name in varying) for point in points]
    return tuple(varying), rows


def metric_sentence(finding: MetricAnswer) -> str:
    """Return one variant and metric in words: ``V: better on M: -61.0% [-62, -60]; 5 better, 1
    same``.

    Where the verdict has a reason, it is given, with the option that makes the next run decide.
    """
    points = finding.points
    whole = finding.whole
    evidence = finding.evidence
    verdict = finding.verdict
    size = metric_change(whole, points) if whole else ""
    if whole is None and evidence is not None:
        size = change(points[0], decimals(points))
    reason = ""
    if evidence is not None and evidence.reason and verdict in _EXPLAINED:
        reason = with_remedy(evidence.reason)
    counts = verdict_counts(point.verdict for point in points) if len(points) > 1 else ""
    missing = whole.planned - whole.points if whole else 0
    parts = (size, reason, counts, f"{missing} missing" if missing else "")
    return f"{finding.variant}: {verdict} on {finding.group.name}: {'; '.join(filter(None, parts))}"


def is_activity(name: str) -> bool:
    """Return whether a metric has the name of something that is done: ``freezing user space``."""
    return name.partition(" ")[0].rstrip(",").lower().endswith("ing")


def verdict_text(judged: Judged, boots: int) -> str:
    """Return a verdict for a table; of a change that seems clear and is not, with why it is not."""
    if not is_far_from_no_change(judged):
        return judged.verdict
    return (
        f"{judged.verdict}: {counted(boots, 'boot')} of each {'is' if boots == 1 else 'are'} too "
        "few"
    )


def points_text(metric: MetricVerdict) -> str:
    """Return the points that count as text: ``all 8 points``, or ``7 of 8 points, 1 is
    missing``."""
    missing = metric.planned - metric.points
    if not missing:
        return f"all {metric.points} points" if metric.points > 1 else "the only point"
    is_missing = "1 is missing" if missing == 1 else f"{missing} are missing"
    return f"{metric.points} of {metric.planned} points, {is_missing}"


def metric_change(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return the change over all points with its interval, or its direction if it has no ratio."""
    if metric.ratio is not None:
        narrow = not metric.exact and metric.ci is not None and metric.ci[1] - metric.ci[0] < 0.002
        digits = max(decimals(rows), 2 if narrow else 1)
        return change_of(metric.ratio, metric.ci, exact=metric.exact, decimals=digits)
    if metric.verdict in ("better", "worse"):
        lower = (metric.verdict == "better") == (metric.better == "lower")
        return f"{'lower' if lower else 'higher'}, no ratio"
    return "no ratio"
