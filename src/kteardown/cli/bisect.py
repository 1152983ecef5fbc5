"""``kteardown bisect``: which commits made a metric better or worse, or broke the kernel."""

from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.errors import InputError
from kteardown.flows.bisection.flow import BisectionQuestion, bisection
from kteardown.inputs.options import Designed, Kernels, Scripted, Span
from kteardown.visible import echo


def bisect(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    span: Span,
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    outcome: Annotated[str, typer.Option(metavar="KIND")] = "",
    judge: Annotated[str, typer.Option(metavar="REV")] = "",
) -> None:
    runner = execution.runner(execution.begin("a bisection", ("page",)))
    if execution.fail_on:
        raise InputError("a bisection has no --fail-on", hint="read its answer with --json.")
    question = BisectionQuestion(workload, span, kernels, designed, scripted, outcome, judge)
    with bisection(question, runner) as started:
        if judge:
            raise typer.Exit({True: 1, False: 0, None: 125}[started.is_bad()])
        publication, text = started.find()
    execution.publish(publication, lambda: echo(text, nl=False), lambda: None)
