"""Sentences of what was found."""

from __future__ import annotations

import pytest

from kteardown_observe import words
from kteardown_observe.counts import ObservedMachine
from kteardown_observe.judge import judge
from unit.observe.documents import counted, counts


@pytest.mark.parametrize(
    ("ends", "unit", "text"),
    [
        ((68, 68, 68), "instructions", "68 instructions"),
        ((2.9e5, 2.9e5, 2.9e5), "instructions", "290 thousand instructions"),
        ((1e9, 2e9, 3e9), "instructions", "1 to 3 billion instructions"),
        ((1.2e6, 1.27e6, 1.3e6), "kb", "1.21 GB"),
        ((0, 0, 0), "kb", "0 kB"),
    ],
)
def test_an_amount_has_its_unit(ends: tuple[float, float, float], unit: str, text: str) -> None:
    assert words.amount(*ends, unit) == text


def test_a_bound_is_called_a_bound() -> None:
    found = judge(counts(flocks=counted(5000, ("fd:00:12", 5000)))).present[0]
    assert "at most" in words.cost_text(found)
    assert words.bounds_text(found)


def test_another_release_is_called_nearest() -> None:
    found = judge(counts(release="6.18.2", flocks=counted(5000, ("fd:00:12", 5000)))).present[0]
    assert "6.12 and 7.2, the nearest" in words.basis_text(found, ObservedMachine(release="6.18.2"))
    assert "nearest" not in words.basis_text(found, ObservedMachine(release="6.12.1"))
    assert "nearest" in words.basis_text(found, ObservedMachine(release="6.1.1"))
    assert "is unknown" in words.basis_text(found, ObservedMachine())


def test_another_architecture_is_said() -> None:
    found = judge(counts(flocks=counted(5000, ("fd:00:12", 5000)))).present[0]
    assert "x86_64" in words.basis_text(found, ObservedMachine(release="6.12.1", arch="aarch64"))


def test_a_release_that_sleeps_for_each_object_says_so() -> None:
    found = judge(counts(dummies=counted(5000))).present[0]
    assert "rcu_barrier()" in words.sleep_text(found)


def test_a_size_has_its_unit() -> None:
    swapped = counted(4 << 20, ("java[9]", 4 << 20))
    (found,) = judge(counts(swapped_kb=swapped, zram_kb=counted(1 << 20))).present
    assert "4 GB (java[9])" in words.title_text(found)
