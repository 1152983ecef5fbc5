"""Get values of metrics from what a script left behind: its output, the kernel's log, and counters.

The forms of ``Metric.read``; in each, ``UNIT`` may be left out:

``/REGEX/ UNIT``
    A regular expression, searched in every line of the output and of the log. Its first group is a number; a
    second group its unit.
``/FROM/ then /REGEX/ UNIT``
    The same, but only in the first line that matches after a match of FROM.
``/FROM/../TO/``
    The time from a line of the log that FROM matches to the next one that TO matches. If FROM matches again
    before that, the time begins anew.
``mark NAME``
    The time between the lines ``kt-begin NAME`` and ``kt-end NAME``, as above.
``printed NAME UNIT``
    Lines ``NAME VALUE`` or ``NAME VALUE UNIT`` of the output.
``delta FILE FIELD``
    By how much a counter of the kernel increased.

``last`` before a form: of several values only the last one counts. Values are converted to the unit of the
metric; one with a unit of something else is left out. The output is a stranger's, so lines, their number, and
the time for searching them are limited. ``LeftBehind`` makes samples of the values while the guest runs.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Literal

from kteardown import spawn
from kteardown.errors import InputError
from kteardown.model.plan import PlannedTrial
from kteardown.model.record import LEAST, Delta, OutputLine, Record, Sample, ScriptEnd, TrialEnd
from kteardown.model.workload import Metric, Unit, unit_of
from kteardown.paths import shipped_table
from kteardown.script import match

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
"""The unit of a metric, and the factor, for each word. As in the kernel's files, a kB has 1024 bytes."""
_COUNTED = re.compile(r"[\w%-]{0,30}")
"""What a rate counts."""
_SECOND = ("s", "sec", "second")


def amount_of(text: str) -> tuple[Decimal, Decimal] | None:
    """Return the number that ``text`` is, such as ``1,234.50`` or ``2e6``, and one unit of its last digit.

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
    """Return the unit of a metric that has what ``word`` is a unit of, and how many of it one ``word`` is.

    ``ops/sec`` and ``bytes/ms`` are rates, and ``usecs/op`` a time. None if the word is not a known unit.
    """
    word = word.strip("[]().,;")
    if word in _WORDS:
        return _WORDS[word]
    what, slash, each = word.partition("/")
    if not slash or not _COUNTED.fullmatch(what):
        return None
    if each.lower() in _SECOND:
        return ("per_s", Decimal(1))
    if (time := _WORDS.get(each)) and time[0] == "ns":
        return ("per_s", _S / time[1])
    return _WORDS.get(what) if _COUNTED.fullmatch(each) else None


def convert(number: Decimal, word: str, unit: Unit) -> float | int | None:
    """Return ``number`` of ``word`` in ``unit``; a word that is not a unit, or empty, counts as ``unit``.

    None if the word is a unit of something else, or the result is too large or too small for a record.
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
    "write /REGEX/, /FROM/ then /REGEX/, /FROM/../TO/, `mark NAME`, `printed NAME` or `delta FILE FIELD`, "
    "such as '/Time: ([0-9.]+)/ s'."
)
_FALLEN = re.compile(r"(/.+/)(?:\s+(\S+))?", re.DOTALL)
_NAME_UNITS = ("per_s", "ms", "s", "us", "ns", "kb", "share", "count")
"""What the name of a metric may end with to give the unit in which it is printed; the first counts."""
_LOG_STEP_NS = Decimal(1000)
_PAGE_KB = 4


