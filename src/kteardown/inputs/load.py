"""Load and check experiments and workloads. Every error names the file and the key."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from kteardown.errors import InputError, did_you_mean
from kteardown.inputs.assignments import parse_values
from kteardown.inputs.counts import check_counts, with_counts
from kteardown.inputs.fragments import fragment_files, fragment_places, fragments, located
from kteardown.inputs.toml_files import read_toml, validated
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment, Sweep
from kteardown.model.plan import blocks_of, controls
from kteardown.model.point import points_of, weight_of
from kteardown.model.record import ParamValue
from kteardown.model.workload import Metric, Parameter, Workload
from kteardown.paths import data_dir


def experiment_names(own: Path | None = None) -> list[str]:
    """Return the names of the shipped experiments and those in the folder ``experiments`` of
    ``own``."""
    return _names("experiments", own)


def workload_names(own: Path | None = None) -> list[str]:
    """Return the names of the shipped workloads and those in the folder ``workloads`` of
    ``own``."""
    return _names("workloads", own)


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
    if path.suffix != ".toml" and "/" not in name:
        found = _named("experiments", name, Path.cwd())
        path = found or path
        if found is None:
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
    experiment = experiment.model_copy(update={"folder": _folder_of(experiment, path)})
    check_experiment(experiment, str(path))
    return experiment


def load_workload(name: str, folder: str = "") -> Workload:
    """Load ``workloads/NAME.toml``: the shipped one, or else the one in ``folder``.

    Raises InputError that names the file, the key and what was expected.
    """
    own = Path(folder) if folder else None
    path = _named("workloads", name, own)
    if path is None:
        instead = ""
        if name in experiment_names():
            swept = ", ".join(_swept(name))
            instead = f"use `kteardown run {name}`, or name one of its workloads: {swept}."
        places = f" (also searched: {folder}/workloads)" if folder else ""
        other = f"write ./{name} to run the file of this name." if os.path.isfile(name) else ""
        raise InputError(
            f"{name!r} is an experiment, not a workload"
            if instead
            else f"there is no workload called {name!r}"
            f"{did_you_mean(name, workload_names(own))}{places}",
            hint=instead or other or "choose one of `kteardown list workloads`.",
        )
    workload = validated(Workload, read_toml(path), path)
    if workload.name != path.stem:
        raise InputError(
            f"{path}: name: must be the name of the file, {path.stem!r}, not {workload.name!r}",
            hint=f'write name = "{path.stem}", or rename the file.',
        )
    for taken in workload.parameters.keys() & set(MACHINE_PARAMETERS):
        raise InputError(
            f"{path}: parameters.{taken}: is the name of a parameter of the machine",
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
        return "is only for a time, or a share of the whole, of which less is better"
    if whole is None:
        return f"there is no metric {spec.within}"
    own = whole.reporter == "agent" and whole.compare
    fits = whole.unit == "ns" and whole.better == "lower"
    return "" if own and fits else f"{spec.within} is not a compared time in ns of the agent's own"


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
    return with_counts(experiment, workloads) if experiment.design.counts else workloads


def own_sources(workloads: Mapping[str, Workload], own_folder: str = "") -> list[Path]:
    """Return the C files, or folders of them, of those ``workloads`` that not every agent has.

    These are the stress tests, all of them if there is any, what runs a script, and those that are
    not shipped, in ``own_folder``. Raises InputError if one of them does not exist.
    """
    shipped = workload_names()
    folder = Path(own_folder) / "agent" / "workloads"
    own = (
        sorted((data_dir("agent") / "stress").iterdir()) if {*workloads} & {*stress_names()} else []
    )
    scripts = {name for name, workload in workloads.items() if workload.script is not None}
    own += [data_dir("agent") / "script"] if scripts else []
    for name in (name for name in workloads if name not in shipped and name not in scripts):
        found = [path for path in (folder / f"{name}.c", folder / name) if path.exists()]
        if not found:
            raise InputError(
                f"{folder / name}.c: there is no such file, and workload {name!r} needs it",
                hint=f"write it, or write both files with `kteardown new workload {name}`.",
            )
        own += found
    return own


def runs_own_programs(workloads: Mapping[str, Workload]) -> bool:
    """Return whether programs of the user run in a guest: a script, or a workload that is not
    shipped."""
    shipped = {*workload_names(), *stress_names()}
    return any(
        name not in shipped or workload.script is not None for name, workload in workloads.items()
    )


def programs(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return the sorted programs that the guests need in addition to the agent."""
    wanted: set[str] = set()
    for sweep in experiment.workloads:
        for name, parameter in workloads[sweep.workload].parameters.items():
            for value in sweep.params.get(name, (parameter.default,)):
                wanted.update(parameter.programs.get(str(value), ()))
    return tuple(sorted(wanted))


