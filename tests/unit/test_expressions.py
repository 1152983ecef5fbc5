"""No regular expression takes more than linear time, whatever a stranger wrote."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from types import FrameType

import pytest

from unit.conftest import MISSING
from unit.expressions import METHODS, Expression, attacks, expressions

SHORT = {
    (
        "kernels/object_changes.py",
        rb"(__initcall__kmod_\w+?__)\d+_\d+_|(__UNIQUE_ID_\w*?)(?<!\d)\d++(?=\.|\Z)|(?<=\w)(?:\.\d++)++\Z",
    ): "a name of at most 512 bytes; longer ones are not searched",
    ("kernels/archive.py", r"^'(\S+)/dists/(\S+)/InRelease'"): "lines that apt of this host prints",
    ("run/resolve.py", r"(.+) on (\S+:.*)"): "a word of the command line",
    ("patches/posted.py", r"(?<![\d.])\d+\.\d+(?=[^/]*$)"): "a word of the command line",
    (
        "patches/posted.py",
        r"git:(?:(?P<path>.*)@)?(?P<range>[^@]+\.\..*)",
    ): "a word of the command line",
}
"""Expressions that take quadratic time, of a text that is short or that no stranger writes."""
ONLY_IN_A_RUN = {
    "cli/new.py: shape": "one of two expressions, for a word of the command line",
    (
        r"patches/mime.py: b'\\n--' + re.escape(boundary) + "
        r"b'(--)?[ \\t]*+\\r?(?=\\n|\\Z)'"
    ): "test_mime.py",
    "kteardown_cluster/slurm.py: pattern": "for a word of the command line",
    "script/extract.py: text": (
        "of the user; script/match.py searches for it, in a process that is ended"
    ),
    "script/match.py: text": "of the user, in a process that is ended",
    "vm/kernel_log.py: pattern": "kept in a table of the module, where it is found",
}
"""Expressions that only a run knows, and why they are safe, or where they are tested."""
FEW = 5_000
MANY = 100_000
NOTICED_S = 0.0007
MOST_S = 0.25
"""Of processor time. The first only chooses what is tried with more letters: with 20 times the
letters, a quadratic expression takes 400 times as long, and a linear one a tenth of the second
limit."""


class Stopped(Exception):
    """The time is over."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise Stopped in the block after so much processor time, which other programs do not use."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def too_slow(expression: Expression) -> str:
    """Return the beginning of a text for which an expression takes more than linear time, if there
    is one."""
    for few, many in zip(attacks(expression, FEW), attacks(expression, MANY), strict=True):
        began = process_time()
        try:
            with stopped_after(MOST_S):
                expression.run(few())
                if process_time() - began < NOTICED_S:
                    continue
            with stopped_after(MOST_S):
                expression.run(many())
        except Stopped:
            return few()[:60]
    return ""


def test_every_expression_takes_linear_time() -> None:
    found, unknown = expressions()
    assert len(found) > 200
    absent = tuple(f"kteardown_{package}/" for package in MISSING)
    assert set(unknown) == {place for place in ONLY_IN_A_RUN if not place.startswith(absent)}
    slow = {
        (one.place, one.pattern.pattern): text
        for one in found
        if (one.place, one.pattern.pattern) not in SHORT and (text := too_slow(one))
    }
    assert slow == {}


@pytest.mark.parametrize(
    "pattern",
    [
        rb"^(?:diff --git \S+ \S+$|--- (?P<before>[^\s\"]+).*\n\+\+\+ (?P<after>[^\s\"]+).*\n)",
        r"\[[^\]]*:\d+\]",
        r"(?:a|b|ab)*c",
        r"/\*.*?\*/",
    ],
)
def test_a_slow_expression_is_found(pattern: str | bytes) -> None:
    """Some of these were in the package."""
    flags = re.MULTILINE | re.DOTALL if "*?" in str(pattern) else re.MULTILINE
    assert too_slow(Expression("here", re.compile(pattern, flags), METHODS))
