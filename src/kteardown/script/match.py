"""Search expressions in lines; run as a program, in a process that can be ended.

An expression can need exponential time for a line, and Python cannot interrupt a search. So ``extract`` runs
this file as a program with a limit of time. It imports nothing of kteardown, so that it starts in
milliseconds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence

Found = tuple[int, str, str, str]
"""The index of a line, the text of the value and of the unit, and what follows the value in the line."""
_REST = 40
"""Characters of what follows the value."""


def groups(expression: re.Pattern[str]) -> tuple[int, int]:
    """Return the numbers of the groups with the value and the unit; 0 if there is no such group."""
    names = expression.groupindex
    unit = names.get("unit", 0)
    free = [number for number in range(1, expression.groups + 1) if number != unit]
    value = names.get("value", free[0] if free else 0)
    if not unit and "value" not in names and expression.groups >= 2:
        unit = 2
    return value, unit


def search(expressions: Sequence[str], lines: Sequence[str]) -> list[list[Found]]:
    """Return for each expression the first match of each line that has one."""
    found: list[list[Found]] = []
    for text in expressions:
        expression = re.compile(text)
        value, unit = groups(expression)
        searched = ((number, expression.search(line)) for number, line in enumerate(lines))
        found.append(
            [
                (
                    number,
                    (match[value] or "") if value else "",
                    (match[unit] or "") if unit else "",
                    match.string[match.end(value) :][:_REST],
                )
                for number, match in searched
                if match
            ]
        )
    return found


if __name__ == "__main__":
    json.dump(search(*json.load(sys.stdin)), sys.stdout)
