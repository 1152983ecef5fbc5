"""The syntax of parameter values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.inputs.assignments import parse_assignments, parse_values


@given(st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 1000))
def test_a_range_includes_both_ends(first: int, count: int, step: int) -> None:
    values = parse_values(f"{first}:{first + count * step}:{step}", "here")
    assert values == tuple(range(first, first + count * step + 1, step))


@given(st.lists(st.integers(0, 10**9), min_size=1, unique=True))
def test_a_list_keeps_its_order(values: list[int]) -> None:
    assert parse_values(",".join(map(str, values)), "here") == tuple(values)


def test_words_and_ranges_can_be_mixed_and_duplicates_are_removed() -> None:
    assert parse_values("fork, shared,0:2:1,1", "here") == ("fork", "shared", 0, 1, 2)


def test_a_value_may_be_a_path() -> None:
    assert parse_assignments(["ROOT=/sys/fs/cgroup,/tmp"]) == {"ROOT": ("/sys/fs/cgroup", "/tmp")}


@given(st.text())
def test_any_text_is_values_or_an_input_error(text: str) -> None:
    try:
        assert parse_values(text, "here")
    except InputError as error:
        assert error.message.startswith("here")


@pytest.mark.parametrize("word", ["zombies", "=3", ""])
def test_an_incomplete_assignment_is_an_error(word: str) -> None:
    with pytest.raises(InputError, match="expected PARAM=VALUES"):
        parse_assignments([word])
