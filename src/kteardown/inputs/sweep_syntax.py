"""The words in which a sweep is given: ``a,b,c`` and ``a:b:step``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kteardown.errors import InputError
from kteardown.model.record import ParamValue

_RANGE = re.compile(r"(\d+):(\d+):(\d+)")
_MOST_VALUES = 10_000


def parse_values(text: str, where: str) -> tuple[ParamValue, ...]:
    """``"1,2,4"``, ``"0:30000:3000"`` (both ends included) or words, as the values of a parameter.

    Raises InputError, which names ``where``.
    """
    values: list[ParamValue] = []
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match:
            start, stop, step = (int(group) for group in match.groups())
            if step == 0 or stop < start or (stop - start) // step >= _MOST_VALUES:
                raise InputError(
                    f"{where}: {part!r} is no usable range",
                    hint="first:last:step, with last at or above first and a step above 0.",
                )
            values.extend(range(start, stop + 1, step))
        elif re.fullmatch(r"-?\d+", part):
            values.append(int(part))
        elif re.fullmatch(r"[A-Za-z0-9_.-]+", part):
            values.append(part)
        else:
            raise InputError(f"{where}: {part!r} is no value", hint="write a,b,c or first:last:step.")
    return tuple(dict.fromkeys(values))


def parse_assignments(assignments: Iterable[str], option: str = "--set") -> dict[str, tuple[ParamValue, ...]]:
    """``["zombies=0:3000:1000", ...]`` of ``option`` of the command line. Raises InputError."""
    result: dict[str, tuple[ParamValue, ...]] = {}
    for assignment in assignments:
        name, equals, values = assignment.partition("=")
        if not equals or not name:
            raise InputError(
                f"{option} {assignment}: expected PARAM=VALUES", hint=f"as in {option} zombies=0:9000:3000"
            )
        result[name] = parse_values(values, f"{option} {name}")
    return result
