"""Results as no run makes them: any verdicts, faults and losses together."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kteardown.model.faults import Fault, FaultKind, FaultPoint, FaultStatus
from kteardown.model.judged import Comparison, MetricVerdict, Summary, Verdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result, Uncompared
from kteardown.model.workload import Metric, Workload

WORKLOAD = Workload(
    name="zombies",
    summary="",
    silence_s=1,
    metrics={
        "freeze_user_ns": Metric(help="how long", name="freezing user space", headline=True),
        "rate_per_s": Metric(
            help="each second", name="rate", unit="per_s", better="higher", headline=True
        ),
        "thaw_ns": Metric(help="how long", name="thawing all tasks"),
        "suspend_call_ns": Metric(help="all"),
        "tasks_share": Metric(help="of it", unit="share"),
    },
)
KNOWN = {"zombies": WORKLOAD}
POINTS: tuple[dict[str, ParamValue], ...] = ({"zombies": 0}, {"zombies": 3000}, {"zombies": 6000})
_STATUSES: tuple[FaultStatus | None, ...] = (None, None, None, "broken", "suspected", "base too")
OF_POINTS: tuple[Verdict, ...] = ("better", "worse", "same", "inconclusive")
_OF_METRICS: tuple[Verdict, ...] = (*OF_POINTS, "mixed")


def _ratio(verdict: Verdict, better: str, size: float) -> float | None:
    if verdict in ("same", "inconclusive", "mixed"):
        return 1.0 + size / 100
    down = (verdict == "better") == (better == "lower")
    return 1 / (1.02 + size) if down else 1.02 + size


def summary_of(value: float) -> Summary:
    return Summary(median=value, mean=value, sd=0, n=3, boots=3)


@st.composite
def results(draw: st.DrawFn) -> Result:
    variants = [f"v{n}" for n in range(draw(st.integers(1, 4)))]
    facts = KernelFacts(
        release="6.12", source="s", arch="x86_64", compiler="", config_hash="", image_hash=""
    )
    comparisons: list[Comparison] = []
    metrics: list[MetricVerdict] = []
    faults: list[Fault] = []
    uncompared: list[Uncompared] = []
    for variant in variants:
        status = draw(st.sampled_from(_STATUSES))
        lost = draw(st.integers(0, 3)) if draw(st.booleans()) else 0
        if status:
            faults.append(fault_of(variant, status))
        uncompared += [
            Uncompared(
                variant=variant, workload="zombies", point=point, reason=f"{variant}: boot: hang"
            )
            for point in POINTS[:lost]
        ]
        for name, spec in WORKLOAD.metrics.items():
            verdicts = [draw(st.sampled_from(OF_POINTS)) for _ in POINTS[lost:]]
            whole = draw(st.sampled_from(_OF_METRICS))
            if status == "broken":
                verdicts, whole = ["broken"] * len(verdicts), "broken"
            size = draw(st.floats(0.001, 30))
            about: dict[str, Any] = {"workload": "zombies", "variant": variant, "metric": name}
            about |= {"unit": spec.unit, "better": spec.better, "confidence": 0.95, "mde": None}
            for point, verdict in zip(POINTS[lost:], verdicts, strict=True):
                ratio = _ratio(verdict, spec.better, size)
                sides: dict[str, Any] = {
                    "base": summary_of(1000),
                    "changed": summary_of(1000 * (ratio or 1)),
                }
                comparisons.append(
                    Comparison(**about, **sides, point=point, ratio=ratio, ci=None, verdict=verdict)
                )
            if spec.headline and verdicts and draw(st.booleans()):
                ratio = draw(st.sampled_from([_ratio(whole, spec.better, size), None]))
                about |= {"points": len(verdicts), "planned": 3, "boots": 3, "ci": None}
                metrics.append(MetricVerdict(**about, ratio=ratio, verdict=whole))
    return Result(
        experiment="e",
        question="q",
        clock=draw(st.sampled_from(["instructions", "wall"])),
        command="",
        machine={},
        kernels=dict.fromkeys(("base", *variants), facts),
        comparisons=tuple(comparisons),
        laws=(),
        boots={"ok": 3},
        metric_verdicts=tuple(metrics),
        faults=tuple(faults),
        uncompared=tuple(uncompared),
    )


def fault_of(kernel: str, status: FaultStatus, kind: FaultKind = "panic") -> Fault:
    return Fault(
        kernel=kernel,
        kind=kind,
        status=status,
        message="Kernel panic - not syncing",
        points=(FaultPoint(workload="zombies", point={}),),
        boots=(1,),
        of=2,
        base_boots=0,
        base_of=2,
    )
