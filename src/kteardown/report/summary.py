"""The limits of what a result shows, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from kteardown.model.result import Result
from kteardown.report.formatting import OTHER_CLOCK, percent
from kteardown.report.sections.fault_lines import fault_sentence, uncompared_sentences
from kteardown.report.sections.timing_lines import timing_lines


def limits(result: Result, *, alone: bool = True) -> list[str]:
    """Return what the figures are based on and what they do not show, one sentence each.

    ``alone``: only this clock was measured, so a sentence says what the other one would add.
    """
    sentences = [_basis(result)]
    if result.clock == "instructions":
        sentences.append(
            "An instruction count shows path length, growth and memory. It does not show seconds, caches, "
            "real lock contention, or the latency of interrupts between CPUs."
        )
    else:
        sentences.append("Real time on one machine; another machine can differ.")
        sentences += [as_sentence(f"time: {text}") for text in timing_lines(result)]
        ends = [end for c in result.asked_for if c.null_ci for end in c.null_ci]
        if ends:
            span = f"{percent(min(ends))} to {percent(max(ends))}"
            sentences.append(f"A/A: the intervals of base compared with itself extend from {span}.")
    if alone:
        sentences.append(as_sentence(OTHER_CLOCK[result.clock]))
    sentences += [
        f"{fault_sentence(f)}."
        for f in result.faults
        if f.status != "broken" and result.is_asked_for(f.kernel)
    ]
    sentences += [f"{text}." for text in uncompared_sentences(result)]
    failed = {outcome: count for outcome, count in result.boots.items() if count and outcome != "ok"}
    if failed:
        sentences.append(
            "Not all boots ended ok: " + ", ".join(f"{n} {outcome}" for outcome, n in failed.items())
        )
    lost = sum(void.count for void in result.voids)
    if lost:
        sentences.append(f"{lost} trials could not be used; the report lists them with the reasons.")
    return sentences + [as_sentence(note) for note in result.notes]


def as_sentence(note: str) -> str:
    """Return a note as a sentence of its own."""
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."


def _basis(result: Result) -> str:
    base = result.kernels.get("base")
    boots = max((side.boots for c in result.asked_for for side in (c.base, c.changed)), default=0)
    what = f"Base is Linux {base.release} ({base.source}, {base.arch})" if base else "There is no base"
    if not boots:
        return f"{what}; nothing was compared with it."
    count = f"{boots} boot{'' if boots == 1 else 's'} of each kernel"
    confidence = f"{result.comparisons[0].confidence * 100:.4g}%"
    if result.clock == "instructions":
        return (
            f"{what}; instructions counted in an emulated guest, {count} with a seed "
            f"each; intervals at {confidence}."
        )
    cpu = result.machine.get("cpu")
    model = cpu.get("model") if isinstance(cpu, Mapping) else cpu
    return (
        f"{what}; wall clock of a guest on {model or 'this machine'}, {count} in "
        f"randomized blocks, with base twice (A/A); intervals at {confidence}."
    )
