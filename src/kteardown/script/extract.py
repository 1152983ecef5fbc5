"""Get values of metrics from what a script left behind: its output, the kernel's log, and counters.

The forms of ``Metric.read``; in each, ``UNIT`` may be left out:

``/REGEX/ UNIT`` A regular expression, searched in every line of the output and of the log. Its
    first group is a number; a second group its unit.
``/FROM/ then /REGEX/ UNIT``
    The same, but only in the first line that matches after a match of FROM.
``/FROM/../TO/`` The time from a line of the log that FROM matches to the next one that TO matches.
    If FROM matches again before that, the time begins anew.
``mark NAME``
    The time between the lines ``kt-begin NAME`` and ``kt-end NAME``, as above.
``printed NAME UNIT``
    Lines ``NAME VALUE`` or ``NAME VALUE UNIT`` of the output.
``delta FILE FIELD``
    By how much a counter of the kernel increased.

``last`` before a form: of several values only the last one counts. Values are converted to the unit
of the metric; one with a unit of something else is left out. The output is a stranger's, so lines,
their number, and the time for searching them are limited. ``LeftBehind`` makes samples of the
values while the guest runs.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Literal

from kteardown import spawn
from kteardown.errors import InputError
from kteardown.model.script_records import Delta, OutputLine
from kteardown.model.workload import Metric, Unit
from kteardown.script import match
from kteardown.script.units import amount_of, convert, unit_of_word

Kind = Literal["expression", "interval", "printed", "delta"]

LINE_CHARACTERS = 3000
"""What is after these characters of a line is not searched."""
LINES = 100_000
"""Lines after these are not searched."""
SEARCH_S = 10.0
"""Seconds that the expressions of a metric may need for what one boot left behind."""
_STEPS_HERE = 10**8
"""Steps of a search that take about a second."""
_EXPRESSION_CHARACTERS = 500
_FORMS = (
    "write /REGEX/, /FROM/ then /REGEX/, /FROM/../TO/, `mark NAME`, `printed NAME` or `delta FILE "
    "FIELD`, such as '/Time: ([0-9.]+)/ s'."
)
_FALLEN = re.compile(r"(/.+/)(?:\s+(\S+))?", re.DOTALL)
_NAME_UNITS = ("per_s", "ms", "s", "us", "ns", "kb", "share", "count")
"""What the name of a metric may end with to give the unit in which it is printed; the first
counts."""
_LOG_STEP_NS = Decimal(1000)
_PAGE_KB = 4


@dataclass(frozen=True)
class Reading:
    """The parsed form of ``Metric.read``.

    ``text`` is the expression, the FROM of an interval, the name of a printed line, or a file;
    ``until`` the TO of an interval, or a field of the file. ``section`` is the FROM of an
    expression.
    """

    kind: Kind
    text: str
    until: str = ""
    section: str = ""
    unit: str = ""
    """The unit in which the value is printed, if its line does not have it."""
    last: bool = False


@dataclass(frozen=True)
class Value:
    """One value of a metric, in its unit.

    ``resolution`` is the step in which it can change: one unit of the last printed digit, or of the
    clock that stamped the lines. ``at_ns`` is the time of ``line``, in which it is; 0 of a counter.
    """

    value: float | int
    resolution: float
    at_ns: int
    line: str


def _wrong(spec: str, why: str, hint: str = _FORMS) -> InputError:
    return InputError(f"metric {spec!r}: {why}", hint=hint)


def parse_reading(spec: str) -> Reading:
    """Return the parsed form. Raises InputError, which says what is wrong with it."""
    form = spec.strip()
    first, _, remainder = form.partition(" ")
    if first == "last" and remainder.strip():
        return replace(parse_reading(remainder), last=True)
    if form.startswith("/"):
        return _expression(spec, form)
    words = form.split()
    match words:
        case ["mark", name]:
            mark = re.escape(name)
            return Reading("interval", f"^kt-begin {mark}$", f"^kt-end {mark}$")
        case ["printed", name]:
            return Reading("printed", name)
        case ["printed", name, unit]:
            return Reading("printed", name, unit=_checked_unit(spec, unit))
        case ["delta", file, field]:
            return Reading("delta", file, field)
        case ["mark" | "printed" | "delta" as kind, *_]:
            arguments = {
                "mark": "a name",
                "printed": "a name and a unit",
                "delta": "a file and a field",
            }[kind]
            raise _wrong(spec, f"`{kind}` takes {arguments}")
    raise _wrong(spec, "is not a form of a metric")


def _expression(spec: str, form: str) -> Reading:
    fallen = _FALLEN.fullmatch(form)
    if fallen is None:
        raise _wrong(spec, "an expression needs a slash at its start and at its end")
    body = fallen[1][1:-1]
    unit = fallen[2] or ""
    parts = body.split("/../")
    if len(parts) > 2:
        raise _wrong(spec, "the interval has more than one `..` between expressions")
    if len(parts) == 2:
        if unit:
            raise _wrong(
                spec,
                "the time between two lines is in ns, and has no unit",
                f"leave out {unit}.",
            )
        for part in parts:
            _compiled(spec, part)
        return Reading("interval", *parts)
    section, then, text = body.rpartition("/ then /")
    if then:
        _compiled(spec, section)
    if not _compiled(spec, text).groups:
        raise _wrong(
            spec,
            "the expression has no group for the value",
            "put parentheses around the number: /Time: ([0-9.]+)/.",
        )
    return Reading("expression", text, section=section, unit=_checked_unit(spec, unit))


def _compiled(spec: str, text: str) -> re.Pattern[str]:
    if not text:
        raise _wrong(spec, "an expression is empty")
    if len(text) > _EXPRESSION_CHARACTERS:
        raise _wrong(spec, f"an expression has more than {_EXPRESSION_CHARACTERS} characters")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise _wrong(
            spec,
            f"{text!r} is not a regular expression: {error}",
            "use the syntax of Python's module re.",
        ) from error


def _checked_unit(spec: str, unit: str) -> str:
    if unit and unit_of_word(unit) is None:
        raise _wrong(
            spec,
            f"{unit!r} is not a known unit",
            "use s, ms, us, ns, min, B, kB, MB, GB, %, X/s or count.",
        )
    return unit


def values(
    reading: Reading, unit: Unit, output: Sequence[OutputLine], deltas: Sequence[Delta]
) -> list[Value]:
    """Return the values in what one repetition left behind, in the order of the lines.

    Raises InputError if an expression needs more than ``SEARCH_S`` for the lines.
    """
    read = {"expression": _matched, "interval": _intervals, "printed": _printed}.get(reading.kind)
    results = read(reading, unit, output[:LINES]) if read else _of_delta(reading, unit, deltas)
    return results[-1:] if reading.last else results


def _search(expressions: Sequence[str], lines: Sequence[OutputLine]) -> list[list[match.LineMatch]]:
    """Search in this process where that cannot take long, else in a process that is ended after
    ``SEARCH_S``.

    An expression with at most one repetition or alternative needs at most the square of a line's
    length.
    """
    texts = [line.text[:LINE_CHARACTERS] for line in lines]
    if not texts:
        return [[] for _ in expressions]
    signs = max(sum(text.replace("(?", "").count(sign) for sign in "*+?{|") for text in expressions)
    if signs <= 1 and sum(len(text) ** 2 for text in texts) <= _STEPS_HERE:
        return match.search(expressions, texts)
    program = spawn.python("-I", "-S", str(Path(match.__file__)))
    request = json.dumps([list(expressions), texts])
    try:
        process = spawn.run(
            program, input=request, capture_output=True, text=True, check=True, timeout=SEARCH_S
        )
    except subprocess.TimeoutExpired as error:
        patterns = " and ".join(f"/{text}/" for text in expressions)
        raise InputError(
            f"searching {patterns} in the {len(texts)} lines of a script takes more than "
            f"{SEARCH_S:g} s",
            hint=(
                "use fewer `*` and `+`, for example [0-9.]+ instead of .*, and begin with a fixed "
                "word."
            ),
        ) from error
    return [
        [(index, value, unit, tail) for index, value, unit, tail in matches]
        for matches in json.loads(process.stdout)
    ]


def _value(
    number: Decimal, step: Decimal, word: str, unit: Unit, line: str, at_ns: int = 0
) -> list[Value]:
    """Return the value in the unit of the metric; empty if ``word`` is a unit of something else."""
    value = convert(number, word, unit)
    resolution = convert(step, word, unit)
    if value is None or resolution is None:
        return []
    return [Value(value, float(resolution), at_ns, line)]


def _read(number: str, word: str, reading: Reading, unit: Unit, line: OutputLine) -> list[Value]:
    """Return the value of a printed number and the word that follows it, which may be its unit."""
    if (amount := amount_of(number)) is None:
        return []
    return _value(
        *amount, word if unit_of_word(word) else reading.unit, unit, line.text, line.at_ns
    )


def _matched(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    patterns = [reading.text] + ([reading.section] if reading.section else [])
    matches, *sections = _search(patterns, lines)
    if sections:
        begins = [*(index for index, *_ in sections[0]), len(lines)]
        inside = (
            [hit for hit in matches if begin < hit[0] < end] for begin, end in pairwise(begins)
        )
        matches = [hit for in_section in inside for hit in in_section[:1]]
    return [
        value
        for index, number, word, _ in matches
        for value in _read(number, word, reading, unit, lines[index])
    ]


def _intervals(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    """Return the time of each pair of lines of the log. A line may end one and begin the next."""
    log = [line for line in lines if line.source == "log"]
    starts, ends = (
        {index for index, *_ in matches} for matches in _search([reading.text, reading.until], log)
    )
    intervals: list[Value] = []
    begin_ns: int | None = None
    for index, line in enumerate(log):
        if begin_ns is not None and index in ends:
            took_ns = line.at_ns - begin_ns
            if took_ns >= 0:
                intervals += _value(
                    Decimal(took_ns), _LOG_STEP_NS, "ns", unit, line.text, line.at_ns
                )
            begin_ns = None
        if index in starts:
            begin_ns = line.at_ns
    return intervals


def _printed(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    printed = []
    for line in lines:
        words = line.text[:LINE_CHARACTERS].split()
        if line.source == "script" and len(words) in (2, 3) and words[0] == reading.text:
            printed += _read(words[1], words[-1], reading, unit, line)
    return printed


def delta_unit(file: str, field: str) -> tuple[str, int]:
    """Return the unit of a counter, and in which steps of it the kernel changes it."""
    if file == "meminfo":
        return ("count", 1) if field.startswith("HugePages_") else ("kB", _PAGE_KB)
    if file == "memory.stat":
        # Bytes; the others count events or pages.
        is_count = field.startswith(
            ("pg", "workingset_", "thp_", "numa_", "pswp", "swpin", "swpout", "zsw")
        )
        return ("count", 1) if is_count else ("B", 1)
    if file == "cpu.stat" and field.endswith("_usec"):
        return ("us", 1)
    return ("count", 1)


def _of_delta(reading: Reading, unit: Unit, deltas: Sequence[Delta]) -> list[Value]:
    """Return the change; 0 if only other fields of the file changed, since others are not
    recorded."""
    of_file = [delta for delta in deltas if delta.file == reading.text]
    word, step = delta_unit(reading.text, reading.until)
    if not of_file:
        return []
    named = (delta for delta in of_file if delta.name == reading.until)
    changes = [
        (delta.after - delta.before, f"{delta.name} {delta.before} -> {delta.after}")
        for delta in named
    ]
    return [
        value
        for change, text in changes or [(0, f"{reading.until} did not change")]
        for value in _value(Decimal(change), Decimal(step), word, unit, f"{reading.text}: {text}")
    ]


def metric_of(name: str, spec: str, examples: Iterable[OutputLine] = ()) -> tuple[str, Metric]:
    """Return the key and the model of a metric that a user has named.

    The unit is that of ``spec``, else the one that the name ends with (``wait_ms``), else the one
    after the number in ``examples``, which are lines that a script printed, else the one after the
    group in the expression. Times become ns, sizes kb, a rate ``per_s`` and a percentage a share;
    without a unit it is a count. The key ends with the unit of the metric. A higher rate is better;
    all else is better if lower. Raises InputError.
    """
    reading = parse_reading(spec)
    spec = spec.strip()
    tail = next((word for word in _NAME_UNITS if name.endswith("_" + word)), "")
    if reading.kind == "interval":
        word = "ns"
    elif reading.kind == "delta":
        word = delta_unit(reading.text, reading.until)[0]
    else:
        word = reading.unit or tail or _unit_in(reading, list(examples)) or "count"
        spec = spec if reading.unit else f"{spec} {word}"
    unit_and_factor = unit_of_word(word)
    assert unit_and_factor is not None
    unit = unit_and_factor[0]
    if tail and (unit_of_word(tail) or unit_and_factor)[0] != unit:
        why = f"the name ends in _{tail}, but the value is in {word}"
        raise _wrong(f"{name}={spec}", why, "rename the metric.")
    name = name.removesuffix(f"_{tail}")
    key = f"{name.lower()}_{unit}"
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", key):
        raise _wrong(
            f"{name}={spec}",
            f"{name!r} is not a name of a metric",
            "write --metric NAME=SPEC with a name of letters, digits, - and _ that begins with a "
            "letter.",
        )
    return key, Metric(
        name=re.sub(r"[_-]+", " ", name.lower()),
        help=f"{spec}, of the script",
        better="higher" if unit == "per_s" else "lower",
        unit=unit,
        headline=True,
        read=spec,
    )


def _unit_in(reading: Reading, examples: Sequence[OutputLine]) -> str:
    """Return the unit that the lines, or else the expression, have with the number; empty if
    none."""
    words: list[str] = []
    if reading.kind == "printed":
        lines = (
            line.text[:LINE_CHARACTERS].split()
            for line in examples[:LINES]
            if line.source == "script"
        )
        words = [parts[2] for parts in lines if len(parts) == 3 and parts[0] == reading.text]
    else:
        (matches,) = _search([reading.text], examples[:LINES])
        for _, _, unit, tail in matches:
            words += [unit, *tail.split()[:1]]
        after = re.search(r"\)(?:\s|\\s[*+]?)*\[?([A-Za-z%\u00b5][\w/%]*)", reading.text)
        words += [after[1]] if after else []
    return next((word.strip("[]().,;") for word in words if unit_of_word(word)), "")
