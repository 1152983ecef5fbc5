"""Units of figures that a script prints: what a word means, how it is converted, and which unit
people read."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from kteardown.model.record_fields import LEAST
from kteardown.model.workload import Unit

_NUMBER = re.compile(
    r"[-+]?(?=\.?[0-9])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,2})?"
)
_NUMBER_CHARACTERS = 40
_LARGEST = Decimal(2**63 - 1)
_S = Decimal(10) ** 9
_UNITS: tuple[tuple[Unit, Decimal, str], ...] = (
    ("ns", 60 * _S, "min mins minute minutes"),
    ("ns", _S, "s sec secs second seconds"),
    ("ns", _S / 10**3, "ms msec msecs millisecond milliseconds"),
    # The two signs for micro that Unicode has.
    ("ns", _S / 10**6, "us \u00b5s \u03bcs usec usecs microsecond microseconds"),
    ("ns", Decimal(1), "ns nsec nsecs nanosecond nanoseconds"),
    ("kb", Decimal(1) / 1024, "B byte bytes"),
    ("kb", Decimal(1), "kB KB kb KiB"),
    ("kb", Decimal(1024), "MB MiB"),
    ("kb", Decimal(1024**2), "GB GiB"),
    ("share", Decimal(1) / 100, "% percent"),
    *((unit, Decimal(1), unit) for unit in ("share", "count", "per_s", "per_cycle")),
)
_WORDS = {word: (unit, factor) for unit, factor, words in _UNITS for word in words.split()}
"""The unit of a metric, and the factor, for each word. As in the kernel's files, a kB has 1024
bytes."""
_COUNTED = re.compile(r"[\w%-]{0,30}")
"""What a rate counts."""
_SECOND = ("s", "sec", "second")


def amount_of(text: str) -> tuple[Decimal, Decimal] | None:
    """Return the number that ``text`` is, such as ``1,234.50`` or ``2e6``, and one unit of its last
    digit.

    None if it is not a number.
    """
    text = text.strip()
    if len(text) > _NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text.replace(",", ""))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # It is text only of infinity and NaN.
    return number, Decimal(1).scaleb(exponent)


def unit_of_word(word: str) -> tuple[Unit, Decimal] | None:
    """Return the unit of a metric that has what ``word`` is a unit of, and how many of it one
    ``word`` is.

    ``ops/sec`` and ``bytes/ms`` are rates, and ``usecs/op`` a time. None if the word is not a known
    unit.
    """
    word = word.strip("[]().,;")
    if word in _WORDS:
        return _WORDS[word]
    counted, slash, per = word.partition("/")
    if not slash or not _COUNTED.fullmatch(counted):
        return None
    if per.lower() in _SECOND:
        return ("per_s", Decimal(1))
    if (time := _WORDS.get(per)) and time[0] == "ns":
        return ("per_s", _S / time[1])
    return _WORDS.get(counted) if _COUNTED.fullmatch(per) else None


def convert(number: Decimal, word: str, unit: Unit) -> float | int | None:
    """Return ``number`` of ``word`` in ``unit``; a word that is not a unit, or empty, counts as
    ``unit``.

    None if the word is a unit of something else, or the result is too large or too small for a
    record.
    """
    base: Unit = "ns" if unit == "us" else unit
    size = Decimal(1000 if unit == "us" else 1)
    of, factor = unit_of_word(word) or (base, size)
    if of != base:
        return None
    result = number * factor / size
    if abs(result) > _LARGEST or 0 < abs(result) < LEAST:
        return None
    return int(result) if result == result.to_integral_value() else float(result)


_READ: Mapping[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, " s"), (1e6, " ms"), (1e3, " us"), (1, " ns")),
    "kb": ((1024**2, " GB"), (1024, " MB"), (1, " kB"), (1 / 1024, " B")),
    "share": ((0.01, "%"),),
    "count": ((1, ""),),
    "per_s": ((1, "/s"),),
    "per_cycle": ((1, " per cycle"),),
}
"""The units in which people read the values of a metric, the largest first."""


def readable(value: float, unit: str) -> str:
    """Return ``value`` in the largest unit of which it is at least one: ``36.2 ms``, ``1.5 MB``,
    ``4,033``."""
    (text,) = readable_together([value], unit)
    return text


def readable_together(measured: Sequence[float], unit: str) -> list[str]:
    """Return values as ``readable`` does, all in the unit of the smallest that is not 0."""
    if unit == "us":
        return readable_together([1000 * value for value in measured], "ns")
    smallest = min((abs(value) for value in measured if value), default=0.0)
    # A result of another version may have a unit that this one does not know.
    steps = _READ.get(unit, ((1, f" {unit}"),))
    size, name = next((step for step in steps if smallest >= step[0]), steps[-1])
    return [f"{digits(value / size)}{name}" for value in measured]


def digits(value: float) -> str:
    """Return ``value`` with four significant digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.4g}"
