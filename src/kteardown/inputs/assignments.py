"""Values of parameters, as ``--set`` has them."""

import re
from collections.abc import Iterable

from kteardown.errors import InputError
from kteardown.model.record_fields import ParamValue

_RANGE = re.compile(r"(\d+):(\d+):(\d+)")
_MOST_VALUES = 10_000


def parse_values(text: str, where: str) -> tuple[ParamValue, ...]:
    """Parse values of a parameter: ``"1,2,4"``, ``"0:30000:3000"`` (both ends included) or words.

    Duplicates are removed. Raises InputError that names ``where``.
    """
    values: list[ParamValue] = []
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match:
            start, stop, step = (int(group) for group in match.groups())
            if step == 0 or stop < start or (stop - start) // step >= _MOST_VALUES:
                raise InputError(
                    f"{where}: {part!r} is not a valid range",
                    hint="write first:last:step with first <= last, a step above 0, and at most "
                    f"{_MOST_VALUES:,} values.",
                )
            values.extend(range(start, stop + 1, step))
        elif re.fullmatch(r"-?\d+", part):
            values.append(int(part))
        elif re.fullmatch(r"[A-Za-z0-9_./-]+", part):
            values.append(part)
        else:
            raise InputError(
                f"{where}: {part!r} is not a valid value", hint="write a,b,c or first:last:step."
            )
    return tuple(dict.fromkeys(values))


def parse_assignments(
    assignments: Iterable[str], option: str = "--set"
) -> dict[str, tuple[ParamValue, ...]]:
    """Parse the arguments of ``option``, such as ``["zombies=0:3000:1000"]``, into values by
    parameter.

    Raises InputError that names the option and the argument.
    """
    result: dict[str, tuple[ParamValue, ...]] = {}
    for assignment in assignments:
        name, equals, values = assignment.partition("=")
        if not equals or not name:
            raise InputError(
                f"{option} {assignment}: expected PARAM=VALUES",
                hint=f"write it as in {option} zombies=0:9000:3000.",
            )
        if name in result:
            raise InputError(
                f"{option} {assignment}: {name} is given twice",
                hint=f"write all values in one {option}.",
            )
        result[name] = parse_values(values, f"{option} {name}")
    return result
