"""Texts of numbers: changes, probabilities and shares."""

from __future__ import annotations

import pytest

from kteardown.model.judged import Comparison, Summary
from kteardown.model.result import Part
from kteardown.report.formatting import (
    change,
    change_of,
    detectable,
    detectable_span,
    portion,
    probability,
    share,
)


@pytest.mark.parametrize(
    ("mdes", "text"),
    [
        ([0.0], "<0.05%"),
        ([0.0003, 0.0, 0.0004], "<0.05%"),
        ([0.032, 0.0, 0.01], "<0.05% to 3.2%"),
        ([0.031, 0.012], "1.2% to 3.1%"),
        ([0.0121, 0.0122], "1.2%"),
        ([0.05, 12.0], "5.0% to >1,000%"),
        ([11.0, 12.0], ">1,000%"),
    ],
)
def test_the_smallest_detectable_changes_of_a_table_are_one_statement(
    mdes: list[float], text: str
) -> None:
    assert detectable_span(mdes) == text


def test_texts_of_probabilities_and_shares() -> None:
    assert [probability(p) for p in (None, 0.0004, 0.0312, 1.0)] == [
        "-",
        "<0.001",
        "0.031",
        "1.000",
    ]
    assert [share(value) for value in (None, 0.0612, 1.5, 12.0)] == [
        "-",
        "6.1%",
        "150.0%",
        ">1,000%",
    ]
    assert [share(value) for value in (0.0, 0.0004, 0.0005)] == ["0.0%", "<0.05%", "0.1%"]
    assert [detectable(mde) for mde in (None, 0.0, 0.0004, 0.012)] == [
        "-",
        "<0.05%",
        "<0.05%",
        "1.2%",
    ]
    assert portion(Part(reason="why")) == "-"
    assert portion(Part(share=0.651, share_ci=(0.651, 0.651), exact=True)) == "65.1% exact"
    assert portion(Part(share=-0.0001, share_ci=(-0.0002, 0.0001))) == "0.0% [0.0, 0.0]"
    assert change_of(0.5, (0.4, 0.6)) == "-50.0% [-60.0, -40.0]"


def test_a_change_from_nothing_to_nothing_has_words_of_its_own() -> None:
    def compared(base: float, changed: float) -> Comparison:
        sides = {
            side: Summary(median=value, mean=value, sd=0, n=3, boots=3)
            for side, value in (("base", base), ("changed", changed))
        }
        return Comparison(
            workload="quota",
            variant="changed",
            metric="least_share",
            unit="share",
            better="higher",
            point={},
            base=sides["base"],
            changed=sides["changed"],
            ratio=None,
            ci=None,
            confidence=0.95,
            mde=None,
            verdict="same",
            same_within=0.02,
        )

    assert change(compared(0, 0)) == "both 0"
    assert change(compared(0, 3)) == "no ratio"
