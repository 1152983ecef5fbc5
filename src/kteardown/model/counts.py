"""The metrics that the processor's own counters give of the stretch of a workload (``--counts``)."""

from collections.abc import Mapping

from kteardown.model.workload import Metric

METRICS: Mapping[str, Metric] = {
    "instructions_count": Metric(
        name="instructions in the stretch, by the processor's counter",
        help="instructions that all CPUs executed in the stretch, kernel and user space",
        unit="count",
        optional=True,
    ),
    "cycles_count": Metric(
        name="cycles in the stretch",
        help="cycles of all CPUs in the stretch in which they were not halted",
        unit="count",
        optional=True,
    ),
    "cache_misses_count": Metric(
        name="cache misses in the stretch",
        help="misses of the last level of cache in the stretch, as the processor defines them",
        unit="count",
        optional=True,
    ),
    "dtlb_misses_count": Metric(
        name="data TLB misses in the stretch",
        help="loads in the stretch that missed the data TLB, as the processor defines them",
        unit="count",
        optional=True,
    ),
    "instructions_per_cycle": Metric(
        name="instructions per cycle in the stretch",
        help="a cross-check that explains the cycles; it is better or worse in no direction by itself",
        better="higher",
        unit="per_cycle",
        optional=True,
        compare=False,
    ),
}
"""By the key with which the agent reports them (``agent/counts/counts.c``). A processor may lack some."""

INVARIANTS: Mapping[str, str] = {
    "counted": "the counters ran during all of the stretch, used by nothing else in the guest, and did not "
    "stay at 0"
}
