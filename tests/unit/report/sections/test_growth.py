"""The growth laws of a report, with their predictions."""

from __future__ import annotations

from kteardown.model.laws import Prediction
from kteardown.model.result import Result
from unit.report.on_terminal import printed, rows


def test_a_law_has_a_prediction_or_the_reason_for_its_refusal(wall_result: Result) -> None:
    ahead = Prediction(at=900_000, value=31e9, low=28e9, high=35e9)
    refused = Prediction(at=900_000, refused="3 points are too few for a growth law")
    laws = tuple(
        law.model_copy(update={"predictions": (ahead if law.kernel == "base" else refused,)})
        for law in wall_result.laws
    )
    report = printed(wall_result.model_copy(update={"laws": laws}))
    header, _, base, other, *_ = rows(report, "zombies: growth of freezing user space")
    assert header[-1] == "s at 900,000"
    assert base[-1] == "31.00 (28.00 to 35.00)"
    assert other[-1] == "-"
    assert (
        "no prediction at 900,000 for freezer-skip-exited, freezer-skip-nofreeze: 3 points are too "
        "few for "
        "a growth law" in report
    )
    none = tuple(law.model_copy(update={"predictions": (refused,)}) for law in wall_result.laws)
    assert "no prediction at 900,000 for any kernel" in printed(
        wall_result.model_copy(update={"laws": none})
    )


def test_an_unknown_law_has_its_reason_below_the_table(wall_result: Result) -> None:
    """The cost of one more object is printed all the same: it does not depend on the law."""
    laws = tuple(
        law.model_copy(update={"model": "linear" if law.kernel == "base" else "unknown"})
        for law in wall_result.laws
    )
    report = printed(wall_result.model_copy(update={"laws": laws}))
    header, _, base, other, *_ = rows(report, "zombies: growth of freezing user space")
    column = header.index("law")
    assert (base[column], other[column]) == ("linear", "unknown")
    assert other[column - 1] != "-"
    assert (
        "law of freezer-skip-exited, freezer-skip-nofreeze unknown: too few points, or too much "
        "noise, "
        "to show one" in report
    )
