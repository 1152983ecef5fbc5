"""Failed tests in output that is TAP."""

import re
from collections.abc import Sequence

from kteardown.model.script_records import OutputLine
from kteardown.script.extract import LINE_CHARACTERS, LINES

_RESULT = re.compile(r"(not )?ok\b[ \t]*([0-9]*)(.*)", re.DOTALL)
_ALLOWED = re.compile(r"#[ \t]*(?:skip|todo|xfail)", re.IGNORECASE)
_PLAN = re.compile(r"1\.\.([0-9]{1,6})[ \t]*(?:#.*)?", re.DOTALL)
_TAP = re.compile(r"K?TAP version [0-9]+")


def tap_failures(output: Sequence[OutputLine]) -> list[str]:
    """Return what failed of a program that prints TAP, one line each; empty if all passed or it is
    not TAP.

    It is TAP if it has a version or a plan, ``TAP version 13`` or ``1..3``. Results that are
    skipped, or expected to fail, pass. So do nested results, which are indented or in comments: the
    outer result counts. Results that a plan has and that were not printed are a failure, too.
    """
    texts = [
        line.text[:LINE_CHARACTERS].rstrip() for line in output[:LINES] if line.source == "script"
    ]
    plans = [int(plan[1]) for text in texts if (plan := _PLAN.fullmatch(text))]
    if not plans and not any(_TAP.match(text) for text in texts):
        return []
    results = [(text, match) for text in texts if (match := _RESULT.fullmatch(text))]
    failures = [text for text, match in results if match[1] and not _ALLOWED.search(match[3])]
    failures += [text for text in texts if text.startswith("Bail out!")]
    if len(results) < sum(plans):
        failures.append(f"{sum(plans)} results were planned, and {len(results)} printed")
    return failures
