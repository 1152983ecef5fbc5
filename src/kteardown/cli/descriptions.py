"""What ``kteardown show`` says about a workload, a series, an experiment or a kernel.

Each is a dictionary, which is the JSON: its lists of dictionaries are the tables of the text, with the words
of ``heading`` and ``cell``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, shipped_map, shipped_sources
from kteardown.coverage.points import stress_tests, words
from kteardown.coverage.propose import matching, propose
from kteardown.errors import InputError, KteardownError, did_you_mean
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, readable, workload_names
from kteardown.kernels.cache import Cache, CacheEntry
from kteardown.kernels.series import known_series, resolve, subject
from kteardown.kernels.source import check, is_source
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Metric, Parameter
from kteardown.paths import cache_dir, data_dir
from kteardown.report import saved
from kteardown.report.formatting import scale, share
from kteardown.report.metrics import name_of
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import load

Fields = dict[str, Any]
_HEADINGS = {
    "coverage_source": "exact source of the coverage map",
    "executed_by": "workloads that execute it",
    "functions_in_stretch": "functions in its stretch",
    "help": "what it is",
    "in_cache": "in the cache",
    "in_stretch": "in its stretch",
    "must_hold": "what must be true",
    "share_of_instructions": "share of the instructions",
    "size_mb": "MB",
}
"""What a key is called in the text, if not just by its own words."""
_FILES = 8
"""Of the files that a workload executes most, so many are listed."""
_HUNK = re.compile(r"^@@ [^@]*@@(.*)$|^\+\+\+ b/(\S+)", re.MULTILINE)


class Thing(StrEnum):
    """What can be shown besides a run."""

    workload = "workload"
    series = "series"
    experiment = "experiment"
    kernel = "kernel"


def describe(kind: Thing, name: str) -> Fields:
    """Return what is known about the thing of this name. Raises InputError if there is none."""
    return _DESCRIBED[kind](name)


def heading(key: str) -> str:
    """Return what the text calls a key of the JSON."""
    return _HEADINGS.get(key, key.replace("_", " "))


def cell(value: Any) -> str:
    """Return a value of the JSON as text: shares in percent, values with names as ``make=shared,own``."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={cell(of).replace(', ', ',')}" for name, of in value.items() if of)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value))
    if isinstance(value, float):
        return share(value)
    return "" if value is None else str(value)


def known_names(kind: Thing) -> list[str]:
    """Return the names of all things of a kind."""
    here = Path.cwd()
    if kind is Thing.workload:
        return workload_names(here)
    if kind is Thing.experiment:
        return experiment_names(here)
    if kind is Thing.series:
        return [series.name for series in known_series(here)]
    return [entry.key for entry in Cache(cache_dir()).entries()]


def kinds_of(name: str) -> list[Thing]:
    """Return the kinds that have something of this name."""
    return [kind for kind in Thing if name in known_names(kind)]


def _workload(name: str) -> Fields:
    workload = load_workload(name, str(Path.cwd()))
    called = {key: name_of(key, spec) for key, spec in workload.metrics.items()}
    users = [e for e in readable(load_experiment, experiment_names(Path.cwd())) if name in _workloads_of(e)]
    return {
        "name": name,
        "summary": workload.summary,
        "needs": {"cpus": workload.cpus, "memory_mb": workload.memory_mb, "config": workload.config},
        "parameters": [_parameter(key, p) for key, p in workload.parameters.items()],
        "metrics": [_metric(key, called[key], spec) for key, spec in workload.metrics.items()],
        "invariants": [{"name": key, "must_hold": text} for key, text in workload.invariants.items()],
        "executes": _executed_files(name),
        "experiments": [{"name": e.name, "question": e.question} for e in users],
        "more": _pages([*(e.name for e in users), name]),
    }


def _parameter(key: str, parameter: Parameter) -> Fields:
    numeric = not parameter.choices
    return {
        "key": key,
        "default": parameter.default,
        "min": parameter.min if numeric else None,
        "max": parameter.max if numeric else None,
        "choices": parameter.choices,
        "help": parameter.help,
    }


def _metric(key: str, name: str, spec: Metric) -> Fields:
    """Return a metric in words; its units are those of the clocks."""
    units = {clock: scale(spec.unit, clock, ()).unit for clock in ("instructions", "wall")}
    wall = "time" if spec.unit in ("ns", "us") else units["wall"]
    unit = wall if units["instructions"] == units["wall"] else f"{units['instructions']} or {wall}"
    role = "headline" if spec.headline else "compared" if spec.compare else "reported only"
    return {"name": name, "key": key, "in": unit, "better": spec.better, "use": role, "help": spec.help}


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
    if name not in known_names(Thing.series) and not Path(name).exists():
        near = did_you_mean(name, known_names(Thing.series))
        raise InputError(
            f"there is no series called {name!r}{near}", hint="choose one of `kteardown list series`."
        )
    chosen = resolve(name)
    changed = changed_by(chosen.files, shipped_map(shipped_sources()[0]))
    backports = [{"for": files[0].parent.name} for files in chosen.backports]
    changes: dict[str, list[str]] = {}
    for one in changed:
        changes.setdefault(one.file, []).append(one.name)
    users = [
        e
        for e in readable(load_experiment, experiment_names(Path.cwd()))
        if any(variant.split("@")[0].split(" on ")[0] == name for variant in e.variants)
    ]
    return {
        "name": name,
        "summary": _title_of(chosen.files[0].parent),
        "patches": [{"number": n, "subject": subject(file)} for n, file in enumerate(chosen.files, start=1)],
        "backports": backports if len(backports) > 1 else [],
        "changes": [{"file": file, "functions": of} for file, of in sorted(changes.items())],
        "executed_by": covering(changed, shipped_sources()[0]),
        "experiments": [{"name": e.name, "question": e.question} for e in users],
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


def covering(changed: Sequence[ChangedFunction], source: str) -> list[Fields]:
    """Return the workloads that execute functions of ``changed``, those that execute most of it first."""
    coverage = shipped_map(source)
    rows: list[Fields] = []
    for found in propose(changed, coverage, stress_tests=stress_tests()).found:
        workload = load_workload(found.workload)
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
            found = re.search(r"^Subject:\s*(?:\[[^\]]*\]\s*)?(.+)$|^#\s*(.+)$", text, re.MULTILINE)
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
        "design": {
            "clock": design.clock,
            **number,
            "warmup": design.warmup,
            "repetitions": design.repetitions,
        },
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
    """Return what is known of a kernel in the cache."""
    return {
        "name": entry.key,
        "release": entry.release,
        "arch": entry.arch,
        "source": entry.source,
        "series": entry.series,
        "size_mb": entry.size_kb // 1024,
        "last_used": entry.last_used.strftime("%Y-%m-%d %H:%M"),
    }


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


def _workloads_of(experiment: Experiment) -> list[str]:
    return [sweep.workload for sweep in experiment.workloads]


def _pages(candidates: Sequence[str]) -> list[Fields]:
    """Return the pages of the documentation that have one of these names."""
    folder = data_dir("docs")
    stems = dict.fromkeys(part for name in candidates for part in (name, name.split("-")[0].split("_")[0]))
    return [{"page": f"docs/{stem}.md"} for stem in stems if (folder / f"{stem}.md").is_file()]


_DESCRIBED: Mapping[Thing, Callable[[str], Fields]] = {
    Thing.workload: _workload,
    Thing.series: _series,
    Thing.experiment: _experiment,
    Thing.kernel: _kernel,
}
