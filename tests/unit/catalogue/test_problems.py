"""The catalogue of problems: each has a law that was measured."""

from __future__ import annotations

import pytest

from kteardown.catalogue.laws import measured_costs, measured_laws
from kteardown.catalogue.problems import LiveProblem, find_problem, load_problems
from kteardown.errors import InputError


@pytest.mark.parametrize("problem", load_problems(), ids=lambda problem: problem.name)
def test_the_cost_of_every_problem_was_measured(problem: LiveProblem) -> None:
    if problem.law:
        assert problem.law in {f"{law.workload}.{law.metric}" for law in measured_laws()}
        return
    measured = {(cost.kind, cost.way, cost.cost) for cost in measured_costs()}
    assert (problem.kind, problem.way, problem.cost) in measured


def test_a_part_is_of_a_problem_that_is_no_part_itself() -> None:
    wholes = {problem.name for problem in load_problems() if not problem.part_of}
    assert {problem.part_of for problem in load_problems() if problem.part_of} <= wholes


def test_an_unknown_problem_is_an_error() -> None:
    assert find_problem("flocks").kind == "flocks"
    with pytest.raises(InputError):
        find_problem("flock")
