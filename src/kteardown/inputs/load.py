"""How a file becomes a spec: read, check, and complain so that it can be mended."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kteardown.errors import InputError
from kteardown.inputs.sweep_syntax import parse_values
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment
from kteardown.model.record import ParamValue
from kteardown.model.workload import Parameter, Workload
from kteardown.paths import data_dir

_M = TypeVar("_M", bound=BaseModel)


def experiment_names(own: Path | None = None) -> list[str]:
    """The experiments that are shipped and those in the folder ``experiments`` of ``own``, by name."""
    return _names("experiments", own)


def workload_names(own: Path | None = None) -> list[str]:
    """The workloads that are shipped and those in the folder ``workloads`` of ``own``, by name."""
    return _names("workloads", own)


def load_experiment(name: str) -> Experiment:
    """A shipped experiment by name, one of ``./experiments`` by name, or any file by its path.

    Raises InputError that names the file, the key and what was expected.
    """
    path = Path(name)
    if path.suffix != ".toml" and "/" not in name:
        found = _named("experiments", name, Path.cwd())
        path = found or path
        if found is None:
            raise InputError(
                f"there is no experiment called {name!r}{did_you_mean(name, experiment_names(Path.cwd()))}",
                hint=_users_of(name)
                or "`kteardown list experiments` shows them; a path to a .toml file works too.",
            )
    fields = _read_toml(path)
    for sweep in fields.get("workloads", []):
        if isinstance(sweep, dict) and isinstance(sweep.get("params"), dict):
            sweep["params"] = _sweep_values(sweep["params"], f"{path}: workloads.params")
    quick = fields.get("quick")
    if isinstance(quick, dict) and isinstance(quick.get("params"), dict):
        quick["params"] = _sweep_values(quick["params"], f"{path}: quick.params")
    experiment = _validate(Experiment, fields, path)
    experiment = experiment.model_copy(update={"folder": _folder_of(experiment, path)})
    check_experiment(experiment, str(path))
    return experiment


def load_workload(name: str, folder: str = "") -> Workload:
    """The workload of ``workloads/NAME.toml``, shipped or else in ``folder``. Raises InputError."""
    own = Path(folder) if folder else None
    path = _named("workloads", name, own)
    if path is None:
        instead = _workloads_of(name)
        near = "" if instead else did_you_mean(name, workload_names(own))
        raise InputError(
            f"there is no workload called {name!r}{near}",
            hint=instead
            or "`kteardown list workloads` shows them"
            + (f"; it was looked for in {folder}/workloads too." if folder else "."),
        )
    workload = _validate(Workload, _read_toml(path), path)
    if workload.name != path.stem:
        raise InputError(
            f"{path}: name is {workload.name!r}, expected {path.stem!r} as the file is called",
            hint=f'write name = "{path.stem}", or rename the file.',
        )
    for taken in workload.parameters.keys() & set(MACHINE_PARAMETERS):
        raise InputError(
            f"{path}: parameters.{taken}: the machine has a parameter of this name",
            hint=f"call it something else than {', '.join(MACHINE_PARAMETERS)}.",
        )
    units = {f"metrics.{metric}": spec.unit for metric, spec in workload.metrics.items()}
    units |= {f"histograms.{metric}": spec.unit for metric, spec in workload.histograms.items()}
    for key, unit in units.items():
        if not key.endswith("_" + unit):
            raise InputError(
                f"{path}: {key}: the name must end in its unit, _{unit}",
                hint="rename it, here and in the agent's workload, or mend its unit.",
            )
    return workload


def load_workloads(experiment: Experiment) -> dict[str, Workload]:
    """Every workload that ``experiment`` runs, by name. Raises InputError."""
    return {
        sweep.workload: load_workload(sweep.workload, experiment.folder) for sweep in experiment.workloads
    }


def own_sources(experiment: Experiment) -> list[Path]:
    """The C sources of those workloads of the experiment that are not shipped. Raises InputError.

    Each is the file ``agent/workloads/NAME.c``, the folder ``agent/workloads/NAME``, or both.
    """
    shipped = workload_names()
    folder = Path(experiment.folder) / "agent" / "workloads"
    own: list[Path] = []
    for name in (sweep.workload for sweep in experiment.workloads if sweep.workload not in shipped):
        found = [path for path in (folder / f"{name}.c", folder / name) if path.exists()]
        if not found:
            raise InputError(
                f"{folder / name}.c: there is no such file, and a workload needs one",
                hint=f"write it, or make both of its files: kteardown new workload {name}",
            )
        own += found
    return own


def fragments(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """The configuration fragments that the experiment's kernels need beyond the base, sorted."""
    wanted = {*experiment.config}
    for workload in workloads.values():
        wanted.update(workload.config)
    return tuple(sorted(wanted))


