"""Rows of tables: what several verbs print of runs, boots, kernels and workloads."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, stress_tests, words
from kteardown.coverage.propose import propose
from kteardown.errors import KteardownError
from kteardown.inputs.load import (
    load_workload,
)
from kteardown.kernels.cache import CacheEntry
from kteardown.paths import shipped_table
from kteardown.report import saved
from kteardown.report.formatting import share
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load, load_plan

Fields = dict[str, Any]


_HEADINGS = shipped_table("cli/texts/headings")


def table_of(rows: Sequence[Fields], names: Sequence[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in names:
        table.add_column(heading(name), overflow="fold")
    for row in rows:
        table.add_row(*(cell(row[name]) for name in names))
    return table


def boots_done(rows: Sequence[Fields]) -> str:
    """Return how many boots of ``boot_rows`` are done, failed, and are left."""
    outcomes = Counter(row["outcome"] for row in rows)
    planned = outcomes.total()
    left = outcomes.pop("to do", 0)
    failed = outcomes.total() - outcomes["ok"]
    text = f"{outcomes.total()} of {planned} boots done{f', {failed} failed' if failed else ''}"
    return f"{text}, {left} left" if left else text


def boot_rows(run: RunDir) -> list[Fields]:
    """Return what is known of each boot of the plan; None where it has not ended."""
    ended = {boot.boot: boot for boot in run.boots()}
    rows: list[Fields] = []
    for boot in load_plan(run).boots:
        record = ended.get(boot.index)
        row: Fields = {
            "boot": boot.index,
            "block": boot.block,
            "kernel": boot.kernel,
            "outcome": "to do",
        }
        row |= dict.fromkeys(("seconds", "detail", "console"))
        if record is not None:
            console = "/".join(run.console_file(boot.index, record.attempt).names[-2:])
            row |= {"outcome": record.end.outcome, "seconds": f"{record.end.duration_s:.1f}"}
            row |= {"detail": record.end.detail, "console": console}
        rows.append(row)
    return rows


def heading(key: str) -> str:
    return str(_HEADINGS.get(key, key.replace("_", " ")))


def pick(of: object, *names: str) -> Fields:
    return {name: getattr(of, name) for name in names}


def cell(value: Any) -> str:
    """Return a value of the JSON as text: shares in percent, values with names as
    ``make=shared,own``."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={cell(of).replace(', ', ',')}" for name, of in value.items() if of)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value))
    if isinstance(value, float):
        return share(value)
    return "" if value is None else str(value)


def covering(changed: Sequence[ChangedFunction], coverage: CoverageMap) -> list[Fields]:
    """Return the workloads that execute functions of ``changed``, those that execute most of it
    first."""
    rows: list[Fields] = []
    for proposal in propose(changed, coverage, stress_tests=stress_tests()).proposals:
        workload = load_workload(proposal.workload, str(Path.cwd()))
        rows.append(
            {
                "name": proposal.workload,
                "point": words(proposal.params, workload) if proposal.functions else "",
                "in_stretch": len(proposal.functions),
                "calls": proposal.calls,
                "share": proposal.share if proposal.functions else None,
                "only_outside": len(proposal.outside),
                "most_of_it": [function.name for function in list(proposal.functions)[:3]],
            }
        )
    return rows


def kernel_fields(entry: CacheEntry) -> Fields:
    fields = pick(entry, "release", "arch", "source", "series")
    used = entry.last_used.strftime("%Y-%m-%d %H:%M")
    return {"name": entry.key, **fields, "size_mb": entry.size_kb // 1024, "last_used": used}


def run_fields(folder: RunFolder) -> Fields:
    """Return a run, of a damaged one with what is damaged in place of the result."""
    row: Fields = dict.fromkeys(
        ("name", "clock", "source", "experiment", "variants", "state", "result"), ""
    )
    row["name"] = folder.name
    try:
        experiments = [load(run).experiment for run in folder.runs]
        row["clock"] = [experiment.design.clock for experiment in experiments]
        row["source"], row["experiment"] = experiments[0].source, experiments[0].name
        row["variants"] = list(experiments[0].variants)
        answer = saved.answer_of(folder)
        damage = ""
        for run in folder.runs if not answer else ():
            if not damage and (why := saved.damage(run)):
                damage = f"{run.result_file}: {why}; `kteardown analyse {run.name}` writes it again"
        row["state"] = f"unreadable: {damage}" if damage else "done" if answer else "unfinished"
        row["result"] = (
            answer or f"{row['state']} (of {', '.join(row['variants']) or 'base alone'})"
        )
    except KteardownError as error:
        row["state"] = row["result"] = f"unreadable: {error.message}"
    return row
