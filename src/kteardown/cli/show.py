"""``kteardown show``: the boots of a run, or what a workload, a series, an experiment or a kernel is.

What is known of one of these is a dictionary, which is the JSON: its lists of dictionaries are the tables of
the text, with the words of ``heading`` and ``cell``.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kteardown.cli import complete, options
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, shipped_map, shipped_sources, stress_tests, words
from kteardown.coverage.propose import matching, propose
from kteardown.door import LARGE
from kteardown.errors import InputError, KteardownError, did_you_mean, failing
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, readable, workload_names
from kteardown.judge.metrics import name_of
from kteardown.kernels.cache import Cache, CacheEntry
from kteardown.kernels.series import known_series, resolve, subject
from kteardown.kernels.source import check, is_source
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Metric
from kteardown.paths import cache_dir, data_dir, shipped_table
from kteardown.report import saved
from kteardown.report.formatting import scale, share
from kteardown.report.metrics import help_of
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, all_runs, find_run, find_runs
from kteardown.rundir.snapshot import load, load_plan
from kteardown.rundir.writer import is_locked
from kteardown.visible import echo

Fields = dict[str, Any]
_HEADINGS = shipped_table("cli/texts/headings")
_FILES = 8
"""Of the files that a workload executes most, so many are listed."""
_HUNK = re.compile(r"^@@ [^@]*@@(.*)$|^\+\+\+ b/(\S+)", re.MULTILINE)


def show(
    what: Annotated[
        str, typer.Argument(metavar="RUN|KIND", autocompletion=complete.runs_and_things)
    ] = "last",
    name: Annotated[str, typer.Argument(autocompletion=complete.things)] = "",
    console: int | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    kind = what if what in THINGS else None
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
        echo(json.dumps([{"run": run.name, **row} for run in runs for row in boot_rows(run)], indent=1))
        return
    for found in runs:
        _print_boots(found)


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
    words = " or ".join(f"`kteardown show {one} {what}`" for one in kinds)
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
            out.print(table_of(value, list(value[0])))
        elif not isinstance(value, list) and name not in ("name", "summary"):
            out.print(f"{heading(name)}: {cell(value) or 'none'}")


def table_of(rows: Sequence[Fields], names: Sequence[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in names:
        table.add_column(heading(name), overflow="fold")
    for row in rows:
        table.add_row(*(cell(row[name]) for name in names))
    return table


def _print_boots(found: RunDir) -> None:
    rows, out = boot_rows(found), options.output()
    out.print(f"{found.path}: {boots_done(rows)}", soft_wrap=True)
    if rows:
        out.print(table_of(rows, list(rows[0])))
    if is_locked(found):
        out.print("it is being measured now")
    elif any(row["outcome"] == "to do" for row in rows):
        out.print(f"finish it with: kteardown run --resume {found.name}", soft_wrap=True)


def boots_done(rows: Sequence[Fields]) -> str:
    """Return how many boots of ``boot_rows`` are done, failed, and are left."""
    outcomes = Counter(row["outcome"] for row in rows)
    planned, left = outcomes.total(), outcomes.pop("to do", 0)
    failed = outcomes.total() - outcomes["ok"]
    text = f"{outcomes.total()} of {planned} boots done{f', {failed} failed' if failed else ''}"
    return f"{text}, {left} left" if left else text


def boot_rows(found: RunDir) -> list[Fields]:
    """Return what is known of each boot of the plan; None where it has not ended."""
    ended = {boot.boot: boot for boot in found.boots()}
    rows: list[Fields] = []
    for boot in load_plan(found).boots:
        record = ended.get(boot.index)
        row: Fields = {"boot": boot.index, "block": boot.block, "kernel": boot.kernel, "outcome": "to do"}
        row |= dict.fromkeys(("seconds", "detail", "console"))
        if record is not None:
            console = "/".join(found.console_file(boot.index, record.attempt).names[-2:])
            row |= {"outcome": record.end.outcome, "seconds": f"{record.end.duration_s:.1f}"}
            row |= {"detail": record.end.detail, "console": console}
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
    file = found.console_file(boot, record.attempt)
    hint = "restore the file from a copy of the run; nothing else of the run needs it."
    with failing(f"{file}: cannot be read", hint=hint):
        content = file.content(LARGE)
    if sys.stdout.isatty():
        # A serial console ends its lines with \r\n.
        echo(content.decode("utf-8", "replace").replace("\r\n", "\n"), nl=False)
    else:
        sys.stdout.buffer.write(content)


def heading(key: str) -> str:
    return str(_HEADINGS.get(key, key.replace("_", " ")))


def pick(of: object, *names: str) -> Fields:
    return {name: getattr(of, name) for name in names}


def cell(value: Any) -> str:
    """Return a value of the JSON as text: shares in percent, values with names as ``make=shared,own``."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={cell(of).replace(', ', ',')}" for name, of in value.items() if of)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value))
    if isinstance(value, float):
        return share(value)
    return "" if value is None else str(value)


