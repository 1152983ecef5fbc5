"""``kteardown history``: the metrics of all runs, over kernel releases and time."""

from typing import Annotated

import typer
from rich.console import Console

from kteardown.cli import complete, options
from kteardown.extras import need
from kteardown.inputs.assignments import parse_assignments
from kteardown.model.clock import Clock
from kteardown.report.formats import text
from kteardown.rundir.find import all_runs
from kteardown.visible import echo
from kteardown_history import tables
from kteardown_history.lines import LEAST, History, HistoryFilter, Order, history_of, nothing_found


def history(
    experiment: Annotated[str | None, typer.Argument(autocompletion=complete.experiments)] = None,
    workload: Annotated[str | None, typer.Option(autocompletion=complete.workloads)] = None,
    metric: str | None = None,
    point: Annotated[list[str] | None, typer.Option(metavar="PARAM=VALUES")] = None,
    kernel: Annotated[str | None, typer.Option(autocompletion=complete.series)] = None,
    clock: Annotated[Clock | None, typer.Option(metavar="CLOCK")] = None,
    order: Order = "release",
    least: Annotated[float, typer.Option(metavar="PERCENT", min=0)] = 100 * LEAST,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    need("history", "`history`")
    wanted = HistoryFilter(
        experiment=experiment,
        workload=workload,
        metric=metric,
        kernel=kernel,
        clock=clock,
        points=parse_assignments(point or (), "--point"),
    )
    runs = all_runs()
    matching = history_of(runs, wanted, order=order, least=least / 100)
    if not matching.lines and wanted != HistoryFilter():
        raise nothing_found(history_of(runs, HistoryFilter()).lines, wanted)
    if as_json:
        echo(matching.model_dump_json(indent=1, by_alias=True))
    else:
        show(matching, options.output(), every_metric=metric is not None)


def show(matching: History, out: Console, *, every_metric: bool) -> None:
    """Print the lines of ``matching`` that have at least two figures.

    ``every_metric``: also those whose metric is not a headline metric.
    """
    plain = out.options.ascii_only
    shown = tables.worth_showing(matching, every_metric=every_metric)
    for _, table in tables.tables_of(shown, plain=plain):
        text.show(table, out)
    for sentence in tables.left_out(matching, shown):
        out.print(sentence, style="dim", soft_wrap=True)
