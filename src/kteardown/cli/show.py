"""``kteardown show``: the boots of a run, or what a workload, a series, an experiment or a kernel
is.

What is known of one of these is a dictionary, which is the JSON: its lists of dictionaries are the
tables of the text, with the words of ``heading`` and ``cell``.
"""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from kteardown.cli import complete, options
from kteardown.cli.rows import (
    Fields,
    boot_rows,
    boots_done,
    cell,
    heading,
    table_of,
)
from kteardown.cli.things import THINGS, kinds_of
from kteardown.door import LARGE
from kteardown.errors import InputError, failing
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, find_run, find_runs
from kteardown.rundir.snapshot import load_plan
from kteardown.rundir.writer import is_locked
from kteardown.visible import echo


def show(
    what: Annotated[
        str, typer.Argument(metavar="RUN|KIND", autocompletion=complete.runs_and_things)
    ] = "last",
    name: Annotated[str, typer.Argument(autocompletion=complete.things)] = "",
    console: int | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    kind = what if what in THINGS else None
    if kind is None and not name and console is None:
        kind, name = _thing(what)
    if kind is not None and name:
        fields = THINGS[kind][1](name)
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
        echo(
            json.dumps(
                [{"run": run.name, **row} for run in runs for row in boot_rows(run)], indent=1
            )
        )
        return
    for run in runs:
        _print_boots(run)


def _thing(name: str) -> tuple[str | None, str]:
    """Return the kind of thing that alone has this name, if no run has it."""
    kinds = kinds_of(name)
    if len(kinds) != 1:
        return None, ""
    try:
        find_runs(name)
    except InputError:
        return kinds[0], name
    return None, ""


def _find(what: str, name: str, kind: str | None) -> RunFolder:
    """Return the run ``what``. Raises InputError that names what else may be meant."""
    if kind is not None:
        raise InputError(f"no {kind} is named", hint=f"name one, as in: kteardown show {kind} NAME")
    if name:
        raise InputError(
            f"{what!r} is not one of {', '.join(THINGS)}",
            hint=f"name one of these, as in: kteardown show workload {name}",
        )
    kinds = kinds_of(what)
    words = " or ".join(f"`kteardown show {thing} {what}`" for thing in kinds)
    try:
        folder = find_runs(what)
    except InputError as error:
        if kinds:
            raise InputError(f"{what!r} is not a run", hint=f"use {words}.") from error
        raise
    if kinds:
        echo(f"{what!r} is a run; {words} shows what else has this name", err=True)
    return folder


def _print_fields(fields: Fields, out: Console) -> None:
    """Print plain fields as lines, and lists as tables; empty ones are left out."""
    out.print(f"{fields['name']}: {fields.get('summary', '')}".rstrip(": "), style="bold")
    for name, value in fields.items():
        if isinstance(value, list) and value:
            out.print()
            out.print(heading(name), style="bold")
            out.print(table_of(value, list(value[0])))
        elif not isinstance(value, list) and name not in ("name", "summary"):
            out.print(f"{heading(name)}: {cell(value) or 'none'}")


def _print_boots(run: RunDir) -> None:
    rows = boot_rows(run)
    out = options.output()
    out.print(f"{run.path}: {boots_done(rows)}", soft_wrap=True)
    if rows:
        out.print(table_of(rows, list(rows[0])))
    if is_locked(run):
        out.print("the run is being measured now")
    elif any(row["outcome"] == "to do" for row in rows):
        out.print(f"finish the run with: kteardown run --resume {run.name}", soft_wrap=True)


def _print_console(run: RunDir, boot: int) -> None:
    record = next((record for record in run.boots() if record.boot == boot), None)
    if record is None:
        planned = boot in {planned.index for planned in load_plan(run).boots}
        raise InputError(
            f"boot {boot} of {run.name} has not ended"
            if planned
            else f"{run.name} has no boot {boot}",
            hint=f"choose another boot; `kteardown show {run.name}` lists them.",
        )
    file = run.console_file(boot, record.attempt)
    hint = "restore the file from a copy of the run; nothing else of the run needs it."
    with failing(f"{file}: cannot be read", hint=hint):
        content = file.content(LARGE)
    if sys.stdout.isatty():
        # A serial console ends its lines with \r\n.
        echo(content.decode("utf-8", "replace").replace("\r\n", "\n"), nl=False)
    else:
        sys.stdout.buffer.write(content)
