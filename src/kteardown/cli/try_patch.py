"""``kteardown try``: from a mail to one page that says what the patch does."""

import sys
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import typer

from kteardown.cli import complete, options
from kteardown.errors import BuildError, GuestError
from kteardown.inputs.options import Designed, Kernels, Scripted
from kteardown.patches import given
from kteardown.visible import echo


def try_patch(
    what: Annotated[list[str], typer.Argument(metavar="PATCH...")],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    workload: Annotated[list[str] | None, typer.Option(autocompletion=complete.workloads)] = None,
    script: Annotated[list[str] | None, typer.Option(metavar="SCRIPT")] = None,
    source: Annotated[list[str] | None, typer.Option(autocompletion=complete.sources)] = None,
    full: Annotated[bool, typer.Option("--full")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    form: Annotated[Literal["b4-check"] | None, typer.Option("--format")] = None,
) -> None:
    for word in what:
        given.check(word)
    # Imported here, since they take a second: a wrong name is answered before.
    from kteardown.cli.b4_check import check_for_b4
    from kteardown.flows.try_series.experiments import scripts_in
    from kteardown.flows.try_series.forecast import with_forecast
    from kteardown.flows.try_series.measure import SeriesMeasurement, raise_for
    from kteardown.flows.try_series.prepare import prepare
    from kteardown.report import try_page

    if form:
        return check_for_b4(what)
    runner = execution.runner(execution.begin("try", ("answers", "page")))
    named = [*(workload or ()), *scripts_in(script or ())]
    quick = replace(designed, quick=designed.quick or not full)
    tried = prepare(what, kernels, quick, named, source or [], runner, fetch=not dry_run)
    if dry_run and tried.error is None:
        tried = with_forecast(tried, kernels, quick, runner, piped="-" in what)
    text = try_page.plan(tried)
    # On a terminal, the error with which the command ends stands right below the page.
    above_error = tried.error is not None and (not dry_run or sys.stdout.isatty())
    echo(try_page.plan(tried, with_answer=not above_error), err=not dry_run, nl=False)
    show = partial(echo, "", nl=False)
    if not dry_run and tried.error is None:
        wanted = replace(kernels, config=[*(kernels.config or ()), *tried.config.fragments])
        try:
            tried = SeriesMeasurement(wanted, quick, scripted, runner).measure(tried)
        except (
            BuildError,
            GuestError,
        ) as error:  # An answer about the series, which the files keep.
            tried = replace(tried, error=error)
        text = try_page.page(tried)
        shown = try_page.first_page(tried, text) if sys.stdout.isatty() else text
        show = partial(echo, shown, nl=False)
    execution.publish(
        try_page.publication(tried, text), show, partial(raise_for, tried, execution.fail_on)
    )
