"""Search expressions in lines; run as a program, in a process that can be ended.

An expression can need exponential time for a line, and Python cannot interrupt a search. So
``extract`` runs this file as a program with a limit of time. It imports nothing of kteardown, so
that it starts in milliseconds.
"""

import json
import re
import sys
from collections.abc import Sequence

LineMatch = tuple[int, str, str, str]
"""The index of a line, the text of the value and of the unit, and what follows the value in the
line."""
_REST = 40
"""Characters of what follows the value."""


def search(expressions: Sequence[str], lines: Sequence[str]) -> list[list[LineMatch]]:
    """Return for each expression the first match of each line that has one."""
    matches: list[list[LineMatch]] = []
    for text in expressions:
        expression = re.compile(text)
        value = min(expression.groups, 1)
        unit = 2 if expression.groups > 1 else 0
        searched = ((number, expression.search(line)) for number, line in enumerate(lines))
        matches.append(
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
    return matches


if __name__ == "__main__":
    json.dump(search(*json.load(sys.stdin)), sys.stdout)