def programs(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """The programs that the experiment's guests need beside the agent, sorted."""
    wanted: set[str] = set()
    for sweep in experiment.workloads:
        for name, parameter in workloads[sweep.workload].parameters.items():
            for value in sweep.params.get(name, (parameter.default,)):
                wanted.update(parameter.programs.get(str(value), ()))
    return tuple(sorted(wanted))


def check_experiment(experiment: Experiment, where: str) -> None:
    """Hold the experiment against its workloads. Raises InputError naming ``where`` and the key."""
    workloads = load_workloads(experiment)
    names = [sweep.workload for sweep in experiment.workloads]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{where}: workload {name!r} stands twice",
                hint="name it once, and give its parameters more values.",
            )
    for sweep in experiment.workloads:
        _check_params(sweep.params, workloads[sweep.workload], where)
    known = {name for workload in workloads.values() for name in workload.parameters}
    for name in experiment.quick.params:
        if name not in {*known, *MACHINE_PARAMETERS}:
            raise InputError(
                f"{where}: quick.params.{name}: no workload of it has this parameter",
                hint=f"they have: {', '.join(sorted({*known, *MACHINE_PARAMETERS}))}.",
            )
    laws = sorted({workload.law for workload in workloads.values() if workload.law})
    for name in experiment.predict:
        if name not in laws:
            raise InputError(
                f"{where}: predict.{name}: no growth law is over this parameter{did_you_mean(name, laws)}",
                hint=f"there are laws over: {', '.join(laws) or 'none'}.",
            )
    for fragment in fragments(experiment, workloads):
        folder = data_dir("kernels") / "fragments"
        if not (folder / f"{fragment}.config").is_file():
            have = sorted(path.stem for path in folder.glob("*.config"))
            raise InputError(
                f"{where}: config: no fragment {fragment!r}{did_you_mean(fragment, have)}",
                hint=f"there are: {', '.join(have)}.",
            )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where a known word is close, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _users_of(name: str) -> str:
    """What to do with the name of a workload where an experiment's is expected; else nothing."""
    if name not in workload_names(Path.cwd()):
        return ""
    users = [user for user in experiment_names() if name in _swept(user)]
    alone = f"to measure it alone: kteardown compare {name} --help"
    if not users:
        return f"it is a workload; {alone}"
    return f"it is a workload; run an experiment that has it ({', '.join(users)}), or {alone}"


def _workloads_of(name: str) -> str:
    """What to do with the name of an experiment where a workload's is expected; else nothing."""
    if name not in experiment_names():
        return ""
    return f"it is an experiment: kteardown run {name}. Its workloads: {', '.join(_swept(name))}."


def _swept(experiment: str) -> list[str]:
    """The workloads of a shipped experiment."""
    fields = _read_toml(data_dir("experiments") / f"{experiment}.toml")
    return [str(sweep.get("workload")) for sweep in fields.get("workloads", [])]


def _names(kind: str, own: Path | None) -> list[str]:
    folders = [data_dir(kind), *([own / kind] if own else [])]
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


def _named(kind: str, name: str, own: Path | None) -> Path | None:
    """The file of ``name``; what is shipped cannot be replaced by a file of the user's."""
    folders = [data_dir(kind), *([own / kind] if own else [])]
    return next((path for path in (folder / f"{name}.toml" for folder in folders) if path.is_file()), None)


def _folder_of(experiment: Experiment, path: Path) -> str:
    """Where the workloads are that are not shipped: here, else where the experiment itself lies."""
    own = {sweep.workload for sweep in experiment.workloads}.difference(workload_names())
    if not own:
        return ""
    folders = (Path.cwd(), path.absolute().parent.parent)
    found = (folder for folder in folders if own & set(workload_names(folder)))
    return str(next(found, Path.cwd()))


def _check_params(params: Mapping[str, tuple[ParamValue, ...]], workload: Workload, where: str) -> None:
    for name, values in params.items():
        parameter = workload.parameters.get(name)
        if parameter is None:
            raise InputError(
                f"{where}: workload {workload.name!r} has no parameter {name!r}"
                f"{did_you_mean(name, workload.parameters)}",
                hint=f"it has: {', '.join(workload.parameters) or 'none'}.",
            )
        if not values:
            raise InputError(
                f"{where}: {workload.name}.{name}: expected at least one value",
                hint="give it values, or leave the parameter out: it then has its default.",
            )
        for value in values:
            _check_value(value, parameter, f"{where}: {workload.name}.{name}")


def _check_value(value: ParamValue, parameter: Parameter, where: str) -> None:
    if parameter.choices:
        if value not in parameter.choices:
            raise InputError(
                f"{where}: {value!r} is none of {', '.join(parameter.choices)}", hint="choose one of these."
            )
    elif not isinstance(value, int):
        raise InputError(f"{where}: expected an integer, got {value!r}", hint="give a number without units.")
    elif not parameter.min <= value <= parameter.max:
        raise InputError(
            f"{where}: {value} is not within {parameter.min} to {parameter.max}", hint="choose one that is."
        )


def _sweep_values(params: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        name: parse_values(value, f"{where}.{name}") if isinstance(value, str) else value
        for name, value in params.items()
    }


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file",
            hint="look at the path; `kteardown list` shows what is known by name.",
        ) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", hint="name a file that you may read."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}", hint="mend the file at that place.") from error


def _validate(model: type[_M], fields: Mapping[str, Any], path: Path) -> _M:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        lines = [_explain(model, dict(detail)) for detail in error.errors()]
        raise InputError(
            "\n".join(f"{path}: {line}" for line in lines),
            hint="mend these keys; `kteardown new` makes a file that has them right.",
        ) from error


def _explain(model: type[BaseModel], detail: Mapping[str, Any]) -> str:
    loc = [str(part) for part in detail["loc"]]
    key = ".".join(loc)
    if detail["type"] == "extra_forbidden":
        known = _fields_at(model, loc[:-1])
        return f"{key}: unknown key{did_you_mean(loc[-1], known)} (known here: {', '.join(known)})"
    if detail["type"] == "missing":
        return f"{key}: missing"
    return f"{key}: {detail['msg']}, got {detail['input']!r}"


def _fields_at(model: type[BaseModel], loc: list[str]) -> list[str]:
    """The keys that a table may have, found by walking the model along ``loc``."""
    current: type[BaseModel] = model
    for part in loc:
        field = current.model_fields.get(part)
        if field is not None:
            current = _model_inside(field.annotation) or current
    return list(current.model_fields)


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None
