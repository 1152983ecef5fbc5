"""``kteardown gate``: whether a kernel is worse than a kept run or a branch, by more than a
margin."""

from functools import partial
from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.flows.gate import GateQuestion, judge_kernel
from kteardown.inputs.options import Overrides
from kteardown.visible import echo, visible


def gate(
    asked: Overrides,
    execution: options.Execution,
    experiment: options.ExperimentArg,
    against: Annotated[str, typer.Option(metavar="RUN|REV", autocompletion=complete.runs)],
    margin: Annotated[list[str] | None, typer.Option(metavar="[METRIC=]PERCENT")] = None,
) -> None:
    runner = execution.runner(execution.begin())
    answer = judge_kernel(GateQuestion.of(experiment, asked, against, margin or ()), runner)
    text = visible("\n".join(answer.text))
    gates = partial(answer.check, execution.fail_on or "worse")
    execution.publish(answer.publication(), lambda: echo(text), gates)
