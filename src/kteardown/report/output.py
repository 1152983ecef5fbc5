"""The JSON of every command that measures: one shape, whatever the command.

It is the interface for scripts and dashboards, and depends on nothing but the answer: equal results
give equal bytes. The result of each clock has the form of the ``result.json`` of a run directory.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from kteardown import version
from kteardown.errors import InputError
from kteardown.judge.answer import (
    DIRECTIONS,
    Answer,
    Direction,
    MetricAnswer,
    ProblemKind,
    VariantAnswer,
)
from kteardown.judge.verdicts import Outcome
from kteardown.model.both_clocks import BothClocks, ClockRate, ClockReading
from kteardown.model.clock import Clock, value_unit
from kteardown.model.judged import Verdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better, FiniteModel, StrictModel
from kteardown.report import result_file
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.publication import Publication
from kteardown.report.result_file import in_words
from kteardown.report.sentence import VariantLine, lines, sentence

FORMAT = 2
"""The version of this shape. Before it, each command had a shape of its own."""


class OutputMetric(FiniteModel):
    """A metric of a variant on one clock, over all its points. Only headline metrics count for the
    variant.

    ``unit`` is what the clock gives. ``ratio`` is changed / base and ``ci`` its interval; None
    without a value over all points. ``turned`` has the points at which the metric became better or
    worse by itself.
    """

    workload: str
    metric: str
    statistic: str
    name: str
    unit: str
    clock: Clock
    better: Better
    is_headline: bool
    outcome: Outcome
    verdict: Verdict
    reason: str
    ratio: float | None
    ci: tuple[float, float] | None
    points: int
    turned: dict[Direction, tuple[dict[str, ParamValue], ...]]


class OutputVariant(FiniteModel):
    """What was found of one kernel, and every reason why it does not pass, the most serious kind
    first."""

    name: str
    headline: str
    outcome: Outcome
    problems: tuple[ProblemKind, ...]
    metrics: tuple[OutputMetric, ...]


class OutputClocks(StrictModel):
    """Of a run on both clocks: each metric and each comparison on both, rates, and notes on the
    pair."""

    metrics: tuple[ClockReading, ...]
    readings: tuple[ClockReading, ...]
    rates: tuple[ClockRate, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, both: BothClocks) -> "OutputClocks":
        """Return what both clocks say together, without the result of each."""
        return cls(metrics=both.metrics, readings=both.readings, rates=both.rates, notes=both.notes)


class OutputRun(FiniteModel):
    """A run: its answer, and the ``result.json`` of each clock that was measured."""

    name: str
    headline: str
    outcome: Outcome
    base_fails: bool
    """Whether base has a fault of its own: then nothing passes."""
    variants: tuple[OutputVariant, ...]
    results: dict[Clock, Result]
    both_clocks: OutputClocks | None


class CommandOutput(FiniteModel):
    """What a command says. ``details`` has what only this command has (docs/formats.md).

    ``outcome`` is None of a command that does not say whether anything passes. ``error`` is the
    message of the error with which the command ends with ``exit_code``; empty if it ends with 0.
    """

    format: int = FORMAT
    kteardown: str
    command: str
    headline: str
    outcome: Outcome | None
    exit_code: int
    error: str
    runs: tuple[OutputRun, ...]
    details: dict[str, Any]


def output_of(publication: Publication) -> CommandOutput:
    """Return the JSON of what a command says."""
    return CommandOutput(
        kteardown=version(),
        command=publication.command,
        headline=publication.headline,
        outcome=publication.outcome,
        exit_code=publication.exit_code,
        error=publication.error,
        runs=tuple(map(_of_run, publication.materials)),
        details=dict(publication.details),
    )


class _Format(BaseModel):
    format: int


class _Results(BaseModel):
    results: dict[Clock, Result] = Field(min_length=1)


class _Runs(BaseModel):
    runs: tuple[_Results, ...]


def results_in(text: str | bytes, name: str) -> list[Result]:
    """Return the results in the JSON of a command, or in a result.json: one, or one of each clock.

    ``name`` is that of the file. Keys that this version does not know are ignored. Raises
    InputError.
    """
    try:
        file_format = _Format.model_validate_json(text, extra="ignore").format
    except ValidationError:
        return _of_earlier_versions(text, name)
    if file_format != FORMAT:
        raise InputError(
            f"{name} has format {file_format}; this kteardown reads format {FORMAT}",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    runs = result_file.parse(_Runs, text, name, what="the JSON of a command").runs
    if len(runs) != 1:
        raise InputError(
            f"{name} has {len(runs)} runs, but a file with one run is expected",
            hint="name a run, or the result.json in its run directory.",
        )
    results = list(runs[0].results.values())
    for result in results:
        result_file.check_schema(result, name)
    return results


def _of_earlier_versions(text: str | bytes, name: str) -> list[Result]:
    """Return the results in a result.json, or in what earlier versions wrote of a run on both
    clocks."""
    try:
        return list(_Results.model_validate_json(text, extra="ignore").results.values())
    except ValidationError:
        return [result_file.result_of(text, name)]


def _of_run(material: Measured) -> OutputRun:
    answer = material.answer
    workloads = material.workloads
    both = material.both if isinstance(material, BothMaterial) else None
    return OutputRun(
        name=material.name,
        headline=sentence(material.whole, workloads),
        outcome=answer.outcome,
        base_fails=bool(answer.base.with_status("base")),
        variants=_variants(answer, lines(material.whole, workloads)),
        results={
            clock: in_words(result, workloads) for clock, result in material.whole.results.items()
        },
        both_clocks=OutputClocks.of(both) if both else None,
    )


def _variants(answer: Answer, variant_lines: Sequence[VariantLine]) -> tuple[OutputVariant, ...]:
    # There may be a line about base, too: first if it fails, and alone if there is no variant.
    of_variants = variant_lines[len(variant_lines) - len(answer.variants) :]
    return tuple(
        OutputVariant(
            name=variant.name,
            headline=line.text,
            outcome=variant.outcome,
            problems=_problems(variant),
            metrics=tuple(map(_metric, variant.findings)),
        )
        for variant, line in zip(answer.variants, of_variants, strict=True)
    )


def _problems(variant: VariantAnswer) -> tuple[ProblemKind, ...]:
    kinds = tuple(dict.fromkeys(problem.kind for problem in variant.problems()))
    # Without any headline metric nothing is decided.
    return kinds if kinds or variant.outcome == "pass" else ("not compared",)


def _metric(metric: MetricAnswer) -> OutputMetric:
    evidence = metric.evidence
    return OutputMetric(
        workload=metric.group.workload,
        metric=metric.group.metric,
        statistic=metric.group.statistic,
        name=metric.group.name,
        unit=value_unit(metric.group.unit, metric.clock),
        clock=metric.clock,
        better=metric.group.better,
        is_headline=metric.headline,
        outcome=metric.outcome,
        verdict=metric.verdict,
        reason=evidence.reason if evidence else "",
        ratio=evidence.ratio if evidence else None,
        ci=evidence.ci if evidence else None,
        points=len(metric.points),
        turned={turn: tuple(point.point for point in metric.turned(turn)) for turn in DIRECTIONS},
    )