MOST_TRIALS = 500_000
"""The trials of a whole plan: each is an object in memory, and takes a guest time."""
MOST_CPUS = 255
MOST_NODES = 128
"""Of the machine that QEMU emulates. A kernel may be configured for fewer."""


def check_experiment(experiment: Experiment, where: str) -> None:
    """Check the experiment against its workloads. Raises InputError that names ``where`` and the
    key."""
    workloads = load_workloads(experiment)
    names = [sweep.workload for sweep in experiment.workloads]
    check_counts(experiment, workloads, where)
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{where}: workloads: workload {name!r} is there twice",
                hint="name it once, and give its parameters more values.",
            )
    for sweep in experiment.workloads:
        _check_params(sweep.params, workloads[sweep.workload], where)
        _check_weights(sweep, workloads[sweep.workload], where)
    _check_size(experiment, workloads, where)
    _check_weighed_points(experiment, workloads, where)
    theirs = {name for workload in workloads.values() for name in workload.parameters}
    known = sorted({*theirs, *MACHINE_PARAMETERS})
    for name in experiment.quick.params:
        if name not in known:
            what = f"{where}: quick.params.{name}: no workload of the experiment has this parameter"
            raise InputError.unknown(what, name, known)
    laws = sorted({workload.law for workload in workloads.values() if workload.law})
    for name in experiment.predict:
        if name not in laws:
            raise InputError.unknown(
                f"{where}: predict.{name}: no workload has a growth law for this parameter",
                name,
                laws,
                if_none="remove it: no workload of the experiment has a growth law.",
            )
    try:
        located(fragments(experiment, workloads), experiment.folder)
    except InputError as error:
        raise InputError(f"{where}: config: {error.message}", hint=error.hint) from error


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


def _folders(kind: str, own: Path | None) -> list[Path]:
    return [data_dir(kind), data_dir(kind) / "stress", *([own / kind] if own else [])]


def _names(kind: str, own: Path | None) -> list[str]:
    folders = _folders(kind, own)
    return sorted(
        {path.stem for folder in folders for path in folder.glob("*.toml") if path.is_file()}
    )


def _named(kind: str, name: str, own: Path | None) -> Path | None:
    """Return the file of ``name``, if there is one; a shipped file precedes one of the folder
    ``own``."""
    paths = (folder / f"{name}.toml" for folder in _folders(kind, own))
    return next((path for path in paths if path.is_file()), None)


def _folder_of(experiment: Experiment, path: Path) -> str:
    """Return the folder of what is not shipped, or an empty string if all that is named is
    shipped."""
    # It is the current folder, or else the one that contains the folder of the experiment file. The
    # workloads decide; only where all of them are shipped, the fragments do.
    folders = (Path.cwd(), path.absolute().parent.parent)
    own = {sweep.workload for sweep in experiment.workloads}.difference(workload_names())
    if own:
        found = (folder for folder in folders if own & set(workload_names(folder)))
        return str(next(found, Path.cwd()))
    shipped = fragment_places()[0]
    own = {*experiment.config}.difference(fragment_files([shipped]))
    theirs = (
        folder
        for folder in folders
        if own & set(fragment_files([folder / "kernels" / "fragments"]))
    )
    return str(next(theirs, ""))


def _check_params(
    params: Mapping[str, tuple[ParamValue, ...]], workload: Workload, where: str
) -> None:
    for name, values in params.items():
        parameter = workload.parameters.get(name)
        if parameter is None:
            raise InputError.unknown(
                f"{where}: workload {workload.name!r} has no parameter {name!r}",
                name,
                workload.parameters,
                if_none="remove it: this workload has no parameters.",
            )
        if not values:
            raise InputError(
                f"{where}: {workload.name}.{name}: has no value",
                hint="add a value, or remove the parameter; it then has its default value.",
            )
        check_values(values, parameter, f"{where}: {workload.name}.{name}")


