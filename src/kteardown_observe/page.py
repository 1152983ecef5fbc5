"""What was present, as text for a terminal and as Markdown."""

import re
from collections.abc import Sequence

from kteardown_observe import limit_words, words
from kteardown_observe.calibrate import InstructionRate
from kteardown_observe.judge import Judgement, PresentProblem
from kteardown_observe.limit_words import limit_lines
from kteardown_observe.rate_words import rate_lines

_INDENT = "  "
_WITH = "containers release these together with them, in part by the same work"
_MARKS = re.compile(r"[\\`*_\[\]<>#|~&]")


def text_of(judgement: Judgement, rate: InstructionRate | None) -> str:
    """Return a page for a terminal."""
    counts = judgement.counts
    lines = [words.machine_text(counts), words.taken_text(counts)]
    lines += ["", words.summary_text(judgement)]
    limits = list(limit_lines(judgement.limits))
    lines += ["", f"{limit_words.TITLE}:"] if limits else []
    for limit, fails in limits:
        lines += [f"{_INDENT}{limit}", f"{_INDENT * 2}{fails}"]
    for present, parts in judgement.teardowns:
        lines += ["", words.title_text(present)]
        lines += [f"{_INDENT}{line}" for line in _lines(present, judgement, rate)]
        lines += [f"{_INDENT}{_WITH}:"] if parts else []
        lines += [f"{_INDENT * 2}{words.part_text(part)}" for part in parts]
    lines += ["", *rate_lines(counts.rates)] if counts.rates else []
    unknown = words.unknown_text(judgement)
    lines += ["", unknown] if unknown else []
    return "\n".join(lines) + "\n"


def markdown_of(judgement: Judgement, rate: InstructionRate | None) -> str:
    """Return the same for an issue or a wiki."""
    counts = judgement.counts
    lines = [f"# {_escaped(words.machine_text(counts))}", ""]
    lines += [_sentence(words.taken_text(counts)), "", _sentence(words.summary_text(judgement))]
    limits = list(limit_lines(judgement.limits))
    lines += ["", f"## {_sentence(limit_words.TITLE)[:-1]}", ""] if limits else []
    lines += [f"- {_escaped(limit)}. {_sentence(fails)}" for limit, fails in limits]
    for present, parts in judgement.teardowns:
        lines += ["", f"## {_escaped(words.title_text(present))}", ""]
        lines += [f"- {_escaped(line)}" for line in _lines(present, judgement, rate)]
        lines += [f"- {_WITH}:"] if parts else []
        lines += [f"{_INDENT}- {_escaped(words.part_text(part))}" for part in parts]
    if counts.rates:
        first, *rest = rate_lines(counts.rates)
        lines += ["", f"## {_sentence(first)[:-2]}", ""]
        lines += [f"- {_escaped(line.strip())}" for line in rest]
    unknown = words.unknown_text(judgement)
    lines += ["", _sentence(unknown)] if unknown else []
    return "\n".join(lines) + "\n"


def _lines(
    present: PresentProblem, judgement: Judgement, rate: InstructionRate | None
) -> Sequence[str]:
    lines = (
        words.how_text(present),
        words.cost_text(present),
        words.time_text(present, rate),
        words.sleep_text(present),
        words.bounds_text(present),
        words.basis_text(present, judgement.counts.host),
        words.relief_text(present),
    )
    return [line for line in lines if line]


def _sentence(text: str) -> str:
    return f"{_escaped(text[:1].upper() + text[1:])}."


def _escaped(text: str) -> str:
    """Return text from outside without what Markdown obeys."""
    return _MARKS.sub(r"\\\g<0>", text)
