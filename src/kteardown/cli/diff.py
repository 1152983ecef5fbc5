"""``kteardown diff``: two results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.errors import InputError
from kteardown.records.environment import guest_differences
from kteardown.records.store import RunDir
from kteardown.report.difference import Difference, Row, Side, Told, hold, read


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=diff.__doc__)(diff)


def diff(
    a: Annotated[
        str,
        typer.Argument(
            help="A run (its id, its beginning, its path, `last`) or a result.json.",
            autocompletion=complete.runs,
        ),
    ],
    b: Annotated[
        str, typer.Argument(help="What to hold against it, likewise.", autocompletion=complete.runs)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Hold two results against each other: a reviewer's against an author's, one machine's against another's.

    First what differs in the environment and in the kernels, then every comparison that both have: each
    side's change with its interval and its verdict, whether the intervals overlap, and the base of B
    over the base of A. Exits with 0 whatever it finds.

    Examples:

      kteardown diff 20260301-123059 last

      kteardown diff last ./from-the-author/result.json --json
    """
    one, other = _found(a), _found(b)
    guests = guest_differences(one[1], other[1]) if one[1] and other[1] else []
    found = hold(one[0], other[0], (a, b), tuple(guests))
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        _print(found, options.output())


def _found(name: str) -> tuple[Side, RunDir | None]:
    """The result that ``name`` stands for, and the run where it is one of ours."""
    path = Path(name)
    if path.is_file():
        try:
            return read(path.read_bytes(), name), None
        except OSError as error:
            raise InputError(
                f"{name}: cannot be read: {error.strerror}", hint="name a file that you may read."
            ) from error
    run = pipeline.find_run(name)
    if not run.result_file.is_file():
        pipeline.conclude(run)
    return read(run.result_file.read_bytes(), str(run.result_file)), run


def _print(found: Difference, out: Console) -> None:
    out.print(f"A: {found.a}\nB: {found.b}\n", highlight=False, markup=False, soft_wrap=True)
    _sentences(out, "environment, A / B", found.environment, "nothing that can matter differs")
    _sentences(out, "kernels, A / B", found.kernels, "the same")
    for title in dict.fromkeys(_title(row) for row in found.rows):
        _table(out, title, [row for row in found.rows if _title(row) == title])
    _sentences(out, "only in A", found.only_a)
    _sentences(out, "only in B", found.only_b)
    out.print(_summary(found.rows), highlight=False, markup=False, soft_wrap=True)


def _sentences(out: Console, title: str, sentences: Sequence[str], otherwise: str = "") -> None:
    if sentences or otherwise:
        text = "\n".join(f"  {sentence}" for sentence in sentences or [otherwise])
        out.print(f"{title}:\n{text}\n", highlight=False, markup=False, soft_wrap=True)


def _title(row: Row) -> str:
    statistic = "" if row.statistic == "median" else f", {row.statistic}"
    return f"{row.workload}: {row.metric}{statistic}, {row.variant} against base"


def _table(out: Console, title: str, rows: Sequence[Row]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("point", "A", "verdict", "B", "verdict", "intervals", "base B / A"):
        table.add_column(name, justify="right" if name in ("A", "B", "base B / A") else "left")
    for row in rows:
        point = " ".join(f"{name}={value}" for name, value in row.point.items())
        agree = {True: "overlap", False: "apart", None: "-"}[row.agree]
        base = "-" if row.base_ratio is None else f"{row.base_ratio:.3f}"
        table.add_row(point, _told(row.a), row.a.verdict, _told(row.b), row.b.verdict, agree, base)
    out.print(table, highlight=False)
    out.print()


def _told(told: Told) -> str:
    if told.ratio is None:
        return "-"
    interval = "" if told.ci is None else " [{:+.2f}, {:+.2f}]".format(*(100 * (x - 1) for x in told.ci))
    # Brackets are markup to the table.
    return f"{100 * (told.ratio - 1):+.2f}%{interval}".replace("[", r"\[")


def _summary(rows: Sequence[Row]) -> str:
    if not rows:
        return "no comparison is in both"
    apart = sum(row.agree is False for row in rows)
    other = sum(not row.same_verdict for row in rows)
    return (
        f"{len(rows)} comparisons in both: the intervals of {apart} lie apart, the verdicts of {other} differ"
    )
