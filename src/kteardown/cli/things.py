"""What `show` and completion know by name: workloads, experiments, series, kernels and sources."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kteardown.cli.rows import Fields, covering, kernel_fields, pick
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.laws import shipped_laws
from kteardown.coverage.maps import CoverageMap, shipped_map, shipped_sources
from kteardown.coverage.propose import matching
from kteardown.errors import InputError, KteardownError, did_you_mean
from kteardown.inputs.contention import object_of
from kteardown.inputs.load import (
    experiment_names,
    load_experiment,
    load_workload,
    readable,
    workload_names,
)
from kteardown.judge.metrics import name_of
from kteardown.kernels.cache import Cache
from kteardown.kernels.series import known_series, resolve, subject
from kteardown.kernels.source import check_source
from kteardown.kernels.source_name import is_source
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Metric, Workload
from kteardown.paths import cache_dir, data_dir
from kteardown.report import saved
from kteardown.report.formatting import point_text, scale
from kteardown.report.metrics import help_of
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import load

_FILES = 8
"""Of the files that a workload executes most, so many are listed."""
_HUNK = re.compile(r"^@@ [^@]*@@(.*)$|^\+\+\+ b/(\S+)", re.MULTILINE)


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
        "metrics": [
            _metric(key, name_of(key, spec), spec) for key, spec in workload.metrics.items()
        ],
        "costs": _costs(workload),
        "contention": {
            "counted_for_one": "" if workload.contention.refused else object_of(workload),
            "refused": workload.contention.refused,
        },
        "invariants": [
            {"name": key, "must_hold": text} for key, text in workload.invariants.items()
        ],
        "executes": _executed_files(name),
        "experiments": [pick(e, "name", "question") for e in users],
        "more": _pages([*(e.name for e in users), name]),
    }


def _costs(workload: Workload) -> list[Fields]:
    """Return what one more object costs in each headline metric, by the shipped results of each
    release."""
    rows = []
    for law in shipped_laws():
        spec = workload.metrics.get(law.metric) if law.workload == workload.name else None
        if spec is None or not spec.headline:
            continue
        unit = scale(spec.unit, "instructions", [law.per_unit])
        rows.append(
            {
                "name": name_of(law.metric, spec),
                "one_more_of": law.param,
                "costs": f"{unit.text(law.per_unit)} {unit.unit}",
                "growth": law.model,
                "release": law.release,
                "at": point_text(law.point),
            }
        )
    return rows


def _metric(key: str, name: str, spec: Metric) -> Fields:
    """Return a metric in words; its units are those of the clocks."""
    units = {clock: scale(spec.unit, clock, ()).unit for clock in ("instructions", "wall")}
    wall = "time" if spec.unit in ("ns", "us") else units["wall"]
    unit = wall if units["instructions"] == units["wall"] else f"{units['instructions']} or {wall}"
    role = "headline" if spec.headline else "compared" if spec.compare else "reported only"
    return {
        "name": name,
        "key": key,
        "in": unit,
        "better": spec.better,
        "use": role,
        "help": help_of(spec),
    }


def _executed_files(name: str) -> list[Fields]:
    """Return the files of which the workload executes most in its stretch, by the map of each
    kernel."""
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
            f"there is no series called {name!r}{near}",
            hint="choose one of `kteardown list series`.",
        )
    chosen = resolve(name)
    coverage = shipped_map(shipped_sources()[0])
    changed = changed_by(chosen.files, coverage)
    backports = [{"for": files[0].parent.name} for files in chosen.backports]
    changes: dict[str, list[str]] = {}
    for function in changed:
        changes.setdefault(function.file, []).append(function.name)
    used = re.compile(rf"{re.escape(name)}(@.*| on .*)?")
    users = [e for e in _all_experiments() if any(map(used.fullmatch, e.variants))]
    return {
        "name": name,
        "summary": _title_of(chosen.files[0].parent),
        "patches": [
            {"number": n, "subject": subject(file)} for n, file in enumerate(chosen.files, start=1)
        ],
        "backports": backports if len(backports) > 1 else [],
        "changes": [{"file": file, "functions": of} for file, of in sorted(changes.items())],
        "executed_by": covering(changed, coverage),
        "experiments": [pick(e, "name", "question") for e in users],
        "more": _pages([e.name for e in users]),
    }


def changed_by(patches: Iterable[Path], coverage: CoverageMap) -> list[ChangedFunction]:
    """Return the functions that the headings of the hunks name, of those that any workload
    executes."""
    functions: dict[tuple[str, str], ChangedFunction] = {}
    for patch in patches:
        file = ""
        for heading, patched_file in _HUNK.findall(patch.read_text(encoding="latin-1")):
            file = patched_file or file
            inside = set(re.findall(r"\w+", heading))
            for function in matching(file, coverage) if inside else ():
                if function.name in inside:
                    functions[function.file, function.name] = function
    return list(functions.values())


def _title_of(folder: Path) -> str:
    """Return the subject of the cover letter, which may be in the folder above a backport."""
    for place in (folder, folder.parent):
        letters = sorted(place.glob("0000-*"))
        if letters:
            text = letters[0].read_text(encoding="utf-8", errors="replace")
            match = re.search(
                r"^Subject:[ \t]*+(?:\[[^\]\n]*+\][ \t]*+)?(.+)$|^#[ \t]*+(.+)$", text, re.MULTILINE
            )
            return (match[1] or match[2]).strip() if match else ""
    return ""


def _experiment(name: str) -> Fields:
    experiment = load_experiment(name)
    design = experiment.design
    number = {"boots": design.boots} if design.clock == "wall" else {"seeds": design.seeds}
    return {
        "name": experiment.name,
        "summary": experiment.question,
        "source": experiment.source,
        "design": {"clock": design.clock, **number, **pick(design, "warmup", "repetitions")},
        "variants": [{"name": variant} for variant in experiment.variants],
        "workloads": [
            {
                "name": sweep.workload,
                "params": sweep.params,
                "summary": load_workload(sweep.workload, experiment.folder).summary,
            }
            for sweep in experiment.workloads
        ],
        "last_run": _last_run(experiment),
        "more": _pages([experiment.name, *_workloads_of(experiment)]),
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
        check_source(name)
        return _source(name)
    entries = Cache(cache_dir()).entries()
    matches = [entry for entry in entries if entry.key.startswith(name)]
    if len(matches) != 1:
        several = (
            f"{len(matches)} kernels in the cache have a name that begins with {name!r}"
            if matches
            else ""
        )
        raise InputError(
            several
            or f"there is no kernel {name!r} in the cache{did_you_mean(name, shipped_sources())}",
            hint="choose one of `kteardown list kernels`, or a source such as debian:6.12.",
        )
    return {**kernel_fields(matches[0]), "series": matches[0].series or None}


def _source(name: str) -> Fields:
    """Return what is known of a source: the kernels of it in the cache, and what workloads execute
    of it."""
    kind, _, version = name.partition(":")
    entries = [e for e in Cache(cache_dir()).entries() if e.source.startswith(f"{kind}:{version}")]
    try:
        coverage: CoverageMap | None = shipped_map(name)
    except InputError:
        coverage = None
    executed = [
        {
            "workload": workload.name,
            "functions_in_stretch": len({f for p in workload.points for f in p.inside}),
        }
        for workload in (coverage.workloads.values() if coverage else ())
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
    """Return the pages of the documentation and of our findings that have one of these names."""
    stems = dict.fromkeys(
        part for name in candidates for part in (name, name.split("-")[0].split("_")[0])
    )
    return [
        {"page": f"{folder}/{stem}.md"}
        for stem in stems
        for folder in ("docs", "findings")
        if (data_dir(folder) / f"{stem}.md").is_file()
    ]


THINGS: Mapping[str, tuple[Callable[[Path], list[str]], Callable[[str], Fields]]] = {
    "workload": (workload_names, _workload),
    "series": (lambda here: [series.name for series in known_series(here)], _series),
    "experiment": (experiment_names, _experiment),
    "kernel": (lambda here: [entry.key for entry in Cache(cache_dir()).entries()], _kernel),
}
"""What can be shown besides a run: the known names, and what is known of one. Raises InputError."""


def known_names(kind: str) -> list[str]:
    return THINGS[kind][0](Path.cwd())


def kinds_of(name: str) -> list[str]:
    return [kind for kind in THINGS if name in known_names(kind)]
