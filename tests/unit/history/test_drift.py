"""Drifts: small steps that add up, and what is none."""

from __future__ import annotations

import pytest

from kteardown_history.drift import drift_of
from unit.history.test_lines import boot, facts, lines


@pytest.mark.parametrize(
    ("values", "by", "steps", "since"),
    [
        ([100, 101.5, 101.5, 103, 104.5], 0.045, 3, "0"),
        ([100, 100, 100, 101], None, 0, ""),
        ([100, 110, 110], None, 0, ""),
        ([100, 110, 111.5, 113], 3 / 110, 2, "1"),
        ([103, 101.5, 100, 101.5, 103], 0.03, 2, "2"),
        ([103, 101.5, 100], None, 0, ""),
        ([100], None, 0, ""),
    ],
)
def test_what_adds_up_since_the_best_level_is_a_drift(
    values: list[float], by: float | None, steps: int, since: str
) -> None:
    figures = [boot(str(n), value) for n, value in enumerate(values)]
    runs = {str(n): facts() for n in range(len(values))}
    (line,) = lines(figures, runs, order="time", least=0.002).lines
    found = drift_of(line, 0.02)
    if by is None:
        assert found is None
    else:
        assert found is not None
        assert found.by == pytest.approx(by)
        assert (found.steps, found.since) == (steps, since)