def known_names(kind: str) -> list[str]:
    return THINGS[kind][0](Path.cwd())


def kinds_of(name: str) -> list[str]:
    return [kind for kind in THINGS if name in known_names(kind)]


def _workload(name: str) -> Fields:
    workload = load_workload(name, str(Path.cwd()))
    users = [e for e in _all_experiments() if name in _workloads_of(e)]
    return {
        "name": name,
        "summary": workload.summary,
        "needs": pick(workload, "cpus", "memory_mb", "config"),
        "parameters": [
            {
                "key": key,
                "default": parameter.default,
                "min": None if parameter.choices else parameter.min,
                "max": None if parameter.choices else parameter.max,
                "choices": parameter.choices,
                "help": parameter.help,
            }
            for key, parameter in workload.parameters.items()
        ],
        "metrics": [_metric(key, name_of(key, spec), spec) for key, spec in workload.metrics.items()],
        "invariants": [{"name": key, "must_hold": text} for key, text in workload.invariants.items()],
        "executes": _executed_files(name),
        "experiments": [pick(e, "name", "question") for e in users],
        "more": _pages([*(e.name for e in users), name]),
    }


def _metric(key: str, name: str, spec: Metric) -> Fields:
    """Return a metric in words; its units are those of the clocks."""
    units = {clock: scale(spec.unit, clock, ()).unit for clock in ("instructions", "wall")}
    wall = "time" if spec.unit in ("ns", "us") else units["wall"]
    unit = wall if units["instructions"] == units["wall"] else f"{units['instructions']} or {wall}"
    role = "headline" if spec.headline else "compared" if spec.compare else "reported only"
    return {"name": name, "key": key, "in": unit, "better": spec.better, "use": role, "help": help_of(spec)}


def _executed_files(name: str) -> list[Fields]:
    """Return the files of which the workload executes most in its stretch, by the map of each kernel."""
    coverage = shipped_map(shipped_sources()[0])
    if name not in coverage.workloads:
        return []
    calls: Counter[str] = Counter()
    functions: dict[str, set[str]] = {}
    for point in coverage.workloads[name].points:
        for function, counts in point.inside.items():
            calls[function.file] += counts.instructions
            functions.setdefault(function.file, set()).add(function.name)
    total = sum(calls.values()) or 1
    return [
        {
            "file": file or "(assembler)",
            "functions": len(functions[file]),
            "share_of_instructions": count / total,
        }
        for file, count in calls.most_common(_FILES)
    ]


def _series(name: str) -> Fields:
    if name not in known_names("series") and not Path(name).exists():
        near = did_you_mean(name, known_names("series"))
        raise InputError(
            f"there is no series called {name!r}{near}", hint="choose one of `kteardown list series`."
        )
    chosen = resolve(name)
    coverage = shipped_map(shipped_sources()[0])
    changed = changed_by(chosen.files, coverage)
    backports = [{"for": files[0].parent.name} for files in chosen.backports]
    changes: dict[str, list[str]] = {}
    for one in changed:
        changes.setdefault(one.file, []).append(one.name)
    used = re.compile(rf"{re.escape(name)}(@.*| on .*)?")
    users = [e for e in _all_experiments() if any(map(used.fullmatch, e.variants))]
    return {
        "name": name,
        "summary": _title_of(chosen.files[0].parent),
        "patches": [{"number": n, "subject": subject(file)} for n, file in enumerate(chosen.files, start=1)],
        "backports": backports if len(backports) > 1 else [],
        "changes": [{"file": file, "functions": of} for file, of in sorted(changes.items())],
        "executed_by": covering(changed, coverage),
        "experiments": [pick(e, "name", "question") for e in users],
        "more": _pages([e.name for e in users]),
    }


def changed_by(patches: Iterable[Path], coverage: CoverageMap) -> list[ChangedFunction]:
    """Return the functions that the headings of the hunks name, of those that any workload executes."""
    found: dict[tuple[str, str], ChangedFunction] = {}
    for patch in patches:
        file = ""
        for heading, named in _HUNK.findall(patch.read_text(encoding="latin-1")):
            file = named or file
            inside = set(re.findall(r"\w+", heading))
            for one in matching(file, coverage) if inside else ():
                if one.name in inside:
                    found[one.file, one.name] = one
    return list(found.values())


