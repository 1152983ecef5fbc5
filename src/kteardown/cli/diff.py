"""``kteardown diff`` and ``analyse``: compare two results, or analyse a run again and compare
both."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kteardown.cli import complete, options
from kteardown.door import LARGE, Entry
from kteardown.errors import InputError, failing
from kteardown.model.result import Result
from kteardown.report import saved
from kteardown.report.diff import (
    Difference,
    compare_results,
    comparison_tables,
    passages,
    summary,
)
from kteardown.report.formats import text
from kteardown.report.output import results_in
from kteardown.report.result_file import in_words, result_of
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import guest_differences
from kteardown.rundir.find import find_runs
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import locked
from kteardown.visible import echo


def diff(
    a: Annotated[str, typer.Argument(autocompletion=complete.runs)],
    b: Annotated[str, typer.Argument(autocompletion=complete.runs)],
    pairs: Annotated[list[str] | None, typer.Option("--map", metavar="VARIANT=VARIANT")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    mapping = dict(map(_mapped, pairs or ()))
    differences = {}
    for clock, first, second in _pairs(a, b):
        guests = guest_differences(first.run, second.run) if first.run and second.run else []
        differences[clock] = compare_results(
            first.side, second.side, (first.name, second.name), tuple(guests), mapping
        )
    if as_json:
        fields = {
            clock: difference.model_dump(mode="json") for clock, difference in differences.items()
        }
        echo(json.dumps(fields if len(differences) > 1 else next(iter(fields.values())), indent=1))
        return
    for difference in differences.values():
        print_difference(difference, options.output())


@dataclass(frozen=True)
class _Named:
    """A result under the name by which it was given, and its run unless it was read from a file."""

    name: str
    side: Result
    run: RunDir | None = None


def _pairs(a: str, b: str) -> Iterator[tuple[str, _Named, _Named]]:
    """Yield the clock and the results to compare: where a side has both clocks, those of the same
    clock.

    Raises InputError if the sides have no clock in common.
    """
    a_results = _sides(a)
    b_results = _sides(b)
    if len(a_results) == len(b_results) == 1:
        yield a_results[0].side.clock, a_results[0], b_results[0]
        return
    of_clock = {b_result.side.clock: b_result for b_result in b_results}
    shared = [a_result for a_result in a_results if a_result.side.clock in of_clock]
    if not shared:
        raise InputError(
            f"{a} and {b} were not measured on the same clock",
            hint="name two runs on the same clock.",
        )
    for a_result in shared:
        yield a_result.side.clock, a_result, of_clock[a_result.side.clock]


def _sides(name: str) -> list[_Named]:
    """Return the results called ``name``, of which a run on both clocks has two."""
    path = Path(name)
    if path.is_file():
        with failing(f"{name}: cannot be read", hint="name a file that you can read."):
            return [
                _Named(name, side)
                for side in results_in(Entry.of(path.resolve()).content(LARGE), name)
            ]
    if path.suffix == ".json" and not path.exists():
        raise InputError(f"{name}: there is no such file", hint="name a result.json, or a run.")
    folder = find_runs(name)
    return [
        _Named(
            run.name if folder.both_clocks else name,
            in_words(saved.result_of(run), load(run).workloads),
            run,
        )
        for run in folder.runs
    ]


def _mapped(text: str) -> tuple[str, str]:
    """Parse ``VARIANT=VARIANT``. Raises InputError."""
    variant_a, equals, variant_b = text.partition("=")
    if not variant_a or not equals or not variant_b:
        raise InputError(
            f"--map {text}: expected a variant of A, =, and a variant of B",
            hint="write it as in --map v1=v2.",
        )
    return variant_a, variant_b


def print_difference(difference: Difference, out: Console) -> None:
    """Print a difference: the environments, the kernels, every comparison, and a summary."""
    for sentence in difference.revisions:
        out.print(f"{sentence}.\n", soft_wrap=True, style="bold")
    out.print(f"A: {difference.a}\nB: {difference.b}", soft_wrap=True)
    for title, sentences in passages(difference):
        lines = "\n".join(f"  {sentence}" for sentence in sentences)
        out.print(f"\n{title}:\n{lines}", soft_wrap=True)
    for table in comparison_tables(difference):
        text.show(table, out)
    out.print(f"\n{summary(difference.rows)}", soft_wrap=True)


def analyse(run: options.RunArg = "last") -> None:
    for directory in find_runs(run).runs:
        with locked(directory):
            _analyse(directory)


def _analyse(directory: RunDir) -> None:
    snapshot = load(directory)
    out = options.output()
    from kteardown import pipeline  # Here, so that `diff` does not import what boots.
    from kteardown.analysis.conclude import conclude

    if saved.saved_result(directory) is None:
        if directory.result_file.exists():
            reason = saved.damage(directory) or "boots have ended since it was written"
            out.print(
                f"kteardown replaces the saved result and does not compare it: {reason}",
                soft_wrap=True,
            )
        pipeline.analyse_and_save(snapshot)
        out.print(f"wrote {directory.result_file}", soft_wrap=True)
        return
    before = directory.result_file.content(LARGE)
    result = conclude(snapshot)[0]
    folders = (directory.folder / f"analysis-{number}" for number in count(1))
    folder = next(folder for folder in folders if not folder.exists())
    saved.write(directory, result, snapshot, folder)
    file = folder / directory.result_file.name
    out.print(f"wrote {file}", soft_wrap=True)
    if file.content(LARGE) == before:
        out.print("nothing changed: both results are identical byte for byte")
        return
    old = result_of(before, str(directory.result_file))
    new = result_of(file.content(LARGE), str(file))
    print_difference(compare_results(old, new, ("the saved result", "this analysis")), out)
