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
from rich.console import Console

from kteardown import pipeline
from kteardown.analysis.both_clocks import both_clocks
from kteardown.errors import GateError
from kteardown.flows.ending import gate
from kteardown.inputs.load import load_workload, workload_names
from kteardown.judge.answer import VariantAnswer, judge
from kteardown.judge.metrics import metric_name
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.clock import Clock
from kteardown.model.faults import FaultKind
from kteardown.model.judged import Comparison, MetricVerdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.result import Result, Stopping
from kteardown.report import saved
from kteardown.report.formats import text
from kteardown.report.formatting import without_options
from kteardown.report.material import Material
from kteardown.report.sentence import VariantLine, lines, sentence
from kteardown.rundir.snapshot import load
from unit.generated_results import POINTS, WORKLOAD, fault_of, results, summary_of
from unit.report.contexts import instructions, wall, write_run
from unit.report.rendered import TEXTS
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

_MANY_FAULTS: tuple[FaultKind, ...] = ("panic", "hang", "oom", "invariant", "warning", "leak")
VARIANT = "freezer-skip-exited"
KNOWN = {"zombies": WORKLOAD}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(results())
def test_each_variant_has_one_line_that_names_what_is_bad(result: Result) -> None:
    said = lines(result, KNOWN)
    answers = judge(result, KNOWN).variants
    assert sorted(answer.name for answer in answers) == sorted(result.requested)
    assert [line.tone for line in said] == sorted((line.tone for line in said), key=VERDICTS.index)
    for answer, line in zip(answers, said, strict=True):
        assert answer.name in line.text
        assert line.text.isascii() and line.text.isprintable()
        _check_line(answer, line)


def _check_line(answer: VariantAnswer, line: VariantLine) -> None:
    """Check what is said of one variant."""
    text = line.text.lower()
    if answer.outcome == "broken":
        assert text == f"{answer.name} is broken: panic in 1 of 2 boots (base in 0 of 2)."
        assert line.tone == "broken"
        return
    assert ("may be broken: panic in 1 of 2 boots" in text) == bool(answer.with_status("suspected"))
    assert (f"{len(answer.lost)} of 3 points" in text) == bool(answer.lost)
    for direction in ("worse", "better"):
        turned = [finding for finding in answer.findings if finding.is_turned(direction)]
        assert f"nothing got measurably {direction}" not in text or not turned
        headlines = {finding.group.name for finding in turned if finding.headline}
        assert headlines <= {name for name in headlines if name in text}
    unsure = [finding for finding in answer.headlines if finding.outcome == "unsure"]
    said = ("inconclusive: ", "it is unclear", "in opposite directions")
    assert any(words in text for words in said) == any(
        not finding.is_turned("better") for finding in unsure
    )


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(results(), results())
def test_both_clocks_are_in_one_line(exact: Result, wall: Result) -> None:
    sides = [
        one.model_copy(update={"clock": clock})
        for one, clock in ((exact, "instructions"), (wall, "wall"))
    ]
    both = both_clocks(*sides)
    answers = judge(both, KNOWN).variants
    assert {answer.name for answer in answers} == {*exact.requested, *wall.requested}
    for answer, line in zip(answers, lines(both, KNOWN), strict=True):
        assert any(one.broken(answer.name) for one in sides) == (" is broken: " in line.text)
        if answer.outcome == "broken":
            continue
        for finding in answer.headlines:
            if finding.is_turned("worse"):
                assert f"on the {finding.clock.removesuffix('s')}" in line.text


def test_a_long_name_is_cut_and_nothing_bad_is_left_out() -> None:
    name = "a-" + "long-" * 40 + "name"
    result = with_losses({"freeze_user_ns": 1.2, "rate_per_s": 0.4}, name)
    (line,) = lines(result, KNOWN)
    assert (
        line.text.startswith("With a-long-")
        and "..., rate got 60% lower on average over 2 points and " in line.text
    )
    broken = result.model_copy(
        update={"faults": tuple(fault_of(name, "broken", kind) for kind in _MANY_FAULTS)}
    )
    (line,) = lines(broken, KNOWN)
    assert " is broken: panic in 1 of 2 boots (base in 0 of 2), " in line.text
    assert line.text.endswith(" and 4 more faults.")


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            dict.fromkeys((0, 3000, 6000), 1 / 3.2),
            "69% fewer instructions on average over 3 points; ~worse.",
        ),
        (
            {0: 0.95, 3000: 0.5, 6000: 0.4},
            "43% fewer instructions on average over 3 points; ~worse.",
        ),
        ({3000: 0.5, 6000: 0.4}, "42% fewer instructions on average over 3 points; ~worse."),
        (
            dict.fromkeys((0, 3000, 6000), 1.058),
            "5.8% more instructions on average over 3 points; ~better.",
        ),
        (
            dict.fromkeys((0, 3000, 6000), 3.5),
            "3.5 times as many instructions on average over 3 points; ~better.",
        ),
        (
            {0: 1.3, 3000: 0.5, 6000: 0.5},
            "30% more instructions at zombies=0; freezing user space takes 50% fewer instructions "
            "at zombies=3,000 and zombies=6,000.",
        ),
        ({0: 1.001}, "V does not change freezing user space by more than 2%."),
        ({}, "V does not change freezing user space: every figure is equal to the digit."),
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
    said = said if said.startswith("V") else f"With V, freezing user space takes {said}"
    assert sentence(result, KNOWN) == said.replace("V", VARIANT).replace(
        "~", "nothing got measurably "
    )


