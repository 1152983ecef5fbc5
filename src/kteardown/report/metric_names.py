"""The names of metrics for people: ``freezing user space`` for ``freeze_user_ns``.

The name is that of the workload's file. Where it has none, as in runs from before workloads had names, the
key is put into words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kteardown.model.workload import Metric, Workload

_UNITS = re.compile(r"_(ns|us|kb|per_s|count)$")
_TIMES = ("ns", "us")


def metric_name(workloads: Mapping[str, Workload], workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric, followed by the statistic if that is a percentile."""
    known = workloads.get(workload)
    spec = known.metrics.get(metric) if known else None
    name = name_of(metric, spec) if spec else metric
    return f"{name} ({statistic})" if statistic.startswith("p") else name


def is_activity(name: str) -> bool:
    """Return whether the name is of something that is done, such as ``freezing user space``."""
    return name.split(" ", maxsplit=1)[0].endswith("ing")


def name_of(key: str, spec: Metric) -> str:
    """Return the name of the metric with this key: its own, or the key in words."""
    if spec.name:
        return spec.name
    words = _UNITS.sub("", key).replace("_", " ")
    return f"{words} time" if spec.unit in _TIMES else words
