"""Which limits of the kernel a machine is close to."""

from __future__ import annotations

import json
from typing import Any

from kteardown_observe.counts import MachineCounts, parse_counts
from kteardown_observe.limits import (
    JudgedLimits,
    find_limit,
    judge_limits,
    limit_document,
    load_limits,
)
from unit.observe.documents import counted, document


def machine(*limits: dict[str, Any], **changes: Any) -> MachineCounts:
    """Return the counts of a machine with limits."""
    return parse_counts(json.dumps(document(limits=limits, **changes)).encode(), "counts.json")


def judged(*limits: dict[str, Any], **changes: Any) -> JudgedLimits:
    """Return which of the limits a machine is close to."""
    return judge_limits(machine(*limits, **changes))


def use(name: str, number: int, bound: int, **more: Any) -> dict[str, Any]:
    """Return how much a machine uses of a limit."""
    return {"name": name, "number": number, "bound": bound, **more}


def test_four_fifths_are_close_and_the_fullest_comes_first() -> None:
    found = judged(use("pid_max", 799, 1000), use("maxkeys", 160, 200), use("file_max", 9, 10))
    assert [used.limit.name for used in found.close] == ["file_max", "maxkeys"]
    assert [used.limit.name for used in found.used] == ["file_max", "maxkeys", "pid_max"]
    assert not found.unknown, "other limits do not exist there"


def test_the_zombies_among_the_tasks_are_told() -> None:
    (found,) = judged(use("pid_max", 900, 1000), counts={"zombies": counted(800)}).close
    assert limit_document(found)["parts"] == {"zombies": 800}


def test_owners_that_were_not_seen_make_it_unknown_unless_it_is_close() -> None:
    missing = [{"counts": ["pids_max", "maxkeys"], "reason": "time"}]
    far = use("pids_max", 10, 100, complete=False, seen=10, of=100)
    near = use("maxkeys", 99, 100, complete=False)
    found = judged(far, near, missing=missing)
    assert [(limit.name, reason) for limit, reason in found.unknown] == [("pids_max", "time")]
    assert [used.limit.name for used in found.close] == ["maxkeys"]
    assert judged({**far, "seen": 95}).used[0].share == 0.1


def test_an_older_document_has_none() -> None:
    older = document()
    assert "limits" not in older
    found = judge_limits(parse_counts(json.dumps(older).encode(), "older.json"))
    assert len(found.unknown) == len(load_limits()) and not found.used


def test_a_name_of_a_limit_is_none_of_a_problem() -> None:
    assert find_limit("pid_max") and not find_limit("zombies_suspend")
