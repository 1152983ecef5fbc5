"""The sentence with which every report begins: it claims what the verdicts have, and no more."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from kteardown import pipeline
from kteardown.cli.gate import gate
from kteardown.cli.options import FailOn
from kteardown.errors import GateError
from kteardown.inputs.load import load_workload, workload_names
from kteardown.model.clock import Clock
from kteardown.model.record import ParamValue
from kteardown.model.result import (
    Comparison,
    Fault,
    FaultPoint,
    FaultStatus,
    KernelFacts,
    MetricVerdict,
    Result,
    Stopping,
    Summary,
    Uncompared,
    Verdict,
)
from kteardown.model.workload import Metric, Workload
from kteardown.report import saved
from kteardown.report.formats import text
from kteardown.report.formats.registry import TEXTS
from kteardown.report.formatting import without_options
from kteardown.report.metric_names import metric_name
from kteardown.report.sentence import sentence, tone_of
from kteardown.rundir.snapshot import load
from unit.report.contexts import instructions, wall, write_run
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

GAIN = re.compile(r"\b(cuts|raises|times (?:cheaper|faster)|is better on|better|nothing got worse)\b")
VARIANT = "freezer-skip-exited"
_WORKLOAD = Workload(
    name="zombies",
    summary="",
    silence_s=1,
    metrics={
        "freeze_user_ns": Metric(help="how long", name="freezing user space", headline=True),
        "rate_per_s": Metric(help="each second", name="rate", unit="per_s", better="higher", headline=True),
        "thaw_ns": Metric(help="how long", name="thawing all tasks"),
        "suspend_call_ns": Metric(help="all"),
        "tasks_share": Metric(help="of it", unit="share"),
    },
)
KNOWN = {"zombies": _WORKLOAD}
_POINTS: tuple[dict[str, ParamValue], ...] = ({"zombies": 0}, {"zombies": 3000}, {"zombies": 6000})
_STATUSES: tuple[FaultStatus | None, ...] = (None, None, None, "broken", "suspected", "base too")
_OF_POINTS: tuple[Verdict, ...] = ("better", "worse", "same", "inconclusive")
_OF_METRICS: tuple[Verdict, ...] = (*_OF_POINTS, "mixed")


def _ratio(verdict: Verdict, better: str, size: float) -> float | None:
    if verdict in ("same", "inconclusive", "mixed"):
        return 1.0 + size / 100
    down = (verdict == "better") == (better == "lower")
    return 1 / (1.02 + size) if down else 1.02 + size


def _summary(value: float) -> Summary:
    return Summary(median=value, mean=value, sd=0, n=3, boots=3)


@st.composite
def _results(draw: st.DrawFn) -> Result:
    variants = [f"v{n}" for n in range(draw(st.integers(1, 4)))]
    facts = KernelFacts(release="6.12", source="s", arch="x86_64", compiler="", config_hash="", image_hash="")
    comparisons: list[Comparison] = []
    metrics: list[MetricVerdict] = []
    faults: list[Fault] = []
    uncompared: list[Uncompared] = []
    for variant in variants:
        status = draw(st.sampled_from(_STATUSES))
        lost = draw(st.integers(0, 3)) if draw(st.booleans()) else 0
        if status:
            faults.append(_fault(variant, status))
        uncompared += [
            Uncompared(variant=variant, workload="zombies", point=point, reason=f"{variant}: boot: hang")
            for point in _POINTS[:lost]
        ]
        for name, spec in _WORKLOAD.metrics.items():
            verdicts = [draw(st.sampled_from(_OF_POINTS)) for _ in _POINTS[lost:]]
            whole = draw(st.sampled_from(_OF_METRICS))
            if status == "broken":
                verdicts, whole = ["broken"] * len(verdicts), "broken"
            size = draw(st.floats(0.001, 30))
            about: dict[str, Any] = {"workload": "zombies", "variant": variant, "metric": name}
            about |= {"unit": spec.unit, "better": spec.better, "confidence": 0.95, "mde": None}
            for point, verdict in zip(_POINTS[lost:], verdicts, strict=True):
                ratio = _ratio(verdict, spec.better, size)
                sides: dict[str, Any] = {"base": _summary(1000), "changed": _summary(1000 * (ratio or 1))}
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


def _fault(kernel: str, status: FaultStatus) -> Fault:
    return Fault(
        kernel=kernel,
        kind="panic",
        status=status,
        message="Kernel panic - not syncing",
        points=(FaultPoint(workload="zombies", point={}),),
        boots=(1,),
        of=2,
        base_boots=0,
        base_of=2,
    )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_results())
def test_no_gain_without_a_verdict_and_nothing_bad_unnamed(result: Result) -> None:
    said = sentence(result, KNOWN)
    assert said.isascii()
    assert said.endswith(".")
    assert not said.endswith("..")
    assert "\n" not in said
    sound = [c for c in result.comparisons if not result.broken(c.variant)]
    whole = [m for m in result.metric_verdicts if not result.broken(m.variant)]
    verdicts = {c.verdict for c in sound} | {m.verdict for m in whole}
    if not {"better", "mixed"} & verdicts:
        assert not GAIN.search(said.replace("better and worse", ""))
    if "worse" in verdicts:
        assert re.search(r"\bworse\b", said.replace("nothing got worse", ""))
    for fault in result.faults:
        if fault.status in ("broken", "suspected"):
            assert "broken" in said
            assert fault.kernel in said
    assert all(variant in said for variant in result.requested)
    if len(result.requested) <= 2:
        _each_variant(result, said)


def _each_variant(result: Result, said: str) -> None:
    """Check the part of each variant by itself."""
    parts = re.split(r"(?:^|; )(?=v\d )", said)[1:]
    for variant, part in zip(result.requested, parts, strict=True):
        assert part.startswith(variant)
        rows = [c for c in result.comparisons if c.variant == variant]
        whole = [m for m in result.metric_verdicts if m.variant == variant]
        verdicts = {c.verdict for c in rows} | {m.verdict for m in whole}
        lost = [u for u in result.uncompared if u.variant == variant]
        if result.broken(variant):
            assert part.startswith(f"{variant} is broken: it panics in 1 of 2 boots")
            assert not GAIN.search(part)
            continue
        assert ("worse" in part.replace("nothing got worse", "")) == bool({"worse"} & verdicts) or (
            "mixed" in verdicts
        )
        assert bool(lost) == ("could not be compared" in part)
        if "nothing got worse" in part:
            assert not {"worse", "mixed"} & verdicts
            assert not lost
        if not {"better", "mixed"} & verdicts:
            assert not GAIN.search(part)


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            dict.fromkeys((0, 3000, 6000), 1 / 3.2),
            f"{VARIANT} makes freezing user space 3.2 times cheaper (69% fewer instructions, over all 3 "
            "points); nothing got worse.",
        ),
        (
            dict.fromkeys((0, 3000, 6000), 0.95),
            f"{VARIANT} cuts freezing user space by 5.0% (fewer instructions, over all 3 points); "
            "nothing got worse.",
        ),
        (
            dict.fromkeys((0, 3000, 6000), 1.058),
            f"{VARIANT} makes freezing user space worse: +5.8% (more instructions, over all 3 points).",
        ),
        (
            dict.fromkeys((0, 3000, 6000), 1.4),
            f"{VARIANT} makes freezing user space worse: 1.4 times costlier (40% more instructions, over all "
            "3 points).",
        ),
        (
            {0: 1.3, 3000: 0.5, 6000: 0.5},
            f"{VARIANT} is mixed on freezing user space: worse at zombies=0 (+30%), better at 2 points (up "
            "to -50%).",
        ),
        ({}, f"{VARIANT} changes nothing: freezing user space is the same (within 2%)."),
    ],
)
def test_the_sentence_of_exact_counts(ratios: Mapping[int, float], said: str) -> None:
    def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
        changed = kernel != "base" and metric == "freeze_user_ns"
        return 1e6 * (ratios.get(int(str(params["zombies"])), 1.0) if changed else 1.0)

    wanted = freezer(boots=3, repetitions=1, zombies=(0, 3000, 6000), variants=(VARIANT,))
    result = analysed(wanted, simulate(wanted, cost, None))
    only = tuple(c for c in result.comparisons if c.metric == "freeze_user_ns")
    whole = tuple(m for m in result.metric_verdicts if m.metric == "freeze_user_ns")
    result = result.model_copy(update={"comparisons": only, "metric_verdicts": whole})
    assert sentence(result, KNOWN) == said


def test_one_seed_or_boot_says_which_option_gives_a_verdict() -> None:
    remedies: dict[Clock, tuple[str, str]] = {
        "instructions": ("one seed gives no interval, add --seeds 2", ""),
        "wall": ("one boot gives no interval, add --boots 2", " (on the instruction clock --seeds 2)"),
    }
    for clock, (remedy, other) in remedies.items():
        wanted = freezer(clock, boots=1, zombies=(3000, 15000), variants=(VARIANT,))
        result = analysed(wanted, simulate(wanted, noise=Noise(boot=0.01, sample=0.01)))
        said = sentence(result, KNOWN)
        assert re.fullmatch(rf"{VARIANT} is inconclusive on freezing user space \(-\d\d%\): {remedy}\.", said)
        assert without_options(said) == said.replace(f", add {remedy.partition(', add ')[2]}", "")
        out = io.StringIO()
        text.render(result, KNOWN, None, Console(file=out, width=300, force_terminal=False))
        rows = [line for line in out.getvalue().splitlines() if remedy + other in line]
        assert any(line.startswith("2 inconclusive: ") for line in rows), clock
        with pytest.raises(GateError, match=re.escape(remedy + other)):
            gate("RUN", result, KNOWN, FailOn.inconclusive)


def test_one_seed_of_many_variants_says_the_option_too() -> None:
    wanted = freezer(boots=1, zombies=(3000,), variants=("a", "b", "c"))
    said = sentence(analysed(wanted, simulate(wanted, noise=Noise(boot=0.01))), KNOWN)
    assert said == "Of 3 variants: 3 inconclusive (a, b, c: one seed gives no interval, add --seeds 2)."


def test_a_loss_is_in_the_direction_of_its_metric_and_the_largest_is_first() -> None:
    result = _with_losses({"freeze_user_ns": 1.2, "rate_per_s": 0.4})
    assert sentence(result, KNOWN) == (
        "v makes rate worse: -60% (2.5 times less, over all 2 points), also freezing user space +20%."
    )
    result = _with_losses({"freeze_user_ns": 3.0})
    assert "3.0 times costlier (200% more instructions," in sentence(result, KNOWN)


def test_a_revision_says_what_it_keeps_of_the_one_before() -> None:
    def said(*variants: str) -> str:
        def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
            return 1e6 * (0.5 if kernel in variants and metric == "freeze_user_ns" else 1.0)

        wanted = freezer(boots=3, repetitions=1, zombies=(0, 3000), variants=variants)
        return sentence(analysed(wanted, simulate(wanted, cost, None)), KNOWN)

    keeps = "; fix-v2 keeps all of fix-v1's gain (freezing user space -50.0%)."
    assert said("fix-v1", "fix-v2").endswith(f"; nothing got worse{keeps}")
    assert said("fix-v2", "fix-v1").endswith(keeps)
    assert said("fix", "fix-v2").endswith("; fix-v2 keeps all of fix's gain (freezing user space -50.0%).")
    assert said("v1", "v2", "v3").endswith("; v3 keeps all of v2's gain (freezing user space -50.0%).")
    assert "keeps" not in said("fix-v1", "other-v2")
    assert "keeps" not in said("exit-gate", "exit-gate@-3")


def _with_losses(ratios: Mapping[str, float]) -> Result:
    """Return a result with these metrics worse at two points each."""
    facts = KernelFacts(release="6.12", source="s", arch="x86_64", compiler="", config_hash="", image_hash="")
    comparisons, metrics = [], []
    for name, ratio in ratios.items():
        spec = _WORKLOAD.metrics[name]
        about: dict[str, Any] = {"workload": "zombies", "variant": "v", "metric": name, "unit": spec.unit}
        about |= {"better": spec.better, "ratio": ratio, "ci": None, "confidence": 0.95, "mde": None}
        about |= {"verdict": "worse"}
        sides: dict[str, Any] = {"base": _summary(1000), "changed": _summary(1000 * ratio)}
        comparisons += [Comparison(**about, **sides, point=point) for point in _POINTS[:2]]
        metrics.append(MetricVerdict(**about, points=2, planned=2, boots=3))
    return Result(
        experiment="e",
        question="q",
        clock="instructions",
        command="",
        machine={},
        kernels={"base": facts, "v": facts},
        comparisons=tuple(comparisons),
        laws=(),
        boots={"ok": 3},
        metric_verdicts=tuple(metrics),
    )


def test_on_the_wall_clock_it_is_time() -> None:
    wanted = freezer("wall", boots=10, zombies=(3000, 15000), variants=(VARIANT,))
    result = analysed(wanted, simulate(wanted, noise=Noise(block=0.1, boot=0.01, sample=0.01)))
    said = sentence(result, KNOWN)
    assert re.match(rf"{VARIANT} makes freezing user space 2\.\d times faster \(\d\d% less time", said)
    assert "instruction" not in said


def test_what_is_unfinished_or_of_base_alone_is_said() -> None:
    result = instructions().result
    stopping = Stopping(
        rule="verdict", looks=(3, 5), stopped_at=3, confidence=0.95, alpha=0, done=False, reason=""
    )
    early = result.model_copy(update={"stopping": stopping})
    assert sentence(early, WORKLOADS).startswith("So far (the run is not finished): ")
    killed = result.model_copy(update={"boots_left": 4})
    assert sentence(killed, WORKLOADS).startswith("So far (the run is not finished; boots left: 4): ")
    for part in (early, killed):
        with pytest.raises(GateError, match="not finished"):
            gate("RUN", part, WORKLOADS, FailOn.worse)
    alone = {"kernels": {"base": result.kernels["base"]}, "comparisons": (), "metric_verdicts": ()}
    base = result.model_copy(update=alone)
    assert sentence(base, WORKLOADS) == "Only base was run: there is nothing to compare it with."
    failed = base.model_copy(update={"faults": (_fault("base", "base"),)})
    assert sentence(failed, WORKLOADS).endswith("; base itself fails: it panics in 1 of 2 boots.")
    assert tone_of(base) == "inconclusive"


def test_every_report_begins_with_it(tmp_path: Path) -> None:
    for material in (instructions(), wall()):
        said = sentence(material.result, material.workloads)
        console = Console(record=True, width=10_000)
        text.render(material.result, material.workloads, None, console)
        assert console.export_text().splitlines()[0].strip() == said
        assert " ".join(TEXTS["cover"](material).split("\n\n")[0].split()) == said
        assert TEXTS["markdown"](material).startswith(f"**{said}**\n")
        assert json.loads(TEXTS["json"](material))["sentence"] == said
        page = TEXTS["html"](material)
        assert said in page
        assert page.index(said) < page.index(material.result.question)


def test_a_run_keeps_it(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    pipeline.analyse_and_save(load(run))
    kept = json.loads(run.result_file.read_bytes())
    assert kept["sentence"].startswith(f"{VARIANT} ")
    assert saved.answer(run) == kept["sentence"]


def test_a_metric_without_a_name_has_its_key_in_words() -> None:
    workload = KNOWN["zombies"]
    bare = {key: spec.model_copy(update={"name": ""}) for key, spec in workload.metrics.items()}
    older = {"zombies": workload.model_copy(update={"metrics": bare})}
    assert metric_name(older, "zombies", "suspend_call_ns") == "suspend call time"
    assert metric_name(older, "zombies", "tasks_share") == "tasks share"


def test_each_metric_of_a_shipped_workload_has_a_name_of_its_own() -> None:
    for name in workload_names():
        given = [spec.name for spec in load_workload(name).metrics.values()]
        assert all(given), name
        assert len(given) == len(set(given)), name
