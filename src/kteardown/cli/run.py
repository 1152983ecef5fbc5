"""``kteardown run``: an experiment, all stages."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import GateError, InputError
from kteardown.records.store import RunDir
from kteardown.report import json as result_json
from kteardown.report import markdown, text
from kteardown.report.reference import Reference, load_reference
from kteardown.spec.load import load_workloads
from kteardown.spec.model import Experiment, Workload
from kteardown.stats.results import Result


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=run.__doc__)(run)


def run(
    experiment: Annotated[
        str,
        typer.Argument(help="A shipped experiment (`kteardown list experiments`) or a path to a .toml file."),
    ] = "",
    clock: options.ClockOption = None,
    quick: options.QuickOption = False,
    source: options.SourceOption = None,
    variant: options.VariantOption = None,
    workload: options.WorkloadOption = None,
    assignments: options.SetOption = None,
    seeds: options.SeedsOption = None,
    boots: options.BootsOption = None,
    repetitions: options.RepetitionsOption = None,
    arch: options.ArchOption = None,
    cpus: options.CpusOption = None,
    memory_mb: options.MemoryOption = None,
    jobs: options.JobsOption = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Finish the plan of this run (`last` is the newest)."),
    ] = None,
    json_file: options.JsonOption = None,
    markdown_file: options.MarkdownOption = None,
    fail_on: options.FailOnOption = None,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Run an experiment: build its kernels, boot them, measure, and print the table.

    What was built before is reused; an interrupted run is finished with --resume.

    Examples:

      kteardown run freezer --quick

      kteardown run freezer --clock wall --boots 20 --source debian:7.2

      kteardown run freezer --set zombies=0:9000:3000 --variant freezer-skip-exited --json r.json
    """
    options.need_folders(json_file, markdown_file)
    reporter = options.reporter(verbose, quiet)
    chosen = options.Chosen(
        clock, source, arch, boots, seeds, repetitions, cpus, memory_mb, variant, workload, assignments, quick
    )
    if resume is not None:
        if experiment or chosen != options.Chosen():
            raise InputError(
                "a run is resumed as it was planned: --resume takes nothing that changes the experiment",
                hint=f"kteardown run --resume {resume}",
            )
        done = pipeline.find_run(resume)
    else:
        if not experiment:
            raise InputError("which experiment?", hint="`kteardown list experiments` shows them.")
        done = start(chosen.experiment(experiment), reporter)
    finish(done, reporter, jobs, json_file, markdown_file, fail_on)


def start(experiment: Experiment, reporter: TerminalReporter) -> RunDir:
    """Build what the experiment needs and make its run directory."""
    study = pipeline.prepare(experiment)
    images = pipeline.build_kernels(study, reporter)
    return pipeline.begin(study, images, command_line())


def finish(
    done: RunDir,
    reporter: TerminalReporter,
    jobs: int | None,
    json_file: Path | None,
    markdown_file: Path | None,
    fail_on: options.FailOn | None,
) -> None:
    """Boot what is left, print the report, write the files that were asked for, hold the gate."""
    reporter.note(f"run directory: {done.path}")
    try:
        pipeline.measure(done, reporter, jobs=jobs)
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish it with: kteardown run --resume {done.name}")
        raise
    result = pipeline.conclude(done)
    show_result(done, result)
    if json_file:
        options.write_text(json_file, result_json.dumps(result))
    if markdown_file:
        options.write_text(markdown_file, markdown.render(result, *context_of(done)))
    gate(result, context_of(done)[0], fail_on)


def show_result(done: RunDir, result: Result) -> None:
    """Print the report on standard output."""
    workloads, reference = context_of(done)
    text.render(result, workloads, reference, options.output())


def gate(result: Result, workloads: Mapping[str, Workload], fail_on: options.FailOn | None) -> None:
    """Raise GateError where a headline comparison has the verdict that was not to be."""
    if fail_on is None:
        return
    judged = [c for c in result.comparisons if workloads[c.workload].metrics[c.metric].headline]
    failed = [c for c in judged if c.verdict == fail_on.value]
    if failed:
        first = failed[0]
        point = " ".join(f"{name}={value}" for name, value in first.point.items())
        raise GateError(
            f"{len(failed)} of {len(judged)} headline comparisons are {fail_on.value}, "
            f"the first: {first.variant} {first.metric} at {point}: {first.reason}"
        )


def command_line() -> str:
    """The command as it was typed, to be repeated from anywhere."""
    return shlex.join(["kteardown", *sys.argv[1:]])


def context_of(done: RunDir) -> tuple[dict[str, Workload], Reference | None]:
    """What a report needs beside the result: the workloads, and the posting's figures."""
    experiment = pipeline.load_experiment_of(done)
    return load_workloads(experiment), load_reference(experiment.reference)