def covering(changed: Sequence[ChangedFunction], coverage: CoverageMap) -> list[Fields]:
    """Return the workloads that execute functions of ``changed``, those that execute most of it first."""
    rows: list[Fields] = []
    for found in propose(changed, coverage, stress_tests=stress_tests()).found:
        workload = load_workload(found.workload, str(Path.cwd()))
        rows.append(
            {
                "name": found.workload,
                "point": words(found.params, workload) if found.functions else "",
                "in_stretch": len(found.functions),
                "calls": found.calls,
                "share": found.share if found.functions else None,
                "only_outside": len(found.outside),
                "most_of_it": [function.name for function in list(found.functions)[:3]],
            }
        )
    return rows


def _title_of(folder: Path) -> str:
    """Return the subject of the cover letter, which may be in the folder above a backport."""
    for place in (folder, folder.parent):
        letters = sorted(place.glob("0000-*"))
        if letters:
            text = letters[0].read_text(encoding="utf-8", errors="replace")
            found = re.search(
                r"^Subject:[ \t]*+(?:\[[^\]\n]*+\][ \t]*+)?(.+)$|^#[ \t]*+(.+)$", text, re.MULTILINE
            )
            return (found[1] or found[2]).strip() if found else ""
    return ""


def _experiment(name: str) -> Fields:
    found = load_experiment(name)
    design = found.design
    number = {"boots": design.boots} if design.clock == "wall" else {"seeds": design.seeds}
    return {
        "name": found.name,
        "summary": found.question,
        "source": found.source,
        "design": {"clock": design.clock, **number, **pick(design, "warmup", "repetitions")},
        "variants": [{"name": variant} for variant in found.variants],
        "workloads": [
            {
                "name": sweep.workload,
                "params": sweep.params,
                "summary": load_workload(sweep.workload, found.folder).summary,
            }
            for sweep in found.workloads
        ],
        "last_run": _last_run(found),
        "more": _pages([found.name, *_workloads_of(found)]),
    }


def _last_run(experiment: Experiment) -> list[Fields]:
    """Return the newest run of the experiment that is done, with its result in a sentence."""
    for run in reversed(all_runs()):
        try:
            if load(run).experiment.name == experiment.name and (text := saved.answer(run)):
                return [{"name": run.name, "result": text}]
        except KteardownError:
            continue
    return []


def _kernel(name: str) -> Fields:
    if is_source(name):
        check(name)
        return _source(name)
    entries = Cache(cache_dir()).entries()
    found = [entry for entry in entries if entry.key.startswith(name)]
    if len(found) != 1:
        several = f"{name!r} fits {len(found)} kernels in the cache" if found else ""
        raise InputError(
            several or f"there is no kernel {name!r} in the cache{did_you_mean(name, shipped_sources())}",
            hint="choose one of `kteardown list kernels`, or a source such as debian:6.12.",
        )
    return {**kernel_fields(found[0]), "series": found[0].series or None}


def kernel_fields(entry: CacheEntry) -> Fields:
    known = pick(entry, "release", "arch", "source", "series")
    used = entry.last_used.strftime("%Y-%m-%d %H:%M")
    return {"name": entry.key, **known, "size_mb": entry.size_kb // 1024, "last_used": used}


def _source(name: str) -> Fields:
    """Return what is known of a source: the kernels of it in the cache, and what workloads execute of it."""
    kind, _, version = name.partition(":")
    entries = [e for e in Cache(cache_dir()).entries() if e.source.startswith(f"{kind}:{version}")]
    try:
        coverage: CoverageMap | None = shipped_map(name)
    except InputError:
        coverage = None
    executed = [
        {"workload": one.name, "functions_in_stretch": len({f for p in one.points for f in p.inside})}
        for one in (coverage.workloads.values() if coverage else ())
    ]
    return {
        "name": name,
        "coverage_source": coverage.source if coverage else None,
        "in_cache": [
            {"kernel": e.key, "release": e.release, "arch": e.arch, "series": e.series or None}
            for e in entries
        ],
        "workloads": executed,
    }


def _all_experiments() -> Iterator[Experiment]:
    return readable(load_experiment, experiment_names(Path.cwd()))


def _workloads_of(experiment: Experiment) -> list[str]:
    return [sweep.workload for sweep in experiment.workloads]


def _pages(candidates: Sequence[str]) -> list[Fields]:
    """Return the pages of the documentation that have one of these names."""
    folder = data_dir("docs")
    stems = dict.fromkeys(part for name in candidates for part in (name, name.split("-")[0].split("_")[0]))
    return [{"page": f"docs/{stem}.md"} for stem in stems if (folder / f"{stem}.md").is_file()]


THINGS: Mapping[str, tuple[Callable[[Path], list[str]], Callable[[str], Fields]]] = {
    "workload": (workload_names, _workload),
    "series": (lambda here: [series.name for series in known_series(here)], _series),
    "experiment": (experiment_names, _experiment),
    "kernel": (lambda here: [entry.key for entry in Cache(cache_dir()).entries()], _kernel),
}
"""What can be shown besides a run: the known names, and what is known of one. Raises InputError."""
