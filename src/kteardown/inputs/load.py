"""Load and check experiments and workloads. Every error names the file and the key."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from kteardown.errors import InputError, did_you_mean
from kteardown.inputs.assignments import parse_values
from kteardown.inputs.check import check_experiment
from kteardown.inputs.contention import designed, with_contention
from kteardown.inputs.counts import with_counts
from kteardown.inputs.fragments import fragment_files, fragment_places
from kteardown.inputs.patch_files import is_patch, try_command
from kteardown.inputs.toml_files import read_toml, validated
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment
from kteardown.model.workload import Metric, Workload
from kteardown.paths import data_dir


def experiment_names(user_folder: Path | None = None) -> list[str]:
    """Return the names of the shipped experiments and those in ``user_folder``/experiments."""
    return _names("experiments", user_folder)


def workload_names(user_folder: Path | None = None) -> list[str]:
    """Return the names of the shipped workloads and those in ``user_folder``/workloads."""
    return _names("workloads", user_folder)


def stress_names() -> list[str]:
    """Return the names of the shipped workloads that only check invariants. Their C files are
    apart, too."""
    return sorted(path.stem for path in (data_dir("workloads") / "stress").glob("*.toml"))


_Model = TypeVar("_Model", bound=BaseModel)


def readable(load: Callable[[str], _Model], names: Iterable[str]) -> Iterator[_Model]:
    """Yield what ``load`` returns for each of ``names``, without what cannot be read."""
    for name in names:
        with suppress(InputError):
            yield load(name)


def load_experiment(name: str) -> Experiment:
    """Load an experiment: a shipped one or one of ``./experiments`` by name, or any file by its
    path.

    Raises InputError that names the file, the key and what was expected.
    """
    path = Path(name)
    if path.suffix != ".toml" and is_patch(name):
        raise InputError(
            f"{name!r} is a patch, not an experiment",
            hint=f"to measure a patch: {try_command(name)}",
        )
    if path.suffix != ".toml" and "/" not in name:
        file = _named("experiments", name, Path.cwd())
        path = file or path
        if file is None:
            instead = _experiments_with(name)
            near = did_you_mean(name, experiment_names(Path.cwd()))
            raise InputError(
                f"{name!r} is a workload, not an experiment"
                if instead
                else f"there is no experiment called {name!r}{near}",
                hint=instead
                or "choose one of `kteardown list experiments`, or give the path to a .toml file.",
            )
    fields = read_toml(path)
    sweeps = [("workloads", sweep) for sweep in fields.get("workloads", [])]
    for key, table in (*sweeps, ("quick", fields.get("quick"))):
        if isinstance(table, dict) and isinstance(table.get("params"), dict):
            table["params"] = {
                name: parse_values(value, f"{path}: {key}.params.{name}")
                if isinstance(value, str)
                else value
                for name, value in table["params"].items()
            }
    experiment = validated(Experiment, fields, path)
    experiment = designed(experiment.model_copy(update={"folder": _folder_of(experiment, path)}))
    check_experiment(experiment, load_workloads(experiment), str(path))
    return experiment


def load_workload(name: str, folder: str = "") -> Workload:
    """Load ``workloads/NAME.toml``: the shipped one, or else the one in ``folder``.

    Raises InputError that names the file, the key and what was expected.
    """
    user_folder = Path(folder) if folder else None
    path = _named("workloads", name, user_folder)
    if path is None:
        instead = ""
        if name in experiment_names():
            swept = ", ".join(_swept(name))
            instead = f"use `kteardown run {name}`, or name one of its workloads: {swept}."
        places = f" (also searched: {folder}/workloads)" if folder else ""
        run_hint = f"write ./{name} to run the file of this name." if os.path.isfile(name) else ""
        raise InputError(
            f"{name!r} is an experiment, not a workload"
            if instead
            else f"there is no workload called {name!r}"
            f"{did_you_mean(name, workload_names(user_folder))}{places}",
            hint=instead or run_hint or "choose one of `kteardown list workloads`.",
        )
    workload = validated(Workload, read_toml(path), path)
    if workload.name != path.stem:
        raise InputError(
            f"{path}: name: must be the name of the file, {path.stem!r}, not {workload.name!r}",
            hint=f'write name = "{path.stem}", or rename the file.',
        )
    for parameter in workload.parameters.keys() & set(MACHINE_PARAMETERS):
        raise InputError(
            f"{path}: parameters.{parameter}: is the name of a parameter of the machine",
            hint=f"choose a name other than {', '.join(MACHINE_PARAMETERS)}.",
        )
    names = [spec.name for spec in workload.metrics.values() if spec.name]
    for metric, spec in workload.metrics.items():
        if names.count(spec.name) > 1:
            raise InputError(
                f"{path}: metrics.{metric}.name: another metric is called {spec.name!r} too",
                hint="give each metric a name of its own: reports show the names.",
            )
    units = {f"metrics.{metric}": spec.unit for metric, spec in workload.metrics.items()}
    units |= {f"histograms.{metric}": spec.unit for metric, spec in workload.histograms.items()}
    for key, unit in units.items():
        if not key.endswith("_" + unit):
            raise InputError(
                f"{path}: {key}: the name must end in its unit, _{unit}",
                hint="rename it here and in the C file of the workload, or correct its unit.",
            )
    _check_within(workload, path)
    return workload


def _check_within(workload: Workload, path: Path) -> None:
    for metric, spec in workload.metrics.items():
        if why := _not_within(spec, workload):
            raise InputError(
                f"{path}: metrics.{metric}.within: {why}",
                hint="name the metric of the call, which the agent times, or remove this key.",
            )


def _not_within(spec: Metric, workload: Workload) -> str:
    """Return why ``within`` of a metric is wrong; empty if it is right, or if there is none."""
    whole = workload.metrics.get(spec.within)
    if not spec.within:
        return ""
    if spec.reporter == "agent":
        return 'is only for a figure of the kernel\'s own (reported_by = "kernel")'
    if spec.unit not in ("ns", "us", "share") or spec.better != "lower":
        return "is only for a time, or a share of the whole, for which lower is better"
    if whole is None:
        return f"there is no metric {spec.within}"
    of_agent = whole.reporter == "agent" and whole.compare
    fits = whole.unit == "ns" and whole.better == "lower"
    return (
        ""
        if of_agent and fits
        else f"{spec.within} is not a time in ns that the agent measures and compares"
    )


def load_workloads(experiment: Experiment) -> dict[str, Workload]:
    """Load every workload that ``experiment`` runs, by name, with what it counts. Raises
    InputError."""
    workloads = {}
    for sweep in experiment.workloads:
        workload = workloads[sweep.workload] = load_workload(sweep.workload, experiment.folder)
        if unknown := set(sweep.metrics) - workload.metrics.keys():
            raise InputError(
                f"workloads.metrics: {sweep.workload} has no metric {min(unknown)}",
                hint=f"choose from: {', '.join(workload.metrics)}.",
            )
        if sweep.metrics:
            metrics = {
                name: spec.model_copy(update={"headline": name in sweep.metrics})
                for name, spec in workload.metrics.items()
            }
            workloads[sweep.workload] = workload.model_copy(update={"metrics": metrics})
    if experiment.design.clock == "contention":
        return {name: with_contention(workload) for name, workload in workloads.items()}
    return with_counts(experiment, workloads) if experiment.design.counts else workloads


def own_sources(workloads: Mapping[str, Workload], own_folder: str = "") -> list[Path]:
    """Return the C files, or folders of them, of those ``workloads`` that not every agent has.

    These are the stress tests, all of them if there is any, what runs a script, and those that are
    not shipped, in ``own_folder``. Raises InputError if one of them does not exist.
    """
    shipped = workload_names()
    folder = Path(own_folder) / "agent" / "workloads"
    result = (
        sorted((data_dir("agent") / "stress").iterdir()) if {*workloads} & {*stress_names()} else []
    )
    scripts = {name for name, workload in workloads.items() if workload.script is not None}
    result += [data_dir("agent") / name for name in ("script", "waits")] if scripts else []
    for name in (name for name in workloads if name not in shipped and name not in scripts):
        files = [path for path in (folder / f"{name}.c", folder / name) if path.exists()]
        if not files:
            raise InputError(
                f"{folder / name}.c: there is no such file, and workload {name!r} needs it",
                hint=f"write it, or write both files with `kteardown new workload {name}`.",
            )
        result += files
    return result


def runs_own_programs(workloads: Mapping[str, Workload]) -> bool:
    """Return whether programs of the user run in a guest: a script, or a workload that is not
    shipped."""
    shipped = {*workload_names(), *stress_names()}
    return any(
        name not in shipped or workload.script is not None for name, workload in workloads.items()
    )


def programs(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return the sorted programs that the guests need in addition to the agent."""
    program_names: set[str] = set()
    for sweep in experiment.workloads:
        for name, parameter in workloads[sweep.workload].parameters.items():
            for value in sweep.params.get(name, (parameter.default,)):
                program_names.update(parameter.programs.get(str(value), ()))
    return tuple(sorted(program_names))


