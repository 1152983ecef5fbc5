"""Each problem has a cost on any machine, and each kind of the hunt its place in ``kinds.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from kteardown.catalogue.problems import LiveProblem, load_problems
from kteardown_observe.counts import ObservedMachine
from kteardown_observe.estimate import estimate

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("problem", load_problems(), ids=lambda problem: problem.name)
def test_every_problem_has_a_cost_on_every_release(problem: LiveProblem) -> None:
    for release in ("5.10.0", "6.12.1", "6.18.0", "7.3.4"):
        cost = estimate(problem, problem.least, ObservedMachine(release=release, possible_cpus=16))
        assert cost is not None
        assert 0 < cost.low <= cost.value <= cost.high


def test_every_kind_of_the_hunt_is_counted_or_has_a_reason() -> None:
    kinds = {file.stem for file in (ROOT / "agent/hunt/kinds").glob("*.c")}
    table = tomllib.loads(files("kteardown_observe").joinpath("kinds.toml").read_text())
    lists = (*table["counted"].values(), *table["uncounted"].values())
    listed = [kind for names in lists for kind in names]
    assert sorted(listed) == sorted(kinds)


def test_the_kind_of_a_problem_is_counted_by_its_count() -> None:
    table = tomllib.loads(files("kteardown_observe").joinpath("kinds.toml").read_text())
    for problem in load_problems():
        if problem.kind:
            assert problem.kind in table["counted"][problem.count], problem.name
