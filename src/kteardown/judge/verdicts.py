"""The verdicts in their one order, and the outcome of each: what ``verdicts.toml`` has."""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from kteardown.model.judged import Verdict
from kteardown.paths import shipped_table

Outcome = Literal["broken", "fail", "unsure", "pass"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""What alarms most is first."""

_TABLE: Mapping[Verdict, Mapping[str, str]] = shipped_table("judge/verdicts")  # type: ignore[assignment]
VERDICTS: tuple[Verdict, ...] = tuple(_TABLE)
"""What alarms most is first."""
STYLES: Mapping[str | None, str] = {
    **{verdict: row["style"] for verdict, row in _TABLE.items()},
    None: "",
}
"""The style of each verdict on a terminal; None: of a text without a verdict."""
OUTCOME_OF: Mapping[Verdict, Outcome] = {verdict: row["outcome"] for verdict, row in _TABLE.items()}  # type: ignore[misc]
"""What a verdict means for a gate."""


def most_alarming(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the first of ``verdicts`` in the order of ``VERDICTS``; ``inconclusive`` of none."""
    given = set(verdicts)
    return next((verdict for verdict in VERDICTS if verdict in given), "inconclusive")


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the first of ``outcomes`` in the order of ``OUTCOMES``; ``unsure`` of none."""
    return min(outcomes, key=OUTCOMES.index, default="unsure")
