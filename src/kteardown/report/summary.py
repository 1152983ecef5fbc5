"""The claims that a result supports and their limits, in sentences for a cover letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.report.comparison_groups import Group, headlines, variants
from kteardown.report.formatting import OTHER_CLOCK, VERDICTS, parameter, percent, point_text, tone
from kteardown.report.material import Material
from kteardown.report.metric_words import against, metric_change, points_of, varying, verdict_of
from kteardown.report.sections.fault_lines import fault_sentence, is_broken, uncompared_sentences
from kteardown.report.sections.timing_lines import timing_lines
from kteardown.report.sentence import not_built_texts

_MANY = 3
"""Up to this many points are named individually; of more, the number is given."""


@dataclass(frozen=True)
class ClaimSentence:
    """One sentence about one variant and one headline metric, and the ``verdict`` that it is based on."""

    variant: str
    metric: str
    verdict: Verdict
    text: str


def claims(material: Material) -> list[ClaimSentence]:
    """Return a claim for each variant and headline metric: over all points, then its points by verdict.

    A broken variant has no claims but its faults, which are first.
    """
    result = material.result
    absent = [
        ClaimSentence(variant, "", "inconclusive", f"{text}.")
        for variant in result.not_built
        for text in not_built_texts([variant])
    ]
    broken = [
        ClaimSentence(fault.kernel, "", "broken", f"{fault_sentence(fault)}.")
        for variant in result.requested
        for fault in result.broken(variant)
    ]
    return (
        absent
        + broken
        + [
            _claim(group.name, group, rows, verdict_of(result, group, variant))
            for variant in variants(result)
            if not is_broken(result, variant)
            for group in headlines(result, material.workloads)
            if (rows := group.of(variant))
        ]
    )


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


def _claim(
    name: str, group: Group, rows: Sequence[Comparison], metric: MetricVerdict | None
) -> ClaimSentence:
    variant = rows[0].variant
    by_verdict = {verdict: [c for c in rows if c.verdict == verdict] for verdict in VERDICTS}
    parts = [_part(verdict, mine, rows) for verdict, mine in by_verdict.items() if mine]
    subject = f"With {variant}, {name} is"
    if metric is None or (metric.planned == 1 and len(rows) == 1):
        return ClaimSentence(variant, group.metric, tone(rows), f"{subject} {_joined(parts)}.")
    whole = f"{_whole(metric)} over {points_of(metric)}"
    if metric.verdict == "mixed":
        text = f"{subject} mixed: {_joined(parts)}; {whole}."
    elif metric.verdict in ("same", "inconclusive") and len(by_verdict[metric.verdict]) == len(rows):
        text = f"{subject} {whole}."
    elif len(by_verdict["inconclusive"]) == len(rows):
        text = f"{subject} {whole}; no point is significant by itself."
    else:
        text = f"{subject} {whole}: {_joined(parts)}."
    return ClaimSentence(variant, group.metric, metric.verdict, text[:-1] + _opposite(metric, rows) + ".")


def _whole(metric: MetricVerdict) -> str:
    """Return the verdict over all points: ``61.0% lower (interval -61.2% to -60.8%)``."""
    if metric.verdict == "inconclusive":
        return "not significantly different from base"
    if metric.verdict == "same":
        return f"the same ({metric.reason})" if metric.reason else "the same"
    if metric.ratio is None:
        return metric_change(metric, [])
    size = f"{abs(metric.ratio - 1):.1%} {'lower' if metric.ratio < 1 else 'higher'}"
    if metric.exact or metric.ci is None:
        return f"{size} (exact)" if metric.exact else size
    return f"{size} (interval {percent(metric.ci[0])} to {percent(metric.ci[1])})"


def _opposite(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return that points go in the opposite direction, if some do without being significant."""
    found = against(metric, rows)
    return f"; in the opposite direction, but not significant,{_where(found, rows)}" if found else ""


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else "; ".join(parts[:-1]) + "; and " + parts[-1]


def _part(verdict: Verdict, mine: Sequence[Comparison], rows: Sequence[Comparison]) -> str:
    where = _where(mine, rows)
    if verdict == "same":
        reasons = list(dict.fromkeys(c.reason for c in mine if c.reason.startswith("within")))
        return f"the same{f' ({reasons[0]})' if len(reasons) == 1 else ''}{where}"
    if verdict == "broken":
        return f"broken{where}"
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
    names = varying([c.point for c in rows])
    if len(mine) == len(rows):
        return f" at all {len(rows)} points" + _span(mine, rows, names)
    if len(mine) <= _MANY:
        return " at " + ", ".join(point_text({n: c.point[n] for n in names if n in c.point}) for c in mine)
    return f" at {len(mine)} of {len(rows)} points" + _span(mine, rows, names)


def _span(mine: Sequence[Comparison], rows: Sequence[Comparison], names: Sequence[str]) -> str:
    """Return the range of these points, as `` (zombies=3,000 to 15,000)``.

    Empty if several parameters vary, or if the points are not neighbours.
    """
    if len(names) != 1:
        return ""
    name = names[0]
    places = [n for n, c in enumerate(rows) if c in mine]
    if places != list(range(places[0], places[-1] + 1)):
        return ""
    first, last = mine[0].point[name], mine[-1].point[name]
    return f" ({name}={parameter(first)} to {parameter(last)})" if isinstance(first, int) else ""
