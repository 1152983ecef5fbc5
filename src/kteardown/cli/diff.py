"""``kteardown diff``: compare two results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.errors import InputError
from kteardown.report.diff import Difference, Side, compare_results, read
from kteardown.report.diff_tables import comparison_tables, passages, summary
from kteardown.report.formats import json as result_json
from kteardown.report.formats import text
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import guest_differences
from kteardown.rundir.find import find_run


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=diff.__doc__)(diff)


def diff(
    a: Annotated[
        str,
        typer.Argument(
            help="A run (its id or the beginning of it, its path, or `last`) or a result.json file.",
            autocompletion=complete.runs,
        ),
    ],
    b: Annotated[
        str,
        typer.Argument(help="The run or file to compare A with.", autocompletion=complete.runs),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two results, such as those of an author and a reviewer, or of two machines.

    Prints the differences between the environments and between the kernels, then every comparison that both
    have: the change on each side with its interval and verdict, whether the intervals overlap, and the base
    of B divided by the base of A. The exit code is 0 also if the results differ.

    Examples:

      kteardown diff 20260301-123059 last

      kteardown diff last ./from-the-author/result.json --json
    """
    one, other = _side(a), _side(b)
    guests = guest_differences(one[1], other[1]) if one[1] and other[1] else []
    found = compare_results(one[0], other[0], (a, b), tuple(guests))
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        print_difference(found, options.output())


def _side(name: str) -> tuple[Side, RunDir | None]:
    """Return the result called ``name``, and its run unless ``name`` is a file."""
    path = Path(name)
    if path.is_file():
        try:
            return read(path.read_bytes(), name), None
        except OSError as error:
            raise InputError(
                f"{name}: cannot be read: {error.strerror}", hint="name a file that you can read."
            ) from error
    run = find_run(name)
    return read(result_json.dumps(pipeline.result_of(run)).encode(), str(run.result_file)), run


def print_difference(found: Difference, out: Console) -> None:
    """Print a difference: the environments, the kernels, every comparison, and a summary."""
    out.print(f"A: {found.a}\nB: {found.b}", highlight=False, markup=False, soft_wrap=True)
    for title, sentences in passages(found):
        lines = "\n".join(f"  {sentence}" for sentence in sentences)
        out.print(f"\n{title}:\n{lines}", highlight=False, markup=False, soft_wrap=True)
    for table in comparison_tables(found):
        text.show(table, out)
    out.print(f"\n{summary(found.rows)}", highlight=False, markup=False, soft_wrap=True)
