"""The sentences of a cover letter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kteardown.model.record_fields import ParamValue
from kteardown.report.prose import change_sentences, place_in_words, why_unsure
from unit.generated_results import fault_of
from unit.judge.test_deciding import metric
from unit.report.contexts import instructions, wall


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"zombies": 15000}, "15,000 zombies"),
        ({"zombies": 1}, "1 zombie"),
        ({"zombies": 3000, "make": "fork"}, "3,000 zombies (make=fork)"),
        ({"make": "fork", "cpus": 2}, "make=fork cpus=2"),
        ({}, ""),
    ],
)
def test_a_point_in_words(point: dict[str, ParamValue], words: str) -> None:
    assert place_in_words(point, "zombies") == words


def test_a_sentence_has_the_figures_and_what_one_more_adds() -> None:
    (first, *others), *_ = change_sentences(instructions())
    assert first.startswith(
        "With freezer-skip-exited, at 30,000 zombies, freezing user space takes "
    )
    assert "instructions instead of" in first and "; each zombie adds " in first
    assert all(text.endswith(".") for text in (first, *others))


def test_a_time_names_its_unit_twice() -> None:
    (first, *_), *_ = change_sentences(wall())
    assert " us instead of " in first and " ns instead of " in first


def test_a_broken_variant_has_no_figures() -> None:
    material = instructions()
    faults = tuple(fault_of(name, "broken") for name in material.result.requested)
    broken = replace(material, result=material.result.model_copy(update={"faults": faults}))
    assert list(change_sentences(broken)) == []


def test_what_is_unclear_says_what_would_decide_it() -> None:
    assert "add --seeds" in why_unsure(metric(), "instructions")
    assert "add --boots" in why_unsure(metric(), "wall")
    assert why_unsure(metric(reason=""), "wall") == ""
    near = metric(ci=(0.9, 1.3), reason="the interval includes 0%")
    assert why_unsure(near, "wall") == "the interval includes 0%"


def test_a_name_that_begins_with_a_capital_keeps_it() -> None:
    material = instructions()
    zombies = material.workloads["zombies"]
    metrics = {
        key: spec.model_copy(update={"name": "CPU time"}) for key, spec in zombies.metrics.items()
    }
    named = {**material.workloads, "zombies": zombies.model_copy(update={"metrics": metrics})}
    text = " ".join(
        " ".join(texts) for texts in change_sentences(replace(material, workloads=named))
    )
    assert "CPU time" in text and "cPU" not in text
