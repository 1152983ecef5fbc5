"""The plans of releases by several processes at once."""

from __future__ import annotations

import pytest

from kteardown_hunt.owner_plan import owners_plan, owners_sizes
from kteardown_hunt.plan import Case, Options, with_what_is_missing

OPTIONS = Options(budget_minstr=0)


@pytest.mark.parametrize(
    ("largest", "each", "sizes"),
    [
        (18432, 1_000.0, (500, 1000)),
        # Few fit into memory, or few take a million instructions.
        (100, 1_000.0, (12, 24)),
        (18432, 900_000.0, (4, 8)),
        (18432, 5_000_000.0, (4, 8)),
        # As cheap as nothing.
        (18432, -5.0, (2304, 4608)),
        (18432, 7_000_000.0, None),
        (31, 1_000.0, None),
    ],
)
def test_each_process_executes_about_a_million_instructions(
    largest: int, each: float, sizes: tuple[int, int] | None
) -> None:
    assert owners_sizes(largest, each, 4) == sizes


def test_several_processes_release_with_each_cost_of_a_moved_line() -> None:
    cases = {Case("a", "exit"): (50, 100)}
    planned = owners_plan(cases, ["kernel"], (2, 4), range(3), (100, 200), OPTIONS)
    assert planned.cpus == 4
    assert [(boot.index, boot.machine["transfer_ticks"]) for boot in planned.boots] == [
        *((n, 100) for n in range(3)),
        *((n, 200) for n in range(3, 6)),
    ]
    for boot in planned.boots:
        assert [(trial.params["objects"], trial.params["owners"]) for trial in boot.trials] == [
            *((50, 1), (50, 2), (50, 4)),
            *((100, 1), (100, 2), (100, 4)),
        ]


def test_a_stage_that_is_planned_again_gets_no_further_boots() -> None:
    cases = {Case("a", "exit"): (50, 100)}
    planned = owners_plan(cases, ["kernel"], (2,), range(3), (100, 200), OPTIONS)
    assert with_what_is_missing(planned, planned) == planned
    one_cost = owners_plan(cases, ["kernel"], (2,), range(3), (100,), OPTIONS)
    extended = with_what_is_missing(one_cost, planned)
    assert [boot.machine for boot in extended.boots[3:]] == [{"transfer_ticks": 200}] * 3
