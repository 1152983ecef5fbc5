"""The lines with which every report begins: they have what the verdicts have, and no more."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from kteardown import pipeline
from kteardown.analysis.both_clocks import both_clocks
from kteardown.cli.options import FailOn
from kteardown.cli.outcome import TEXTS, gate
from kteardown.errors import GateError
from kteardown.inputs.load import load_workload, workload_names
from kteardown.model.clock import Clock
from kteardown.model.record import ParamValue
from kteardown.model.result import (
    Comparison,
    Fault,
    FaultKind,
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
from kteardown.report.formatting import without_options
from kteardown.report.material import Material
from kteardown.report.metrics import metric_name
from kteardown.report.sentence import WIDTH, VariantLine, lines, sentence
from kteardown.rundir.snapshot import load
from unit.report.contexts import instructions, wall, write_run
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

_MANY_FAULTS: tuple[FaultKind, ...] = ("panic", "hang", "oom", "invariant", "warning", "leak")
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


def _fault(kernel: str, status: FaultStatus, kind: FaultKind = "panic") -> Fault:
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


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_results())
def test_each_variant_has_one_line_that_names_what_is_bad(result: Result) -> None:
    found = lines(result, KNOWN)
    assert [line.text.partition(":")[0] for line in sorted(found, key=lambda line: line.text)] == list(
        result.requested
    )
    order = ("broken", "worse", "inconclusive", "better", "same")
    assert [line.tone for line in found] == sorted((line.tone for line in found), key=order.index)
    for line in found:
        assert len(line.text) <= WIDTH
        assert line.text.isascii() and line.text.isprintable()
        _each_variant(result, line.text.partition(":")[0], line)


def _each_variant(result: Result, variant: str, line: VariantLine) -> None:
    """Check the clauses of one variant."""
    clauses = line.text.removeprefix(f"{variant}: ").split("; ")
    if result.broken(variant):
        assert clauses == ["broken: panic in 1 of 2 boots (base in 0 of 2)"]
        assert line.tone == "broken"
        return
    if any(f.kernel == variant and f.status == "suspected" for f in result.faults):
        assert clauses.pop(0).startswith("maybe broken: panic in 1 of 2 boots")
        assert line.tone == "broken"
    rows = [c for c in result.comparisons if c.variant == variant]
    whole = {m.metric: m.verdict for m in result.metric_verdicts if m.variant == variant}
    for label in ("worse", "better"):
        metrics = {c.metric for c in rows if c.verdict == label} | {m for m, v in whole.items() if v == label}
        if metrics or rows:
            mine = [c for c in clauses if c.startswith(f"{label}: ")]
            assert mine or (label == "better" and "..." in clauses)
            assert [_count(clause) for clause in mine] == [len(metrics)] * len(mine)
    lost = sum(u.variant == variant for u in result.uncompared)
    assert bool(lost) == any(c.startswith(f"not compared: {lost} of 3") for c in clauses)
    assert clauses.index(next(c for c in clauses if c.startswith("worse: "))) == 0


def _count(clause: str) -> int:
    """Return how many metrics a clause names and counts."""
    text = clause.partition(": ")[2]
    if text == "none":
        return 0
    if counted := re.fullmatch(r"(\d+) metrics?", text):
        return int(counted[1])
    more = re.search(r" and (\d+) more$", text)
    named = (text[: more.start()] if more else text).split(", ")
    return len(named) + (int(more[1]) if more else 0)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_results(), _results())
def test_both_clocks_have_the_same_form(exact: Result, wall: Result) -> None:
    sides = [
        one.model_copy(update={"clock": clock}) for one, clock in ((exact, "instructions"), (wall, "wall"))
    ]
    both = both_clocks(*sides)
    found = {line.text.partition(":")[0]: line.text for line in lines(both, KNOWN)}
    assert list(found) and set(found) == {*exact.requested, *wall.requested}
    for variant, said in found.items():
        assert len(said) <= WIDTH
        clauses = said.removeprefix(f"{variant}: ").split("; ")
        broken = [one.broken(variant) for one in sides]
        assert any(broken) == clauses[0].startswith("broken: ")
        if any(broken):
            assert len(clauses) == 1
            continue
        worse = {
            c.metric for one in sides for c in one.comparisons if (c.variant, c.verdict) == (variant, "worse")
        } | {
            m.metric
            for one in sides
            for m in one.metric_verdicts
            if (m.variant, m.verdict) == (variant, "worse")
        }
        assert _count(next(c for c in clauses if c.startswith("worse: "))) == len(worse)


def test_what_is_worse_is_named_before_what_is_undecided() -> None:
    name = "a-name-of-a-series-that-is-longer"
    bad = _with_losses({"rate_per_s": 0.4, "thaw_ns": 1.1}, name)
    other = _with_losses({"freeze_user_ns": 1.2, "suspend_call_ns": 1.2}, name)
    undecided = [one.model_copy(update={"verdict": "inconclusive"}) for one in other.comparisons]
    metrics = [one.model_copy(update={"verdict": "inconclusive"}) for one in other.metric_verdicts]
    both = {
        "comparisons": (*bad.comparisons, *undecided),
        "metric_verdicts": (*bad.metric_verdicts, *metrics),
    }
    (line,) = lines(bad.model_copy(update=both), KNOWN)
    assert len(line.text) <= WIDTH
    assert "worse: rate_per_s " in line.text


def test_a_long_name_is_cut_and_nothing_bad_is_left_out() -> None:
    name = "a-" + "long-" * 40 + "name"
    result = _with_losses({"freeze_user_ns": 1.2, "rate_per_s": 0.4}, name)
    (line,) = lines(result, KNOWN)
    assert len(line.text) == WIDTH
    assert line.text.startswith("a-long-") and "...: worse: " in line.text
    broken = result.model_copy(
        update={"faults": tuple(_fault(name, "broken", kind) for kind in _MANY_FAULTS)}
    )
    (line,) = lines(broken, KNOWN)
    assert len(line.text) <= WIDTH
    assert line.text.endswith("...: broken: panic in 1 of 2 boots and 5 more")


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (dict.fromkeys((0, 3000, 6000), 1 / 3.2), "worse: none; better: freeze_user_ns -69%"),
        ({0: 0.95, 3000: 0.5, 6000: 0.4}, "worse: none; better: freeze_user_ns -5.0% to -60%"),
        ({3000: 0.5, 6000: 0.4}, "worse: none; better: freeze_user_ns -50% to -60% at 2 of 3"),
        (dict.fromkeys((0, 3000, 6000), 1.058), "worse: freeze_user_ns +5.8%; better: none"),
        (
            {0: 1.3, 3000: 0.5, 6000: 0.5},
            "worse: freeze_user_ns +30% at 1 of 3; better: freeze_user_ns -50% at 2 of 3",
        ),
        ({0: 1.001}, "worse: none; better: none; the same: freeze_user_ns"),
        ({}, "worse: none; better: none; no effect: freeze_user_ns"),
    ],
)
def test_the_line_of_exact_counts(ratios: Mapping[int, float], said: str) -> None:
    def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
        changed = kernel != "base" and metric == "freeze_user_ns"
        return 1e6 * (ratios.get(int(str(params["zombies"])), 1.0) if changed else 1.0)

    wanted = freezer(boots=3, repetitions=1, zombies=(0, 3000, 6000), variants=(VARIANT,))
    result = analysed(wanted, simulate(wanted, cost, None))
    only = tuple(c for c in result.comparisons if c.metric == "freeze_user_ns")
    whole = tuple(m for m in result.metric_verdicts if m.metric == "freeze_user_ns")
    result = result.model_copy(update={"comparisons": only, "metric_verdicts": whole})
    begins = f"{VARIANT}: {said}"
    assert sentence(result, KNOWN) in (begins, f"{begins}; 3 points", f"{begins}; 3 points (instructions)")


def test_one_seed_or_boot_says_which_option_gives_a_verdict() -> None:
    remedies: dict[Clock, tuple[str, str]] = {
        "instructions": ("one seed gives no interval, add --seeds 2", ""),
        "wall": ("one boot gives no interval, add --boots 2", " (on the instruction clock --seeds 2)"),
    }
    for clock, (remedy, other) in remedies.items():
        wanted = freezer(clock, boots=1, zombies=(3000, 15000), variants=("v",))
        result = analysed(wanted, simulate(wanted, noise=Noise(boot=0.01, sample=0.01)))
        said, option = sentence(result, KNOWN), remedy.partition(", ")[2]
        assert said == (
            f"v: worse: none; better: none; undecided: freeze_user_ns; {option}; 2 points ({clock})"
        )
        assert without_options(said) == said.replace(f"; {option}", "")
        out = io.StringIO()
        text.report(Material("", result, KNOWN), Console(file=out, width=300, force_terminal=False))
        rows = [line for line in out.getvalue().splitlines() if remedy + other in line]
        assert any(line.startswith("2 inconclusive: ") for line in rows), clock
        with pytest.raises(GateError, match=re.escape(remedy + other)):
            gate("RUN", result, KNOWN, FailOn.inconclusive)


def test_what_is_undecided_has_the_smallest_detectable_change_if_it_fits() -> None:
    wanted = freezer("wall", boots=4, zombies=(3000,), variants=("v",))
    result = analysed(wanted, simulate(wanted, lambda *_: 1e6, noise=Noise(boot=0.3, sample=0.01)))
    said = sentence(result, KNOWN)
    assert re.search(r"; undecided: freeze_user_ns \(smallest detectable \d+\.\d%\)", said), said


def test_a_loss_is_in_the_direction_of_its_metric_and_the_largest_is_first() -> None:
    assert sentence(_with_losses({"freeze_user_ns": 1.2, "rate_per_s": 0.4}), KNOWN) == (
        "v: worse: rate_per_s -60%, freeze_user_ns +20%; better: none; 2 points (instructions)"
    )


def test_a_revision_says_what_it_keeps_of_the_one_before() -> None:
    def said(*variants: str) -> str:
        def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
            return 1e6 * (0.5 if kernel in variants and metric == "freeze_user_ns" else 1.0)

        wanted = freezer(boots=3, repetitions=1, zombies=(0, 3000), variants=variants)
        return sentence(analysed(wanted, simulate(wanted, cost, None)), KNOWN)

    line = "fix-v2: worse: none; better: freeze_user_ns -50%; keeps all of fix-v1's gain; 2 points"
    assert line in said("fix-v1", "fix-v2")
    assert line in said("fix-v2", "fix-v1")
    assert "; keeps all of fix's gain; " in said("fix", "fix-v2")
    assert "v3: worse: none; better: freeze_user_ns -50%; keeps all of v2's gain; " in said("v1", "v2", "v3")
    assert "keeps" not in said("fix-v1", "other-v2")
    assert "keeps" not in said("exit-gate", "exit-gate@-3")


def _with_losses(ratios: Mapping[str, float], variant: str = "v") -> Result:
    """Return a result with these metrics worse at two points each."""
    facts = KernelFacts(release="6.12", source="s", arch="x86_64", compiler="", config_hash="", image_hash="")
    comparisons, metrics = [], []
    for name, ratio in ratios.items():
        spec = _WORKLOAD.metrics[name]
        about: dict[str, Any] = {"workload": "zombies", "variant": variant, "metric": name, "unit": spec.unit}
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
        kernels={"base": facts, variant: facts},
        comparisons=tuple(comparisons),
        laws=(),
        boots={"ok": 3},
        metric_verdicts=tuple(metrics),
    )


def test_what_is_unfinished_or_of_base_alone_is_said() -> None:
    result = instructions().result
    stopping = Stopping(
        rule="verdict", looks=(3, 5), stopped_at=3, confidence=0.95, alpha=0, done=False, reason=""
    )
    early = result.model_copy(update={"stopping": stopping})
    killed = result.model_copy(update={"boots_left": 4})
    for part, said in ((early, ": so far: worse: "), (killed, ": so far, 4 boots left: worse: ")):
        assert all(said in line.text for line in lines(part, WORKLOADS))
        with pytest.raises(GateError, match="not finished"):
            gate("RUN", part, WORKLOADS, FailOn.worse)
    alone = {"kernels": {"base": result.kernels["base"]}, "comparisons": (), "metric_verdicts": ()}
    base = result.model_copy(update=alone)
    assert lines(base, WORKLOADS) == [("inconclusive", "base: there is nothing to compare it with")]
    failed = base.model_copy(update={"faults": (_fault("base", "base"),)})
    assert lines(failed, WORKLOADS)[0] == ("broken", "base: broken: panic in 1 of 2 boots")


def test_every_report_begins_with_it(tmp_path: Path) -> None:
    for material in (instructions(), wall()):
        said = sentence(material.result, material.workloads)
        console = Console(record=True, width=10_000)
        text.report(replace(material, reference=None), console)
        assert console.export_text().startswith(f"{said}\n")
        listed = [f"- {line}" for line in said.splitlines()]
        first = TEXTS["cover"](material).split("\n\n")[0]
        assert " ".join(first.split()) == " ".join(listed)
        assert TEXTS["markdown"](material).startswith(f"- **{said.splitlines()[0]}**\n- **")
        assert json.loads(TEXTS["json"](material))["sentence"] == said
        page = TEXTS["html"](material)
        for line in said.splitlines():
            assert line in page
            assert page.index(line) < page.index(material.result.question)


def test_a_run_keeps_it(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    pipeline.analyse_and_save(load(run))
    kept = json.loads(run.result_file.path.read_bytes())
    assert kept["sentence"].startswith(f"{VARIANT}: ")
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
