"""Numbers and units as programs print them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.workload import Unit
from kteardown.script.units import amount_of, convert, unit_of_word


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
