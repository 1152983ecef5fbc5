"""``kteardown run``: run all stages of an experiment."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.cli.run_report import each_clock, material_of_folder, print_report, written
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import BrokenError, GateError, InputError
from kteardown.inputs.load import load_experiment
from kteardown.model.both_clocks import CLOCK_NAMES
from kteardown.model.result import Comparison, MetricVerdict, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import headlines, is_headline, variants
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.metric_names import metric_name
from kteardown.report.metric_words import metric_sentence, verdict_of
from kteardown.report.sections.fault_lines import broken_message, fault_sentence, uncompared_sentences
from kteardown.run import places
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=run.__doc__)(options.grouped(run))


def run(
    parts: options.Parts,
    kernels: options.Kernels,
    designed: options.Designed,
    execution: options.Execution,
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment (`kteardown list experiments`) or a path to a .toml file.",
            autocompletion=complete.experiments,
        ),
    ] = "",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Finish this interrupted run: its id or the beginning of it, its path, or `last`. The "
            "experiment cannot be changed then.",
            autocompletion=complete.runs,
        ),
    ] = None,
) -> None:
    """Run an experiment: build its kernels, boot them, measure, and print the report.

    Kernels in the cache are used again. Everything that is measured is kept in a run directory. --resume
    finishes a run that was interrupted or killed.

    Examples:

      kteardown run freezer --quick

      kteardown run freezer --clock wall --until verdict --budget 1h

      kteardown run freezer --clock both --quick --on slurm:perf

      kteardown run freezer --variant freezer-skip-exited --ablate --json r.json

      kteardown run freezer --set zombies=0:9000:3000 --source debian:7.2"""
    options.need_folders(execution.json_file, execution.markdown_file)
    places.check(execution.on)
    reporter = execution.reporter()
    if resume is not None:
        plain = (options.Parts(), options.Kernels(), options.Designed())
        if experiment or (parts, kernels, designed) != plain:
            raise InputError(
                "--resume: a run is resumed as it was planned, so no option may change the experiment",
                hint=f"run `kteardown run --resume {resume}`.",
            )
        found = find_runs(resume)
    else:
        if not experiment:
            raise InputError(
                "no experiment is named", hint="name one; `kteardown list experiments` shows them."
            )
        experiments = options.on_clocks(load_experiment(experiment), parts, kernels, designed)
        found = pipeline.start(experiments, reporter, ablate=kernels.ablate, command=command_line())
    finish(found, reporter, execution)


def finish(found: RunFolder, reporter: TerminalReporter, execution: options.Execution) -> None:
    """Boot the rest of the plan, print the report, write the files of ``execution``, apply the gate.

    Raises InputError, BuildError, GuestError, LabError, BrokenError, GateError.
    """
    reporter.note(f"run directory: {found.path}")
    on = places.remembered(found.path, execution.on)
    try:
        for run in found.runs:
            if found.both_clocks:
                reporter.note(f"{CLOCK_NAMES[load(run).experiment.design.clock]}:")
            pipeline.finish(run, reporter, jobs=execution.jobs, on=on)
            if run is not found.runs[-1]:
                reporter.note(f"done; its report: kteardown report {run.name}")
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish it with: kteardown run --resume {found.name}")
        raise
    material = material_of_folder(found)
    print_report(material)
    for file, form in ((execution.json_file, "json"), (execution.markdown_file, "markdown")):
        if file:
            options.write_text(file, written(material, form))
    for one in each_clock(material):
        check_broken(one.name, one.result)
    for one in each_clock(material):
        gate(one.name, one.result, one.workloads, execution.fail_on)


def gate(run: str, result: Result, workloads: Mapping[str, Workload], fail_on: options.FailOn | None) -> None:
    """Raise GateError if a headline metric, or for worse one of its points, has the verdict of ``fail_on``.

    A mixed metric is worse if one of its points goes in that direction. A run that is not finished and a
    point that could not be compared fail every gate. Raises BrokenError if a variant is broken.
    """
    if fail_on is None:
        return
    check_broken(run, result)
    suspected = [f for f in result.faults if f.status == "suspected" and result.is_asked_for(f.kernel)]
    if suspected:
        raise GateError(
            fault_sentence(suspected[0]),
            hint=f"boot it more often, or see the boots with `kteardown show {run}`.",
        )
    if result.unfinished:
        raise GateError(
            "the run is not finished, and a part of a run cannot pass",
            hint=f"finish it with `kteardown run --resume {run}`.",
        )
    if result.uncompared:
        raise GateError(
            f"{'; '.join(uncompared_sentences(result))}",
            hint=f"see the boots with `kteardown show {run}`; a point that was not compared cannot pass.",
        )
    _gate_metrics(run, result, workloads, fail_on)
    if fail_on is options.FailOn.inconclusive and result.metric_verdicts:
        return
    judged = [c for c in result.asked_for if is_headline(workloads, c.workload, c.metric)]
    failed = [c for c in judged if c.verdict == fail_on.value]
    if failed:
        first = failed[0]
        name = metric_name(workloads, first.workload, first.metric, first.statistic)
        place = f" at {point_text(first.point)}" if first.point else ""
        reason = f": {with_remedy(first.reason)}" if first.reason else f" ({change(first)})"
        raise GateError(
            f"{len(failed)} of {len(judged)} headline comparisons are {fail_on.value}, "
            f"the first: {first.variant}, {name}{place}{reason}",
            hint=f"see all of them with `kteardown report {run}`; --profile shows where the time is spent.",
        )


def check_broken(run: str, result: Result) -> None:
    """Raise BrokenError if a variant is broken."""
    message = broken_message(result)
    if message:
        boot = next(fault.boots[0] for variant in result.requested for fault in result.broken(variant))
        raise BrokenError(message, hint=f"see its console with `kteardown show {run} --console {boot}`.")


def _gate_metrics(
    run: str, result: Result, workloads: Mapping[str, Workload], fail_on: options.FailOn
) -> None:
    for group in headlines(result, workloads):
        for variant in variants(result):
            rows, metric = group.of(variant), verdict_of(result, group, variant)
            if metric is not None and rows and _matches(metric, rows, fail_on):
                raise GateError(
                    f"a headline metric is {metric.verdict}: {metric_sentence(group, rows, metric)}",
                    hint=f"see all of them with `kteardown report {run}`; --profile shows where the time is "
                    "spent.",
                )


def _excludes_better(c: Comparison) -> bool:
    """Return whether the whole interval of a point that is not the same is in the worse direction."""
    if c.ci is None or c.verdict == "same":
        return False
    return c.ci[0] > 1 if c.better == "lower" else c.ci[1] < 1


def _matches(metric: MetricVerdict, rows: Sequence[Comparison], fail_on: options.FailOn) -> bool:
    if metric.verdict == "mixed" and fail_on is options.FailOn.worse:
        return any(c.verdict == "worse" or _excludes_better(c) for c in rows)
    return metric.verdict == fail_on.value


def command_line() -> str:
    """Return the command as it was typed, for the run's ``environment.json``."""
    return shlex.join(["kteardown", *sys.argv[1:]])