@dataclass(frozen=True)
class Reading:
    """The parsed form of ``Metric.read``.

    ``text`` is the expression, the FROM of an interval, the name of a printed line, or a file; ``until`` the
    TO of an interval, or a field of the file. ``section`` is the FROM of an expression.
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

    ``resolution`` is the step in which it can change: one unit of the last printed digit, or of the clock
    that stamped the lines. ``at_ns`` is the time of ``line``, in which it is; 0 of a counter.
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
    first, _, rest = form.partition(" ")
    if first == "last" and rest.strip():
        return replace(parse_reading(rest), last=True)
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
            return Reading("printed", name, unit=_known(spec, unit))
        case ["delta", file, field]:
            return Reading("delta", file, field)
        case ["mark" | "printed" | "delta" as kind, *_]:
            wanted = {"mark": "a name", "printed": "a name and a unit", "delta": "a file and a field"}[kind]
            raise _wrong(spec, f"`{kind}` is followed by {wanted}")
    raise _wrong(spec, "is not a form of a metric")


def _expression(spec: str, form: str) -> Reading:
    fallen = _FALLEN.fullmatch(form)
    if fallen is None:
        raise _wrong(spec, "an expression is between two slashes")
    body, unit = fallen[1][1:-1], fallen[2] or ""
    parts = body.split("/../")
    if len(parts) > 2:
        raise _wrong(spec, "has more than one `..` between two expressions")
    if len(parts) == 2:
        if unit:
            raise _wrong(spec, "a time between two lines is in ns and has no unit", f"leave out {unit}.")
        for part in parts:
            _compiled(spec, part)
        return Reading("interval", *parts)
    section, then, text = body.rpartition("/ then /")
    if then:
        _compiled(spec, section)
    if not _compiled(spec, text).groups:
        raise _wrong(
            spec, "has no group for the value", "put parentheses around the number: /Time: ([0-9.]+)/."
        )
    return Reading("expression", text, section=section, unit=_known(spec, unit))


def _compiled(spec: str, text: str) -> re.Pattern[str]:
    if not text:
        raise _wrong(spec, "an expression is empty")
    if len(text) > _EXPRESSION_CHARACTERS:
        raise _wrong(spec, f"an expression has more than {_EXPRESSION_CHARACTERS} characters")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise _wrong(
            spec, f"{text!r} is not a regular expression: {error}", "write it as Python's module re reads it."
        ) from error


def _known(spec: str, unit: str) -> str:
    if unit and unit_of_word(unit) is None:
        raise _wrong(
            spec, f"{unit!r} is not a known unit", "use s, ms, us, ns, min, B, kB, MB, GB, %, X/s or count."
        )
    return unit


def values(
    reading: Reading, unit: Unit, output: Sequence[OutputLine], deltas: Sequence[Delta]
) -> list[Value]:
    """Return the values in what one repetition left behind, in the order of the lines.

    Raises InputError if an expression needs more than ``SEARCH_S`` for the lines.
    """
    read = {"expression": _matched, "interval": _intervals, "printed": _printed}.get(reading.kind)
    found = read(reading, unit, output[:LINES]) if read else _of_delta(reading, unit, deltas)
    return found[-1:] if reading.last else found


def _search(expressions: Sequence[str], lines: Sequence[OutputLine]) -> list[list[match.Found]]:
    """Search in this process where that cannot take long, else in a process that is ended after ``SEARCH_S``.

    An expression with at most one repetition or alternative needs at most the square of a line's length.
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
        done = spawn.run(program, input=request, capture_output=True, text=True, check=True, timeout=SEARCH_S)
    except subprocess.TimeoutExpired as error:
        wanted = " and ".join(f"/{text}/" for text in expressions)
        raise InputError(
            f"searching {wanted} in the {len(texts)} lines of a script takes more than {SEARCH_S:g} s",
            hint="use fewer `*` and `+`, such as [0-9.]+ in the place of .*, and begin with a fixed word.",
        ) from error
    return [
        [(index, value, unit, rest) for index, value, unit, rest in one] for one in json.loads(done.stdout)
    ]


def _value(number: Decimal, step: Decimal, word: str, unit: Unit, line: str, at_ns: int = 0) -> list[Value]:
    """Return the value in the unit of the metric; empty if ``word`` is a unit of something else."""
    value, resolution = convert(number, word, unit), convert(step, word, unit)
    if value is None or resolution is None:
        return []
    return [Value(value, float(resolution), at_ns, line)]


def _read(number: str, word: str, reading: Reading, unit: Unit, line: OutputLine) -> list[Value]:
    """Return the value of a printed number and the word that follows it, which may be its unit."""
    if (amount := amount_of(number)) is None:
        return []
    return _value(*amount, word if unit_of_word(word) else reading.unit, unit, line.text, line.at_ns)


