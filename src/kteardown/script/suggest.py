"""Which metrics the output of a script offers: preset names, and numbers with units."""

import re
from collections.abc import Sequence

from kteardown.model.script_records import OutputLine
from kteardown.script.extract import LINE_CHARACTERS, LINES
from kteardown.script.units import amount_of, unit_of_word

_NAMES = 50
_CHARACTERS = 80
_SUGGEST_LINES = 1000
_SUGGEST_CHARACTERS = 160

_NAME = re.compile(r"[A-Za-z_][\w.-]{0,79}")
_SUGGESTIONS = 3
_LIKELY = re.compile(
    r"(?<![\w./])([A-Za-z][A-Za-z_ ]{0,40}[:=( ]{1,9})[0-9]{1,15}(?:\.[0-9]{1,9})?(?![0-9.])"
    r"(?:( ?)([A-Za-z%\u00b5/]{1,20}))?"
)


def marks_and_printed(output: Sequence[OutputLine]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the marks of the log, and the lines ``NAME VALUE UNIT`` of the output, as names and
    forms.

    Of each, the first 50 names. A line without a known unit may be of any file of the kernel, such
    as cgroup.stat before and after.
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
    """Return at most three metrics ``NAME=/REGEX/`` for printed numbers: with a unit, then with a
    label."""
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
