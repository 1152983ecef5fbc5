"""The text of a bug report: what happens on which kernel, how it grows, where it waits, and how to
repeat it.

Plain ASCII text of at most 72 columns, without a greeting. The reproducer is quoted as it is.
"""

from collections.abc import Mapping
from typing import Any

from kteardown.model.clock import Clock
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.model.waits import WaitProfile
from kteardown.report.contents import limits
from kteardown.report.formats.cover import layout, tables, wrapped
from kteardown.report.measured import WAITS, counted_waits, measured_lines, share_of_time
from kteardown.report.publication import Publication
from kteardown.report.sections.levels import level_tables, waited_tables
from kteardown.report.sentence import lines
from kteardown.visible import on_one_line

NEEDS = ("material",)
_OF_CLOCK: Mapping[Clock, str] = {
    "instructions": (
        "Times are of an emulated guest: its CPU executes one instruction in a nanosecond, and "
        "time asleep passes as the guest asked for it."
    ),
    "wall": "Times are of a guest, by the clock of the host.",
    "contention": "Cache lines are those of a model: infinite caches, one level.",
}
_PLACES = 3
_MOST_CHARACTERS = 20_000
"""Of a longer reproducer only its name is given."""


def render(publication: Publication) -> str:
    """Return the whole text, with a newline at the end; of both clocks one after the other."""
    measured = publication.run
    alone = len(measured.clocks) == 1
    parts = [_kernels(measured.clocks[0].result)]
    for material in measured.clocks:
        result = material.result
        workloads = material.workloads
        parts += [
            wrapped(_OF_CLOCK[result.clock]),
            "\n".join(wrapped(line, "- ") for line in measured_lines(result, workloads)),
            *map(layout, level_tables(result, workloads)),
            *map(layout, waited_tables(result)),
            *(_trace(profile) for profile in result.waits),
        ]
    result = measured.clocks[0].result
    # What is said of other kernels, and of those that have nothing of their patches.
    if len(result.kernels) > 1:
        verdicts = lines(measured.whole, measured.workloads)
        parts.append("\n".join(wrapped(line.text, "- ") for line in verdicts))
        parts += map(layout, tables(measured))
    parts += [
        _reproducer(publication.details.get("reproducer", {})),
        f"To repeat it, with kteardown:\n\n  {on_one_line(result.command)}",
        "\n".join(["Limits:", *(wrapped(text, "- ") for text in limits(result, alone=alone))]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _kernels(result: Result) -> str:
    lines = [
        f"Kernel{'' if name == BASE else f' {name}'}: Linux {facts.release} ({facts.source}, "
        f"{facts.arch})"
        for name, facts in result.kernels.items()
    ]
    return "\n".join(map(wrapped, map(on_one_line, lines)))


def _trace(profile: WaitProfile) -> str:
    """Return the functions through which the longest waits came, as a stack trace shows them."""
    long = [place for place in profile.places if place.share >= WAITS]
    shown = [place for place in long if place.waits_for == "kernel"][:_PLACES]
    texts = []
    for place in shown:
        title = f"{counted_waits(place)}, {share_of_time(place)} of the time:"
        frames = [f"  {function}" for function in (place.function, *place.callers)]
        texts.append("\n".join([title, *map(on_one_line, frames)]))
    return (
        "\n\n".join([f"Where it waits on {on_one_line(profile.kernel)}:", *texts]) if texts else ""
    )


def _reproducer(details: Mapping[str, Any]) -> str:
    """Return the script, if the command that measured it is the one that reports."""
    name = str(details.get("name", ""))
    text = str(details.get("text", ""))
    if not text or len(text) > _MOST_CHARACTERS:
        return ""
    quoted = "\n".join(f"  {line}".rstrip() for line in text.splitlines())
    return f"The reproducer, {on_one_line(name)}:\n\n{quoted}"