def _matched(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    wanted = [reading.text] + ([reading.section] if reading.section else [])
    found, *sections = _search(wanted, lines)
    if sections:
        begins = [*(index for index, *_ in sections[0]), len(lines)]
        inside = ([one for one in found if begin < one[0] < end] for begin, end in pairwise(begins))
        found = [one for some in inside for one in some[:1]]
    return [
        value
        for index, number, word, _ in found
        for value in _read(number, word, reading, unit, lines[index])
    ]


def _intervals(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    """Return the time of each pair of lines of the log. A line may end one and begin the next."""
    log = [line for line in lines if line.source == "log"]
    starts, ends = ({index for index, *_ in one} for one in _search([reading.text, reading.until], log))
    found: list[Value] = []
    begin_ns: int | None = None
    for index, line in enumerate(log):
        if begin_ns is not None and index in ends:
            took_ns = line.at_ns - begin_ns
            if took_ns >= 0:
                found += _value(Decimal(took_ns), _LOG_STEP_NS, "ns", unit, line.text, line.at_ns)
            begin_ns = None
        if index in starts:
            begin_ns = line.at_ns
    return found


def _printed(reading: Reading, unit: Unit, lines: Sequence[OutputLine]) -> list[Value]:
    found = []
    for line in lines:
        words = line.text[:LINE_CHARACTERS].split()
        if line.source == "script" and len(words) in (2, 3) and words[0] == reading.text:
            found += _read(words[1], words[-1], reading, unit, line)
    return found


def _delta_unit(file: str, field: str) -> tuple[str, int]:
    """Return the unit of a counter, and in which steps of it the kernel changes it."""
    if file == "meminfo":
        return ("count", 1) if field.startswith("HugePages_") else ("kB", _PAGE_KB)
    if file == "memory.stat":
        # Bytes; the others count events or pages.
        is_count = field.startswith(("pg", "workingset_", "thp_", "numa_", "pswp", "swpin", "swpout", "zsw"))
        return ("count", 1) if is_count else ("B", 1)
    if file == "cpu.stat" and field.endswith("_usec"):
        return ("us", 1)
    return ("count", 1)


def _of_delta(reading: Reading, unit: Unit, deltas: Sequence[Delta]) -> list[Value]:
    """Return the change; 0 if only other fields of the file changed, since others are not recorded."""
    of_file = [delta for delta in deltas if delta.file == reading.text]
    word, step = _delta_unit(reading.text, reading.until)
    if not of_file:
        return []
    named = (delta for delta in of_file if delta.name == reading.until)
    changes = [(one.after - one.before, f"{one.name} {one.before} -> {one.after}") for one in named]
    return [
        value
        for change, text in changes or [(0, f"{reading.until} did not change")]
        for value in _value(Decimal(change), Decimal(step), word, unit, f"{reading.text}: {text}")
    ]


def metric_of(name: str, spec: str, examples: Iterable[OutputLine] = ()) -> tuple[str, Metric]:
    """Return the key and the model of a metric that a user has named.

    The unit is that of ``spec``, else the one that the name ends with (``wait_ms``), else the one after the
    number in ``examples``, which are lines that a script printed, else the one after the group in the
    expression. Times become ns, sizes kb, a rate ``per_s`` and a percentage a share; without a unit it is a
    count. The key ends with the unit of the metric. A higher rate is better; all else is better if lower.
    Raises InputError.
    """
    reading, spec = parse_reading(spec), spec.strip()
    tail = next((word for word in _NAME_UNITS if name.endswith("_" + word)), "")
    if reading.kind == "interval":
        word = "ns"
    elif reading.kind == "delta":
        word = _delta_unit(reading.text, reading.until)[0]
    else:
        word = reading.unit or tail or _unit_in(reading, list(examples)) or "count"
        spec = spec if reading.unit else f"{spec} {word}"
    known = unit_of_word(word)
    assert known is not None
    unit = known[0]
    if tail and (unit_of_word(tail) or known)[0] != unit:
        why = f"the name ends in _{tail}, but the value is in {word}"
        raise _wrong(f"{name}={spec}", why, "rename the metric.")
    name = name.removesuffix(f"_{tail}")
    key = f"{name.lower()}_{unit}"
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", key):
        raise _wrong(
            f"{name}={spec}",
            f"{name!r} is not a name of a metric",
            "write --metric NAME=SPEC with a name of letters, digits, - and _ that begins with a letter.",
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
    """Return the unit that the lines, or else the expression, have with the number; empty if none."""
    words: list[str] = []
    if reading.kind == "printed":
        lines = (line.text[:LINE_CHARACTERS].split() for line in examples[:LINES] if line.source == "script")
        words = [parts[2] for parts in lines if len(parts) == 3 and parts[0] == reading.text]
    else:
        (found,) = _search([reading.text], examples[:LINES])
        for _, _, unit, rest in found:
            words += [unit, *rest.split()[:1]]
        after = re.search(r"\)(?:\s|\\s[*+]?)*\[?([A-Za-z%\u00b5][\w/%]*)", reading.text)
        words += [after[1]] if after else []
    return next((word.strip("[]().,;") for word in words if unit_of_word(word)), "")


_NAMES, _CHARACTERS = 50, 80
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,79}")
_SUGGESTIONS = 3
_SUGGEST_LINES, _SUGGEST_CHARACTERS = 1000, 160
_LIKELY = re.compile(
    r"(?<![\w./])([A-Za-z][A-Za-z_ ]{0,40}[:=( ]{1,9})[0-9]{1,15}(?:\.[0-9]{1,9})?(?![0-9.])"
    r"(?:( ?)([A-Za-z%\u00b5/]{1,20}))?"
)


def found(output: Sequence[OutputLine]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the marks of the log, and the lines ``NAME VALUE UNIT`` of the output, as names and forms.

    Of each, the first 50 names. A line without a known unit may be of any file of the kernel, such as
    cgroup.stat before and after.
    """
    marks: dict[str, str] = {}
    printed: dict[str, str] = {}
    for line in output[:LINES]:
        words = line.text[:LINE_CHARACTERS].split()
        if line.source == "log" and len(words) == 2 and words[0] == "kt-begin":
            marks.setdefault(slug(words[1]), f"mark {words[1]}")
            continue
        is_printed = line.source == "script" and len(words) == 3 and _NAME.fullmatch(words[0])
        if is_printed and amount_of(words[1]) and unit_of_word(words[2]):
            printed.setdefault(slug(words[0]), f"printed {words[0]}")
    return dict([*marks.items()][:_NAMES]), dict([*printed.items()][:_NAMES])


def suggested(output: Sequence[OutputLine]) -> list[str]:
    """Return at most three metrics ``NAME=/REGEX/`` for printed numbers: with a unit, then with a label."""
    with_unit: dict[str, str] = {}
    labelled: dict[str, str] = {}
    for line in [line for line in output if line.source == "script"][:_SUGGEST_LINES]:
        for label, blank, word in _LIKELY.findall(line.text[:_SUGGEST_CHARACTERS]):
            text = re.escape(label).replace("\\ ", " ")
            if unit_of_word(word):
                with_unit.setdefault(slug(label), f"/{text}([0-9.]+){blank}{word}/")
            elif ":" in label or "=" in label:
                labelled.setdefault(slug(label), f"/{text}([0-9.]+)/")
    every = [*with_unit.items(), *labelled.items()]
    return [f"{name}={spec}" for name, spec in every[:_SUGGESTIONS]]


def slug(text: str) -> str:
    """Return a name of a metric that is like ``text``."""
    words = re.sub(r"[^a-z0-9]+", "_", text[:_CHARACTERS].lower()).strip("_")
    return words if words[:1].isalpha() else f"value_{words}".rstrip("_")


_SHOWN, _OF_MEMORY = 6, 3
_FIRST = {"meminfo": 0, "cgroup.stat": 1}
_LEAST = 16
_SHARE = 0.5
_PARTS = {"SReclaimable": "Slab", "SUnreclaim": "Slab", "KReclaimable": "Slab"}
"""Fields of meminfo that are a part of another one."""
_NOT_MEMORY = re.compile(
    r"(?:Active|Inactive)(?:\(|$)|Committed_AS|CommitLimit|DirectMap|Mem(?:Free|Available)"
)
"""Fields of meminfo that say where memory is on a list, or what was promised, or what is left."""
_EVERY_PROCESS = re.compile(
    r"pg(?:alloc|free|fault|reuse|activate|inodesteal|skip|_)|numa_|nr_|drop_|unevictable_"
)
"""Fields of vmstat that every process changes, or that repeat meminfo in pages."""
_SKIPPED = ("stat", "cpu.stat")
"""Files that count CPU time, processes and interrupts: the metrics of time have that."""


def growing(
    small: Sequence[Delta],
    large: Sequence[Delta],
    small_n: int,
    large_n: int,
    again: Sequence[Delta] | None = None,
) -> list[tuple[str, str, float]]:
    """Return the counters whose increase grows with N: file, field, and by how much for each one of N.

    A counter grows if its increases at ``small_n`` and ``large_n`` differ by at least 16, which is more than
    a few pages of a shell, and by at least half of what it would be if all of the increase at ``large_n``
    were proportional to N; objects of a slab also if half of them are there at ``small_n``. Counters that
    fall are left out: they are what another's growth leaves. With ``again``, the increases in another boot
    at ``small_n``, it grows only by more than twice the difference of these two boots.

    Of fields of a file that have the same increases, such as a sum and its only part that grew, one is kept;
    of meminfo, in which parts follow their sums, the last one. At most 6: the largest 3 of meminfo, which has
    all memory, then those of cgroup.stat, then others by size. None if N does not grow.
    """
    if not 0 <= small_n < large_n:
        return []
    before = {(one.file, one.name): one.after - one.before for one in small}
    after = {(one.file, one.name): one.after - one.before for one in large}
    other = before if again is None else {(one.file, one.name): one.after - one.before for one in again}
    kept: dict[tuple[str, int, int], tuple[str, str]] = {}
    for (file, name), change in after.items():
        first = before.get((file, name), 0)
        more = change - first
        # Objects are made one by one: those of each N are there at the smaller size, too.
        if file == "slabinfo" and first < _SHARE * change * small_n / large_n:
            continue
        if more <= 2 * abs(other.get((file, name), 0) - first):
            continue
        if more >= _LEAST and more >= _SHARE * change * (large_n - small_n) / large_n and _is_own(file, name):
            same = file, change - more, change
            if file == "meminfo":
                kept[same] = file, name
            kept.setdefault(same, (file, name))
    grown = {key: (high - low) / (large_n - small_n) for (_, low, high), key in kept.items()}
    for name, whole in _PARTS.items():
        if ("meminfo", whole) in grown:
            grown.pop(("meminfo", name), None)
    ordered = sorted(grown, key=lambda key: (_FIRST.get(key[0], len(_FIRST)), -grown[key], key))
    memory = [key for key in ordered if key[0] == "meminfo"]
    chosen = [*memory[:_OF_MEMORY], *ordered[len(memory) :]]
    return [(*key, grown[key]) for key in chosen[:_SHOWN]]


def _is_own(file: str, name: str) -> bool:
    """Whether a counter says something that no other one and no metric of time does."""
    if file in _SKIPPED:
        return False
    if file == "memory.stat" and _delta_unit(file, name)[0] == "B":
        return False  # A part of what meminfo has.
    other = {"meminfo": _NOT_MEMORY, "vmstat": _EVERY_PROCESS, "memory.stat": _EVERY_PROCESS}.get(file)
    return not (other and other.match(name))


_TREND_VALUES = 6
_TREND_LEVEL = 0.005


def trend(measured: Sequence[float]) -> bool:
    """Return whether the values of one boot rise or fall with their order (Mann-Kendall test, level 0.005).

    Then they may be points of a law, and not repetitions. False for fewer than 6 values: of those, not even
    a strict order is evidence at this level.
    """
    if len(measured) < _TREND_VALUES:
        return False
    from scipy import stats  # It loads for a second, and every run imports this module.

    test = stats.kendalltau(range(len(measured)), measured)
    return bool(test.pvalue < _TREND_LEVEL)


_KEPT = 1000
"""Lines of a repetition that a run keeps of each source, besides those that a value was read from."""
_DELTAS = 10_000
"""Counters of a repetition; those of all files that the agent reads are fewer."""
_FAILURES, _FAILURE_CHARACTERS = 3, 160
"""Failures of TAP in the detail of a trial, and characters of each."""


class LeftBehind:
    """Collects what the scripts of one boot leave behind, and makes samples of it.

    Records of other workloads pass through unchanged. All are such as the agent sends
    (``run.guest_records``): of a script those of one repetition after another. What is collected has limits.
    """

    def __init__(self, trials: Sequence[PlannedTrial]) -> None:
        self._trials = {trial.index: trial for trial in trials if trial.script is not None}
        self._failures: dict[int, list[str]] = {}
        self._clear()

    def _clear(self) -> None:
        self._output: list[OutputLine] = []
        self._deltas: list[Delta] = []
        self._lost = 0

    def add(self, record: Record) -> Sequence[Record]:
        """Return the records to keep now: none until a repetition of a script has ended, then all of it.

        The end of a trial becomes void if a script printed TAP with a failure. Raises as ``extract.values``.
        """
        if isinstance(record, OutputLine):
            self._lost += len(self._output) >= LINES
            self._output += [record] if len(self._output) < LINES else []
            return ()
        if isinstance(record, Delta):
            self._deltas += [record] if len(self._deltas) < _DELTAS else []
            return ()
        trial = self._trials.get(getattr(record, "trial", -1))
        if trial is None:
            return (record,)
        if isinstance(record, ScriptEnd):
            return tuple(self._all_of(trial, record))
        # Where the agent has a metric of the user's name, the user's is meant.
        is_other = isinstance(record, Sample) and record.metric in (trial.script or {})
        return () if is_other else (self._judged(record, trial),)

    def _judged(self, record: Record, trial: PlannedTrial) -> Record:
        failures = self._failures.get(trial.index)
        if not isinstance(record, TrialEnd) or record.status != "ok" or not failures:
            return record
        more = [f"and {len(failures) - _FAILURES} more"] if len(failures) > _FAILURES else []
        shown = "; ".join([text[:_FAILURE_CHARACTERS] for text in failures[:_FAILURES]] + more)
        return record.model_copy(update={"status": "void", "detail": f"a test failed: {shown}"})

    def _all_of(self, trial: PlannedTrial, end: ScriptEnd) -> Iterator[Record]:
        """Yield what a repetition left behind, the samples that were read from it, and its end."""
        output, deltas, lost = self._output, self._deltas, self._lost
        self._clear()
        if failures := tap_failures(output):
            self._failures.setdefault(trial.index, []).extend(failures)
        samples, read = [], set()
        for key, spec in (trial.script or {}).items():
            for value in values(parse_reading(spec), unit_of(key), output, deltas):
                samples.append(
                    Sample(
                        trial=end.trial,
                        repetition=end.repetition,
                        metric=key,
                        value=value.value,
                        warmup=end.repetition < trial.warmup,
                    )
                )
                read.add((value.at_ns, value.line))
        left = {"script": _KEPT, "log": _KEPT}
        for line in output:
            left[line.source] -= 1
            if left[line.source] >= 0 or (line.at_ns, line.text) in read:
                yield line
            else:
                lost += 1
        yield from deltas
        yield from samples
        yield end.model_copy(update={"dropped": end.dropped + lost})


PRESETS: dict[str, dict[str, list[str]]] = shipped_table("script/presets")
"""By program and name of a metric, the forms of ``Metric.read``; the first with a value is used."""

_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)


def preset_of(text: str) -> str:
    """Return the key in ``PRESETS`` of the first line of ``text`` that runs such a program; empty: none.

    The program is the first word after assignments, without its folder.
    """
    return next(filter(None, map(_preset, text.splitlines())), "")


def _preset(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:  # A quotation that does not end.
        words = command.split()
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name.startswith("perf") and words[1:2] == ["bench"]:
        return "perf bench"
    # The programs of will-it-scale are called page_fault1_processes, page_fault1_threads, and so on.
    if name.endswith(("_processes", "_threads")):
        return "will-it-scale"
    return name if name in PRESETS else ""


def preset_metrics(program: str, output: Sequence[OutputLine]) -> dict[str, Metric]:
    """Return the metrics of a preset that have a value in ``output``, by key.

    Raises KeyError if there is no such preset, and what ``extract.values`` raises.
    """
    metrics: dict[str, Metric] = {}
    for name, spec in ((name, spec) for name, forms in PRESETS[program].items() for spec in forms):
        key, metric = metric_of(name, spec)
        if key not in metrics and values(parse_reading(metric.read), metric.unit, output, []):
            metrics[key] = metric
    return metrics


_RESULT = re.compile(r"(not )?ok\b[ \t]*([0-9]*)(.*)", re.DOTALL)
_ALLOWED = re.compile(r"#[ \t]*(?:skip|todo|xfail)", re.IGNORECASE)
_PLAN = re.compile(r"1\.\.([0-9]{1,6})[ \t]*(?:#.*)?", re.DOTALL)
_TAP = re.compile(r"K?TAP version [0-9]+")


def tap_failures(output: Sequence[OutputLine]) -> list[str]:
    """Return what failed of a program that prints TAP, one line each; empty if all passed or it is not TAP.

    It is TAP if it has a version or a plan, ``TAP version 13`` or ``1..3``. Results that are skipped, or
    expected to fail, pass. So do nested results, which are indented or in comments: the outer result counts.
    Results that a plan has and that were not printed are a failure, too.
    """
    texts = [line.text[:LINE_CHARACTERS].rstrip() for line in output[:LINES] if line.source == "script"]
    plans = [int(plan[1]) for text in texts if (plan := _PLAN.fullmatch(text))]
    if not plans and not any(_TAP.match(text) for text in texts):
        return []
    results = [(text, found) for text in texts if (found := _RESULT.fullmatch(text))]
    failures = [text for text, found in results if found[1] and not _ALLOWED.search(found[3])]
    failures += [text for text in texts if text.startswith("Bail out!")]
    if len(results) < sum(plans):
        failures.append(f"{sum(plans)} results were planned, and {len(results)} printed")
    return failures
