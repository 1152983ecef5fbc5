"""Two machines side by side."""

from __future__ import annotations

from kteardown_observe.compare import comparison_text, pairs
from kteardown_observe.judge import judge
from unit.observe.documents import counted, counts
from unit.observe.test_limits import machine, use

BEFORE = judge(counts(zombies=counted(10), flocks=counted(2000, ("fd:00:1", 2000))))
AFTER = judge(counts(zombies=counted(5000), mounts=counted(9, ("4026531841", 9))))


def test_a_problem_of_either_is_in_the_table() -> None:
    assert [pair.name for pair in pairs(BEFORE, AFTER)] == ["zombies_suspend", "flocks"]


def test_the_numbers_are_side_by_side() -> None:
    lines = {line.split()[0]: line for line in comparison_text(BEFORE, AFTER).splitlines() if line}
    assert lines["zombies_suspend"].split()[1:3] == ["10", "5,000"]
    assert "not counted" in lines["flocks"]


def test_without_problems_there_is_no_table() -> None:
    clean = judge(counts(zombies=counted(1)))
    assert "neither" in comparison_text(clean, clean)


def test_a_limit_that_one_is_close_to_is_compared() -> None:
    near = judge(machine(use("pid_max", 91, 100), use("maxkeys", 1, 100)))
    far = judge(machine(use("pid_max", 12, 100), use("maxkeys", 2, 100)))
    text = comparison_text(near, far)
    assert [line.split() for line in text.splitlines() if "pid_max" in line] == [
        ["pid_max", "91%", "12%"]
    ]
    assert "maxkeys" not in text
