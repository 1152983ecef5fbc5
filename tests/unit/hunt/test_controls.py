"""False finds and power in simulated curves; bench/validate_hunt.py has more runs.

Every bound allows for three standard errors of the asserted share.
"""

from __future__ import annotations

import math

import pytest

from unit.hunt import controls as c

RUNS = 60


def room(share: float, runs: int) -> float:
    return 3 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("name", list(c.LINEAR))
def test_three_seeds_find_nothing_in_linear_costs(name: str, noise: float) -> None:
    assert c.found(c.LINEAR[name], 3, noise, RUNS) <= 0.01 + room(0.01, RUNS)


@pytest.mark.parametrize("name", list(c.LINEAR))
def test_four_sizes_of_few_objects_find_nothing_in_linear_costs(name: str) -> None:
    assert c.found_in_few(c.LINEAR[name], 0.01, RUNS) <= 0.01 + room(0.01, RUNS)


@pytest.mark.parametrize("name", [name for name in c.FINDS if "setup" not in name])
def test_four_sizes_of_few_objects_are_enough_for_a_find(name: str) -> None:
    assert c.found_in_few(c.FINDS[name], 0.01, RUNS) == 1


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_one_seed_rarely_finds_anything_in_a_linear_cost(noise: float) -> None:
    assert c.found(c.LINEAR["linear"], 1, noise, RUNS) <= 0.02 + room(0.02, RUNS)


@pytest.mark.parametrize("name", [name for name in c.FINDS if "setup" not in name])
def test_finds_are_found_at_a_noise_of_one_percent(name: str) -> None:
    assert c.found(c.FINDS[name], 3, 0.01, RUNS) == 1
    assert c.found(c.FINDS[name], 3, 0.03, RUNS) >= 0.7


@pytest.mark.parametrize("name", list(c.FINDS))
def test_the_screen_misses_none_of_them(name: str) -> None:
    assert c.screened(c.FINDS[name], 0.03, RUNS) == 1


@pytest.mark.parametrize("name", [name for name in c.FINDS if "setup" not in name])
def test_the_first_seed_of_the_confirmation_misses_none_of_them(name: str) -> None:
    assert c.kept(c.FINDS[name], 0.01, RUNS) == 1
    assert c.kept(c.FINDS[name], 0.03, RUNS) >= 0.95


def test_the_screen_asks_for_few_linear_costs() -> None:
    assert c.screened(c.LINEAR["linear"], 0.01, RUNS) <= 0.02 + room(0.02, RUNS)


@pytest.mark.parametrize("name", list(c.FINDS))
@pytest.mark.parametrize("times", [4, 256])
def test_the_true_cost_is_between_the_ends(name: str, times: int) -> None:
    assert c.predicted(c.FINDS[name], 0.01, times, RUNS).inside >= 0.93 - room(0.93, RUNS)
