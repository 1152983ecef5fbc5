"""``kteardown show``: list the boots of a run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table

from kteardown.cli import options
from kteardown.errors import InputError
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import find_run, find_runs
from kteardown.rundir.snapshot import load_plan


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=show.__doc__)(show)


def show(
    run: options.RunArg = "last",
    console: Annotated[
        int | None, typer.Option("--console", help="Print the console of the boot with this number.")
    ] = None,
) -> None:
    """Show the boots of a run, the outcome of each, and the file of its console."""
    if console is not None:
        _print_console(find_run(run), console)
        return
    for found in find_runs(run).runs:
        _print_boots(found)


def _print_boots(found: RunDir) -> None:
    planned = load_plan(found)
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
        planned = boot in {planned.index for planned in load_plan(found).boots}
        raise InputError(
            f"boot {boot} of {found.name} has not ended" if planned else f"{found.name} has no boot {boot}",
            hint=f"choose another boot; `kteardown show {found.name}` lists them.",
        )
    sys.stdout.buffer.write(found.console_path(boot, record.attempt).read_bytes())
