"""The claims that a result supports and their limits, in sentences for a cover letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Result, Verdict
from kteardown.report.comparison_groups import Group, headlines, variants
from kteardown.report.context import Material
from kteardown.report.formatting import OTHER_CLOCK, VERDICTS, parameter, percent, point_text, tone

_MANY = 3
"""Up to this many points are named individually; of more, the number is given."""


@dataclass(frozen=True)
class Claim:
    """One sentence about one variant and one headline metric, and the ``verdict`` that it is based on."""

    variant: str
    metric: str
    verdict: Verdict
    text: str


def claims(material: Material) -> list[Claim]:
    """Return a claim for each variant and headline metric; points with the same verdict are combined."""
    return [
        _claim(group, variant, rows)
        for variant in variants(material.result)
        for group in headlines(material.result, material.workloads)
        if (rows := group.of(variant))
    ]


def limits(result: Result, *, alone: bool = True) -> list[str]:
    """Return what the claims are based on and what they do not show, one sentence each.

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
        ends = [end for c in result.asked_for if c.null_ci for end in c.null_ci]
        if ends:
            span = f"{percent(min(ends))} to {percent(max(ends))}"
            sentences.append(f"A/A: the intervals of base compared with itself extend from {span}.")
    if alone:
        sentences.append(as_sentence(OTHER_CLOCK[result.clock]))
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
    confidence = f"{result.comparisons[0].confidence * 100:.4g}%" if result.comparisons else "95%"
    if result.clock == "instructions":
        return (
            f"{what}; instructions counted in an emulated guest, {boots} boots of each kernel with a seed "
            f"each; intervals at {confidence}."
        )
    cpu = result.machine.get("cpu")
    model = cpu.get("model") if isinstance(cpu, Mapping) else cpu
    return (
        f"{what}; wall clock of a guest on {model or 'this machine'}, {boots} boots of each kernel in "
        f"randomized blocks, with base twice (A/A); intervals at {confidence}."
    )


def _claim(group: Group, variant: str, rows: Sequence[Comparison]) -> Claim:
    by_verdict = {verdict: [c for c in rows if c.verdict == verdict] for verdict in VERDICTS}
    parts = [_part(verdict, mine, rows) for verdict, mine in by_verdict.items() if mine]
    leading = tone(rows)
    return Claim(variant, group.metric, leading, f"With {variant}, {group.name} is {_joined(parts)}.")


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else "; ".join(parts[:-1]) + "; and " + parts[-1]


def _part(verdict: Verdict, mine: Sequence[Comparison], rows: Sequence[Comparison]) -> str:
    where = _where(mine, rows)
    if verdict == "same":
        reasons = list(dict.fromkeys(c.reason for c in mine if c.reason.startswith("within")))
        return f"the same{f' ({reasons[0]})' if len(reasons) == 1 else ''}{where}"
    if verdict == "inconclusive":
        return f"not significantly different from base{where}"
    return f"{_size(mine)}{where}"


def _size(mine: Sequence[Comparison]) -> str:
    """Return the smallest and the largest change of these points: ``66.3% to 68.5% lower``."""
    ratios = [c.ratio for c in mine if c.ratio is not None]
    if not ratios:
        return "different"
    lower = ratios[0] < 1
    sizes = sorted(abs(ratio - 1) for ratio in ratios)
    word = "lower" if lower else "higher"
    low, high = f"{sizes[0]:.1%}", f"{sizes[-1]:.1%}"
    ends = [end for c in mine if c.ci and not c.exact for end in c.ci]
    within = f" (intervals from {min(ends) - 1:+.1%} to {max(ends) - 1:+.1%})" if ends else ""
    return f"{low if low == high else f'{low} to {high}'} {word}{within}"


def _where(mine: Sequence[Comparison], rows: Sequence[Comparison]) -> str:
    """Return the points as text: their parameters if there are few, else their number and range."""
    if len(rows) == 1:
        return f" at {point_text(rows[0].point)}" if rows[0].point else ""
    varying = _varying([c.point for c in rows])
    if len(mine) == len(rows):
        return f" at all {len(rows)} points" + _span(mine, rows, varying)
    if len(mine) <= _MANY:
        return " at " + ", ".join(point_text({n: c.point[n] for n in varying if n in c.point}) for c in mine)
    return f" at {len(mine)} of {len(rows)} points" + _span(mine, rows, varying)


def _span(mine: Sequence[Comparison], rows: Sequence[Comparison], varying: Sequence[str]) -> str:
    """Return the range of these points, as `` (zombies=3,000 to 15,000)``.

    Empty if several parameters vary, or if the points are not neighbours.
    """
    if len(varying) != 1:
        return ""
    name = varying[0]
    places = [n for n, c in enumerate(rows) if c in mine]
    if places != list(range(places[0], places[-1] + 1)):
        return ""
    first, last = mine[0].point[name], mine[-1].point[name]
    return f" ({name}={parameter(first)} to {parameter(last)})" if isinstance(first, int) else ""


def _varying(points: Sequence[Mapping[str, ParamValue]]) -> list[str]:
    names = dict.fromkeys(name for point in points for name in point)
    return [name for name in names if len({point.get(name) for point in points}) > 1]
