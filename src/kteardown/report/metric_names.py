"""The names of metrics for people, ``freezing user space``, and their keys, ``freeze_user_ns``.

The name is that of the workload's file. Where it has none, as in runs from before workloads had names, the
key is put into words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.model.workload import Metric, Workload

_UNITS = re.compile(r"_(ns|us|kb|per_s|count)$")
_TIMES = ("ns", "us")


def metric_name(workloads: Mapping[str, Workload], workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric, followed by the statistic if that is a percentile."""
    known = workloads.get(workload)
    return with_statistic(name_of(metric, known.metrics.get(metric) if known else None), statistic)


def distinct_names(
    workloads: Mapping[str, Workload], metrics: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the name of each metric, by workload and key, so that no two are equal: options of a choice."""
    keys = list(dict.fromkeys(metrics))
    several = len({workload for workload, _ in keys}) > 1
    names = {key: metric_name(workloads, *key) for key in keys}
    counts = Counter((key[0], name) for key, name in names.items())
    found = {}
    for (workload, metric), name in names.items():
        alike = counts[workload, name] > 1
        apart = " ".join([workload] * several + [metric] * alike)
        found[workload, metric] = f"{name} ({apart})" if apart else name
    return found


def with_statistic(name: str, statistic: str) -> str:
    """Return a metric's name, followed by the statistic if that is a percentile."""
    return f"{name} ({statistic})" if statistic.startswith("p") else name


@cache
def shipped_name(workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric where only its key is known: of a workload that is not shipped, the key."""
    try:
        known = {workload: load_workload(workload)}
    except InputError:
        known = {}
    return metric_name(known, workload, metric, statistic)


def name_of(key: str, spec: Metric | None) -> str:
    """Return the name of the metric with this key: its own, or the key in words."""
    if spec is not None and spec.name:
        return spec.name
    unit = _UNITS.search(key)
    words = _UNITS.sub("", key).replace("_", " ")
    return f"{words} time" if unit and unit[1] in _TIMES else words


def metric_label(metric: str, statistic: str) -> str:
    """Return the key of a metric and statistic: ``wakeup_ns`` or ``wakeup_ns p99``."""
    return metric if statistic == "median" else f"{metric} {statistic}"
