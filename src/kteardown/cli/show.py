"""``kteardown show``: the boots of a run, or what a workload, a series, an experiment or a kernel is."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kteardown.cli import complete, options
from kteardown.cli.descriptions import Fields, Thing, cell, describe, heading, kinds_of
from kteardown.errors import InputError
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, find_run, find_runs
from kteardown.rundir.snapshot import load_plan
from kteardown.visible import echo


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|KIND",
            help="A run: its id or the beginning of it, its path, or `last`; or workload, series, experiment "
            "or kernel, followed by a name.",
            autocompletion=complete.runs_and_things,
        ),
    ] = "last",
    name: Annotated[
        str,
        typer.Argument(
            help="The workload, series, experiment or kernel (its key in the cache, or a source).",
            autocompletion=complete.things,
        ),
    ] = "",
    console: Annotated[
        int | None, typer.Option("--console", help="Print the console of the boot with this number.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the boots of a run, or what a workload, a series, an experiment or a kernel is.

    Of a run: each boot with its outcome and the file of its console. Of a workload: its parameters and
    metrics in words, and which files of the kernel it executes. Of a series: its patches, what they change,
    and the workloads that execute that. Of an experiment: its points, and its last result. Of a kernel: what
    it was built from.

    Examples:

      kteardown show last

      kteardown show workload zombies

      kteardown show series freezer-skip-exited --json
    """
    kind = next((kind for kind in Thing if kind.value == what), None)
    if kind is not None and name:
        fields = describe(kind, name)
        if as_json:
            echo(json.dumps(fields, indent=1))
        else:
            _print_fields(fields, options.output())
        return
    folder = _find(what, name, kind)
    if console is not None:
        _print_console(find_run(what), console)
        return
    runs = folder.runs
    if as_json:
        boots = [{"run": run.name, **row} for run in runs for row in _rows(run)]
        echo(json.dumps(boots, indent=1))
        return
    for found in runs:
        _print_boots(found)


def _find(what: str, name: str, kind: Thing | None) -> RunFolder:
    """Return the run ``what``. Raises InputError that names what else may be meant."""
    if kind is not None:
        raise InputError(
            f"no {kind.value} is named", hint=f"name one, as in: kteardown show {kind.value} NAME"
        )
    if name:
        raise InputError(
            f"{what!r} is not one of {', '.join(Thing)}",
            hint=f"name one of these, as in: kteardown show workload {name}",
        )
    kinds = kinds_of(what)
    words = " or ".join(f"`kteardown show {one.value} {what}`" for one in kinds)
    try:
        found = find_runs(what)
    except InputError as error:
        if kinds:
            raise InputError(f"{what!r} is not a run", hint=f"use {words}.") from error
        raise
    if kinds:
        echo(f"{what!r} is a run; {words} shows what else has this name", err=True)
    return found


def _print_fields(fields: Fields, out: Console) -> None:
    """Print plain fields as lines, and lists as tables; empty ones are left out."""
    out.print(f"{fields['name']}: {fields.get('summary', '')}".rstrip(": "), style="bold")
    for name, value in fields.items():
        if isinstance(value, list) and value:
            out.print()
            out.print(heading(name), style="bold")
            table = Table(box=None, pad_edge=False)
            for column in value[0]:
                table.add_column(heading(column), overflow="fold")
            for row in value:
                table.add_row(*map(cell, row.values()))
            out.print(table)
        elif not isinstance(value, list) and name not in ("name", "summary"):
            out.print(f"{heading(name)}: {cell(value) or 'none'}")


def _print_boots(found: RunDir) -> None:
    planned = load_plan(found)
    ended = {boot.boot: boot for boot in found.boots()}
    out = options.output()
    out.print(f"{found.path}: {len(ended)} of {len(planned.boots)} boots done", soft_wrap=True)
    table = Table("boot", "block", "kernel", "outcome", "seconds", "detail", "console", box=None)
    for row in _rows(found):
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    out.print(table)
    if len(ended) < len(planned.boots):
        out.print(f"finish it with: kteardown run --resume {found.name}", soft_wrap=True)


def _rows(found: RunDir) -> list[Fields]:
    """Return what is known of each boot of the plan; None where it has not ended."""
    ended = {boot.boot: boot for boot in found.boots()}
    rows: list[Fields] = []
    for boot in load_plan(found).boots:
        record = ended.get(boot.index)
        row: Fields = {"boot": boot.index, "block": boot.block, "kernel": boot.kernel, "outcome": "to do"}
        row |= dict.fromkeys(("seconds", "detail", "console"))
        if record is not None:
            path = found.console_path(boot.index, record.attempt).relative_to(found.path)
            row |= {"outcome": record.end.outcome, "seconds": f"{record.end.duration_s:.1f}"}
            row |= {"detail": record.end.detail, "console": str(path)}
        rows.append(row)
    return rows


def _print_console(found: RunDir, boot: int) -> None:
    record = next((record for record in found.boots() if record.boot == boot), None)
    if record is None:
        planned = boot in {planned.index for planned in load_plan(found).boots}
        raise InputError(
            f"boot {boot} of {found.name} has not ended" if planned else f"{found.name} has no boot {boot}",
            hint=f"choose another boot; `kteardown show {found.name}` lists them.",
        )
    file = found.console_path(boot, record.attempt)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read: {error.strerror}",
            hint="restore the file from a copy of the run; nothing else of the run needs it.",
        ) from error
    if sys.stdout.isatty():
        # A serial console ends its lines with \r\n.
        echo(content.decode("utf-8", "replace").replace("\r\n", "\n"), nl=False)
    else:
        sys.stdout.buffer.write(content)
