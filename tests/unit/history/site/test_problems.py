"""The page of problems: which laws of a result it has, and in which group a problem is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kteardown.catalogue.laws import MeasuredLaw
from kteardown.catalogue.problems import load_problems
from kteardown_history.site.problems import laws_in, problem_groups
from unit.report.contexts import instructions, wall

LAW = MeasuredLaw("w", "m_ns", "n", "6.12", "", {}, 100, (99, 101), "instructions", "<i>run</i>")


def test_a_straight_line_of_the_instruction_clock_is_a_law() -> None:
    result = instructions().result
    laws = laws_in(result, "run")
    assert {law.release for law in laws} == {"6.12"}
    assert {"", "freezer-skip-exited"} <= {law.series for law in laws}
    (base,) = [law for law in laws if law.metric == "freeze_user_ns" and not law.series]
    (expected,) = [
        law for law in result.laws if law.kernel == "base" and law.metric == "freeze_user_ns"
    ]
    assert (base.per_unit, base.param) == (expected.per_unit, "zombies")


def test_times_of_a_host_are_no_law() -> None:
    assert laws_in(wall().result, "run") == []


@pytest.mark.parametrize(
    "facts",
    [
        {"arch": "arm64"},
        {"source": "patched:mine@debian:6.12"},
        {"source": "git:/linux@v6.12"},
        {"source": "debian-image:6.12"},
        {"release": "unknown"},
    ],
)
def test_a_kernel_that_is_not_the_release_stands_for_none(facts: dict[str, str]) -> None:
    result = instructions().result
    base = result.kernels["base"].model_copy(update=facts)
    kernels = {**result.kernels, "base": base}
    laws = laws_in(result.model_copy(update={"kernels": kernels}), "run")
    assert laws
    assert all(law.series for law in laws)


def test_a_metric_of_which_more_is_better_has_no_law() -> None:
    result = instructions().result
    rows = [row.model_copy(update={"better": "higher"}) for row in result.comparisons]
    changed = result.model_copy(update={"comparisons": tuple(rows)})
    compared = {row.metric for row in rows}
    assert compared.isdisjoint(law.metric for law in laws_in(changed, "run"))


def test_a_cost_that_no_kernel_has_is_left_out() -> None:
    result = instructions().result
    laws = [law.model_copy(update={"per_unit": -1e308}) for law in result.laws]
    assert laws_in(result.model_copy(update={"laws": tuple(laws)}), "run") == []


def test_a_law_of_a_known_metric_at_another_point_is_a_card_of_its_own() -> None:
    law = replace(LAW, workload="zombies", metric="freeze_user_ns", point={"make": "nested"})
    cards = problem_groups([law, replace(law, release="7.0")], {})[-1].cards
    assert [card.anchor for card in cards] == ["zombies-freeze_user_ns-n-make-nested"]


def test_every_problem_is_in_one_group() -> None:
    anchors = [card.anchor for group in problem_groups([], {}) for card in group.cards]
    assert sorted(anchors) == sorted(problem.name for problem in load_problems())


def test_a_law_of_runs_is_a_card_if_two_releases_have_it() -> None:
    assert problem_groups([LAW], {}) == problem_groups([], {})
    worse = replace(LAW, release="7.0", per_unit=300, interval=(290, 310))
    names = {("w", "m_ns"): "making <b>"}
    (card,) = problem_groups([LAW, worse], names)[-1].cards
    assert (card.title, card.verdict, card.anchor) == ("making <b>", "worse", "w-m_ns-n")
    assert len(card.changes) == 1
    assert "<i>" not in card.picture