def test_one_seed_or_boot_says_which_option_gives_a_verdict() -> None:
    remedies: dict[Clock, tuple[str, str]] = {
        "instructions": ("one seed gives no interval, add --seeds 2", ""),
        "wall": (
            "one boot gives no interval, add --boots 2",
            " (on the instruction clock --seeds 2)",
        ),
    }
    for clock, (remedy, other) in remedies.items():
        wanted = freezer(clock, boots=1, zombies=(3000, 15000), variants=("v",))
        result = analysed(wanted, simulate(wanted, noise=Noise(boot=0.01, sample=0.01)))
        said, option = sentence(result, KNOWN), remedy.partition(", ")[2]
        assert said.endswith(f"is unclear whether v changes freezing user space; {option}.")
        assert without_options(said) == said.replace(f"; {option}", "")
        out = io.StringIO()
        text.report(Material("", result, KNOWN), Console(file=out, width=300, force_terminal=False))
        rows = [line for line in out.getvalue().splitlines() if remedy + other in line]
        assert any(line.startswith("2 inconclusive: ") for line in rows), clock
        with pytest.raises(GateError, match=re.escape(remedy + other)):
            gate(Material("RUN", result, KNOWN), "inconclusive")


def test_what_is_undecided_has_the_smallest_detectable_change_if_it_fits() -> None:
    wanted = freezer("wall", boots=4, zombies=(3000,), variants=("v",))
    result = analysed(wanted, simulate(wanted, lambda *_: 1e6, noise=Noise(boot=0.3, sample=0.01)))
    said = sentence(result, KNOWN)
    assert re.search(
        r"unclear whether v changes .* \(changes below [\w .]+%? may go unseen\)", said
    )


def test_a_loss_is_in_the_direction_of_its_metric_and_the_largest_is_first() -> None:
    assert sentence(with_losses({"freeze_user_ns": 1.2, "rate_per_s": 0.4}), KNOWN) == (
        "With v, rate got 60% lower on average over 2 points and freezing user space takes 20% "
        "more instructions on average over 2 points; nothing got measurably better."
    )


def test_a_revision_says_what_it_keeps_of_the_one_before() -> None:
    def said(*variants: str) -> str:
        def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
            return 1e6 * (0.5 if kernel in variants and metric == "freeze_user_ns" else 1.0)

        wanted = freezer(boots=3, repetitions=1, zombies=(0, 3000), variants=variants)
        return sentence(analysed(wanted, simulate(wanted, cost, None)), KNOWN)

    line = "over 2 points; nothing got measurably worse; keeps all of fix-v1's gain."
    assert line in said("fix-v1", "fix-v2")
    assert line in said("fix-v2", "fix-v1")
    assert "; keeps all of fix's gain." in said("fix", "fix-v2")
    assert "; nothing got measurably worse; keeps all of v2's gain." in said("v1", "v2", "v3")
    assert "keeps" not in said("fix-v1", "other-v2")
    assert "keeps" not in said("exit-gate", "exit-gate@-3")


def with_losses(ratios: Mapping[str, float], variant: str = "v") -> Result:
    """Return a result with these metrics worse at two points each."""
    facts = KernelFacts(
        release="6.12", source="s", arch="x86_64", compiler="", config_hash="", image_hash=""
    )
    comparisons, metrics = [], []
    for name, ratio in ratios.items():
        spec = WORKLOAD.metrics[name]
        about: dict[str, Any] = {
            "workload": "zombies",
            "variant": variant,
            "metric": name,
            "unit": spec.unit,
        }
        about |= {
            "better": spec.better,
            "ratio": ratio,
            "ci": None,
            "confidence": 0.95,
            "mde": None,
        }
        about |= {"verdict": "worse"}
        sides: dict[str, Any] = {"base": summary_of(1000), "changed": summary_of(1000 * ratio)}
        comparisons += [Comparison(**about, **sides, point=point) for point in POINTS[:2]]
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
    for part, said in ((early, "So far: "), (killed, "So far, with 4 boots left: ")):
        assert all(line.text.startswith(said) for line in lines(part, WORKLOADS))
        with pytest.raises(GateError, match="not finished"):
            gate(Material("RUN", part, WORKLOADS), "worse")
    alone = {"kernels": {"base": result.kernels["base"]}, "comparisons": (), "metric_verdicts": ()}
    base = result.model_copy(update=alone)
    assert lines(base, WORKLOADS) == [("inconclusive", "base: there is nothing to compare it with")]
    failed = base.model_copy(update={"faults": (fault_of("base", "base"),)})
    assert lines(failed, WORKLOADS)[0] == ("broken", "base is broken: panic in 1 of 2 boots.")


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
        assert json.loads(TEXTS["json"](material))["headline"] == said
        page = TEXTS["html"](material)
        for line in said.splitlines():
            assert line in page
            assert page.index(line) < page.index(material.result.question)


def test_a_run_keeps_it(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    pipeline.analyse_and_save(load(run))
    kept = json.loads(run.result_file.path.read_bytes())
    assert VARIANT in kept["sentence"]
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