def _experiments_with(name: str) -> str:
    """Return the hint if ``name`` is a workload instead of an experiment, else an empty string."""
    if name not in workload_names(Path.cwd()):
        return ""
    users = [user for user in experiment_names() if name in _swept(user)]
    alone = f"measure the workload alone (`kteardown compare {name} --help`)."
    return f"run an experiment that has it ({', '.join(users)}), or {alone}" if users else alone


def _swept(experiment: str) -> list[str]:
    fields = read_toml(data_dir("experiments") / f"{experiment}.toml")
    return [str(sweep.get("workload")) for sweep in fields.get("workloads", [])]


def _folders(kind: str, user_folder: Path | None) -> list[Path]:
    return [
        data_dir(kind),
        data_dir(kind) / "stress",
        *([user_folder / kind] if user_folder else []),
    ]


def _names(kind: str, user_folder: Path | None) -> list[str]:
    folders = _folders(kind, user_folder)
    return sorted(
        {path.stem for folder in folders for path in folder.glob("*.toml") if path.is_file()}
    )


def _named(kind: str, name: str, user_folder: Path | None) -> Path | None:
    """Return the file of ``name``, if there is one; a shipped file precedes one of
    ``user_folder``."""
    paths = (folder / f"{name}.toml" for folder in _folders(kind, user_folder))
    return next((path for path in paths if path.is_file()), None)


def _folder_of(experiment: Experiment, path: Path) -> str:
    """Return the folder of what is not shipped, or an empty string if all that is named is
    shipped."""
    # It is the current folder, or else the one that contains the folder of the experiment file. The
    # workloads decide; only where all of them are shipped, the fragments do.
    folders = (Path.cwd(), path.absolute().parent.parent)
    unshipped = {sweep.workload for sweep in experiment.workloads}.difference(workload_names())
    if unshipped:
        matching = (folder for folder in folders if unshipped & set(workload_names(folder)))
        return str(next(matching, Path.cwd()))
    shipped = fragment_places()[0]
    unshipped = {*experiment.config}.difference(fragment_files([shipped]))
    matching_fragments = (
        folder
        for folder in folders
        if unshipped & set(fragment_files([folder / "kernels" / "fragments"]))
    )
    return str(next(matching_fragments, ""))