def _check_weights(sweep: Sweep, workload: Workload, where: str) -> None:
    for name, weights in sweep.weights.items():
        parameter = workload.parameters.get(name)
        place = f"{where}: {workload.name}.weights.{name}"
        if parameter is None and name not in MACHINE_PARAMETERS:
            known = (*workload.parameters, *MACHINE_PARAMETERS)
            raise InputError.unknown(f"{place}: there is no such parameter", name, known)
        for text in weights:
            value: ParamValue = int(text) if re.fullmatch("[0-9]+", text) else text
            if parameter is not None:
                check_values([value], parameter, place)
            elif not isinstance(value, int):
                raise InputError(
                    f"{place}={text}: expected a number", hint='write it as in "2" = 0.5.'
                )


def _check_weighed_points(
    experiment: Experiment, workloads: Mapping[str, Workload], where: str
) -> None:
    sweeps = {sweep.workload: sweep for sweep in experiment.workloads}
    weights: dict[str, float] = dict.fromkeys(sweeps, 0.0)
    for point in points_of(experiment, workloads):
        weights[point.workload] += weight_of(sweeps[point.workload], point)
    for name, total in weights.items():
        if total == 0:
            raise InputError(
                f"{where}: {name}.weights: every point has the weight 0",
                hint="give at least one point a weight above 0, or remove the weights.",
            )


def _check_size(experiment: Experiment, workloads: Mapping[str, Workload], where: str) -> None:
    """Check the number of trials, computed without making a plan or a point."""
    machines = prod(map(len, experiment.machine.swept.values()))
    points = [prod(map(len, sweep.params.values())) for sweep in experiment.workloads]
    kernels = 1 + len(controls(experiment.design)) + len(experiment.variants)
    trials = blocks_of(experiment.design) * kernels * machines * sum(points)
    if trials > MOST_TRIALS:
        raise InputError(
            f"{where}: is a plan of {trials:,} trials, more than {MOST_TRIALS:,}",
            hint="choose fewer values (--set), seeds (--seeds) or boots (--boots).",
        )
    spec = experiment.machine
    memory_mb = spec.memory_mb or max(workload.memory_mb for workload in workloads.values())
    needed = max(workload.cpus for workload in workloads.values())
    for machine in spec.points():
        cpus, possible, nodes = (
            machine.get(name) or spec.largest(name) for name in MACHINE_PARAMETERS
        )
        check_machine(cpus or needed, possible, nodes, memory_mb, f"{where}: ")


def check_machine(
    cpus: int, possible: int | None, nodes: int | None, memory_mb: int, where: str
) -> None:
    """Check that QEMU has such a guest; ``where`` begins the message. Raises InputError."""
    most = possible or cpus
    for name, value, limit, what in (
        ("cpus", cpus, MOST_CPUS, "CPUs of a guest"),
        ("possible_cpus", most, MOST_CPUS, "CPUs of a guest"),
        ("cpus", cpus, most, "possible CPUs"),
        ("numa_nodes", nodes or 1, most, "possible CPUs"),
        ("numa_nodes", nodes or 1, min(MOST_NODES, memory_mb), "nodes that QEMU can make"),
    ):
        if value > limit:
            raise InputError(
                f"{where}machine.{name} = {value} is more than the {what}, {limit}",
                hint=(
                    f"choose up to {limit}, or change possible_cpus, of which each node needs one."
                ),
            )


def check_values(values: Iterable[ParamValue], parameter: Parameter, where: str) -> None:
    """Check the values of a parameter. Raises InputError that names ``where`` and the wrong
    value."""
    for value in values:
        place = f"{where}={value}"
        if parameter.choices:
            if value not in parameter.choices:
                raise InputError(
                    f"{place}: must be one of {', '.join(parameter.choices)}",
                    hint="choose one of these.",
                )
        elif not isinstance(value, int):
            raise InputError(f"{place}: must be an integer", hint="write a number without a unit.")
        elif not parameter.min <= value <= parameter.max:
            raise InputError(
                f"{place}: must be {parameter.min:,} to {parameter.max:,}",
                hint="choose a value in this range.",
            )
