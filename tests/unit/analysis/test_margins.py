"""Margins: how they are written, and the verdicts that follow from them."""

from __future__ import annotations

import pytest

from kteardown.analysis.margins import Margins
from kteardown.analysis.sequential import conclude, parse_until
from kteardown.errors import InputError
from kteardown.model.judged import MetricVerdict
from unit.simulation import Noise
from unit.validation import HEADLINE, reports
from unit.worlds import experiment


def verdict(
    ratio: float, low: float, high: float, is_now: str = "worse", better: str = "lower"
) -> MetricVerdict:
    fields = {
        "workload": "zombies",
        "variant": "v",
        "metric": "freeze_user_ns",
        "unit": "ns",
        "mde": 0.01,
    }
    fields |= {"confidence": 0.95, "points": 1, "planned": 1, "boots": 5, "verdict": is_now}
    return MetricVerdict.model_validate(
        {**fields, "ratio": ratio, "ci": (low, high), "better": better}
    )


def test_margins_are_written_and_read() -> None:
    found = Margins.parse("5%,freeze_user_ns=0.5%", "--margin")
    assert (found.of("thaw_ns"), found.of("freeze_user_ns"), found.least) == (0.05, 0.005, 0.005)
    assert Margins.parse(found.text, "--margin") == found
    assert Margins.parse("", "--margin").default == 0.02


@pytest.mark.parametrize("text", ["5", "100%", "x=", "x=5", "-1%", "a b=1%"])
def test_what_is_no_margin_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match=r"--margin: .* is not a margin"):
        Margins.parse(text, "--margin")


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (verdict(1.10, 1.08, 1.12), False),
        (verdict(1.03, 1.01, 1.05), None),
        (verdict(1.01, 1.005, 1.015), True),
        (verdict(0.8, 0.7, 0.9, "better"), True),
        (verdict(1.10, 1.08, 1.12, "inconclusive"), None),
        (verdict(1.0, 1.0, 1.0, "same"), True),
        (verdict(0.9, 0.88, 0.92, better="higher"), False),
        (verdict(1.2, 1.1, 1.3, "better", better="higher"), True),
    ],
)
def test_an_interval_decides(found: MetricVerdict, kept: bool | None) -> None:
    assert Margins(0.02).keeps(found) is kept


def test_a_saving_that_is_not_seen_from_outside_is_not_certain() -> None:
    found = verdict(0.15, 0.14, 0.16, "inconclusive").model_copy(update={"outside": "contradicts"})
    assert Margins(0.02).keeps(found) is None


def test_a_run_ends_when_its_margin_is_decided() -> None:
    rule = parse_until("margin=5%")
    ends = {}
    for ratio in (0.98, 1.04, 1.3):
        found = reports(Noise(boot=0.03, sample=0.01), ratio, experiment(20, clock="wall"), seed=3)
        result, stopping = conclude(found, 20, 20, rule, 0.95, HEADLINE)
        assert stopping is not None
        assert stopping.rule == "margin=5%"
        ends[ratio] = [m.verdict for m in Margins(0.05).applied(result).metric_verdicts]
    assert ends == {0.98: ["same"], 1.04: ["inconclusive"], 1.3: ["worse"]}


def test_a_margin_of_no_metric_is_an_error() -> None:
    with pytest.raises(InputError, match="no headline metric"):
        Margins(0.02, {"nothing_ns": 0.1}).check(["freeze_user_ns"])
