"""Sums with the owners that have the most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_observe.collector import tally
from kteardown_observe.collector.files import Host, Unreadable, Visit
from kteardown_observe.collector.tally import LARGEST, CountTable, Tally


@given(st.dictionaries(st.integers(), st.integers(0, 1000)))
def test_both_ways_of_adding_give_the_same(numbers: dict[int, int]) -> None:
    whole, parts = Tally(), Tally()
    for owner, number in numbers.items():
        whole.add_owner(owner, number)
        for _ in range(number):
            parts.add(owner)
    assert whole.number == parts.number == sum(numbers.values())
    largest = [entry["number"] for entry in whole.largest(str)]
    assert largest == [entry["number"] for entry in parts.largest(str)]
    assert largest == sorted(filter(None, numbers.values()), reverse=True)[:LARGEST]


def test_many_owners_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "OWNERS_MOST", 3)
    many = Tally()
    for owner in range(10):
        many.add(owner)
    many.add(0)
    assert many.number == 11 and len(many.by) == 3


def visited(*reasons: str, read_ok: int = 0) -> Visit:
    visit = Visit(Host(), range(len(reasons) + read_ok), 9)
    for _ in visit:
        if visit.seen <= len(reasons):
            visit.fail(Unreadable(reasons[visit.seen - 1], "a file"))
        else:
            visit.read_ok += 1
    return visit


def put(visit: Visit) -> CountTable:
    counts = CountTable()
    counts.put_visited(visit, "where", {"things": Tally()}, str)
    return counts


def test_what_could_not_be_read_is_said_with_its_number() -> None:
    counts = put(visited("permission", "permission", read_ok=1))
    assert counts.counts["things"] == {"number": 0, "complete": False, "seen": 3, "of": 9}
    assert counts.missing == [
        {"counts": ["things"], "reason": "permission", "detail": "where: 2 of 3, such as a file"}
    ]


def test_nothing_readable_is_no_count() -> None:
    counts = put(visited("not there", "not there"))
    assert not counts.counts and counts.missing[0]["reason"] == "not there"


def test_processes_that_are_gone_are_not_missing() -> None:
    counts = put(visited("not there", read_ok=1))
    assert counts.counts["things"]["complete"] and not counts.missing


def test_too_little_time_is_said() -> None:
    visit = visited(read_ok=1)
    visit.whole = False
    counts = put(visit)
    assert not counts.counts["things"]["complete"]
    assert counts.missing[0]["reason"] == "time" and "1 of 9" in counts.missing[0]["detail"]


def test_a_detail_is_short_and_printable() -> None:
    counts = CountTable()
    counts.miss(["b", "a"], "error", "x\x1b" * 1000)
    assert counts.missing[0]["counts"] == ["a", "b"]
    assert len(counts.missing[0]["detail"]) <= 200 and counts.missing[0]["detail"].isprintable()
