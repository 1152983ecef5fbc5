"""``kteardown show``: what a run directory holds, boot by boot."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table

from kteardown.cli import options
from kteardown.errors import InputError
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import find_run
from kteardown.rundir.snapshot import load


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=show.__doc__)(show)


def show(
    run: options.RunArg = "last",
    console: Annotated[int | None, typer.Option("--console", help="Print the console of this boot.")] = None,
) -> None:
    """Show the boots of a run, how each ended, and where its console is."""
    found = find_run(run)
    if console is not None:
        _print_console(found, console)
        return
    planned = load(found).plan
    ended = {boot.boot: boot for boot in found.boots()}
    out = options.output()
    out.print(
        f"{found.path}: {len(ended)} of {len(planned.boots)} boots done", highlight=False, soft_wrap=True
    )
    table = Table("boot", "block", "kernel", "outcome", "seconds", "detail", "console", box=None)
    for boot in planned.boots:
        record = ended.get(boot.index)
        row = [str(boot.index), str(boot.block), boot.kernel]
        if record is None:
            table.add_row(*row, "to do", "", "", "")
            continue
        end = record.end
        path = found.console_path(boot.index, record.attempt).relative_to(found.path)
        table.add_row(*row, end.outcome, f"{end.duration_s:.1f}", end.detail, str(path))
    out.print(table)
    if len(ended) < len(planned.boots):
        out.print(f"finish it with: kteardown run --resume {found.name}", highlight=False, soft_wrap=True)


def _print_console(found: RunDir, boot: int) -> None:
    record = next((record for record in found.boots() if record.boot == boot), None)
    if record is None:
        raise InputError(
            f"boot {boot} of {found.name} has not ended", hint="`kteardown show` lists its boots."
        )
    sys.stdout.buffer.write(found.console_path(boot, record.attempt).read_bytes())
