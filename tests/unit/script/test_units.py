"""Numbers and units as programs print them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.workload import Unit
from kteardown.script.units import amount_of, convert, readable, readable_together, unit_of_word


@pytest.mark.parametrize(
    ("text", "number", "step"),
    [
        ("3", "3", "1"),
        (" -0.50 ", "-0.50", "0.01"),
        ("1,234,567.8", "1234567.8", "0.1"),
        ("2.50e3", "2500", "10"),
        ("1e-6", "0.000001", "0.000001"),
        (".5", "0.5", "0.1"),
        ("7.", "7", "1"),
    ],
)
def test_a_number_has_the_step_of_its_last_digit(text: str, number: str, step: str) -> None:
    assert amount_of(text) == (Decimal(number), Decimal(step))


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1,23", "0x10", "nan", "inf", "1 2", "1e999", "\u0663", "9" * 41]
)
def test_other_text_is_not_a_number(text: str) -> None:
    assert amount_of(text) is None


@pytest.mark.parametrize(
    ("word", "unit", "factor"),
    [
        ("secs", "ns", 10**9),
        ("[sec]", "ns", 10**9),
        ("min", "ns", 60 * 10**9),
        ("\u00b5s", "ns", 1000),
        ("usecs/op", "ns", 1000),
        ("kB", "kb", 1),
        ("GiB", "kb", 2**20),
        ("%", "share", 0.01),
        ("ops/sec", "per_s", 1),
        ("bytes/ms", "per_s", 1000),
        ("operations/s,", "per_s", 1),
        ("/s", "per_s", 1),
    ],
)
def test_a_word_is_a_unit(word: str, unit: Unit, factor: float) -> None:
    assert unit_of_word(word) == (unit, Decimal(str(factor)))


@pytest.mark.parametrize(
    "word", ["", "Min", "Min:", "Mb", "beats", "a/b", "a/b/s", "/", "\x1b[31m/s", "x y/s"]
)
def test_another_word_is_not_a_unit(word: str) -> None:
    assert unit_of_word(word) is None


@given(st.text(max_size=20))
def test_any_word_is_read(word: str) -> None:
    found = unit_of_word(word)
    assert found is None or found[1] > 0


@pytest.mark.parametrize(
    ("word", "unit", "result"),
    [
        ("ms", "ns", 1_500_000),
        ("ms", "us", 1500),
        ("", "us", 1.5),
        ("s", "kb", None),
        ("B", "kb", 1.5 / 1024),
    ],
)
def test_a_number_is_converted_to_the_unit_of_the_metric(
    word: str, unit: Unit, result: float | None
) -> None:
    assert convert(Decimal("1.5"), word, unit) == result


def test_what_a_record_cannot_have_is_not_a_value() -> None:
    assert convert(Decimal(2**63 - 1), "ns", "ns") == 2**63 - 1
    assert convert(Decimal(2**63), "ns", "ns") is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (36_000_000, "ns", "36 ms"),
        (23_036_616_497, "ns", "23.04 s"),
        (26_536.2, "ns", "26.54 us"),
        (68, "ns", "68 ns"),
        (0, "ns", "0 ns"),
        (-1500, "ns", "-1.5 us"),
        (115_843, "us", "115.8 ms"),
        (3736, "kb", "3.648 MB"),
        (0.5, "kb", "512 B"),
        (4033, "count", "4,033"),
        (0.25, "share", "25%"),
        (21_053_761, "per_s", "21,053,761/s"),
    ],
)
def test_a_value_is_in_a_unit_of_which_it_has_at_least_one(
    value: float, unit: Unit, text: str
) -> None:
    assert readable(value, unit) == text


def test_values_that_are_compared_are_in_one_unit() -> None:
    assert readable_together([972, 3736], "kb") == ["972 kB", "3,736 kB"]
    assert readable_together([0, 4_000_000], "ns") == ["0 ms", "4 ms"]
