"""``kteardown new``: write a skeleton of a workload, an experiment or a series."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer

from kteardown import spawn
from kteardown.cli import complete, options
from kteardown.errors import InputError, did_you_mean, failing
from kteardown.flows.mail_series.person import PLACEHOLDER
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.load import experiment_names, load_workload, workload_names
from kteardown.inputs.options import Scripted
from kteardown.kernels.git import of_branch
from kteardown.kernels.series import known_series
from kteardown.patches.posted import resolve
from kteardown.paths import cache_dir
from kteardown.script.describe import describe, write

_SKELETONS = Path(__file__).parent / "skeletons"


SkeletonKind = Literal["workload", "experiment", "series"]
_A = {"workload": "a workload", "experiment": "an experiment", "series": "a series"}


def new(
    scripted: Scripted,
    kind: Annotated[SkeletonKind, typer.Argument()],
    name: Annotated[str, typer.Argument()],
    workload: Annotated[str, typer.Option(autocompletion=complete.workloads)] = "zombies",
    origin: Annotated[str, typer.Option("--from", metavar="FILES")] = "",
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="PARAM=VALUES")] = None,
) -> None:
    _check_name(kind, name)
    out = options.output()
    if kind == "workload" and origin:
        described = describe(origin, scripted, parse_assignments(assignments or ())).called(name)
        _need_absent(Path("workloads", file) for file in (f"{name}.toml", *described.files))
        out.print(f"made {write(described, Path())}", soft_wrap=True)
        out.print(
            f"try it: kteardown compare {name} --source debian:6.12 --series ./my.mbox",
            soft_wrap=True,
        )
        return
    if kind == "workload":
        files = {
            Path("agent/workloads") / f"{name}.c": _filled("workload.c", name),
            Path("workloads") / f"{name}.toml": _filled("workload.toml", name),
        }
        next_command = f"kteardown new experiment {name.replace('_', '-')} --workload {name}"
    elif kind == "experiment":
        files = _experiment(name, workload)
        next_command = f"kteardown run {name} --quick"
    else:
        files = _series(name, origin)
        next_command = f"kteardown compare zombies --source debian:6.12 --series {name}"
    _need_absent(files)
    for path, text in files.items():
        hint = "change to a folder in which you can write."
        with failing(f"{path.parent}: cannot be created", hint=hint):
            path.parent.mkdir(parents=True, exist_ok=True)
        options.write_text(path, text)
        out.print(f"made {path}", soft_wrap=True)
    if kind == "series" and not _person():
        out.print(
            "only a person can sign off the series: set `git config user.name` and "
            "`git config user.email`"
        )
    out.print(f"try it: {next_command}", soft_wrap=True)


def _need_absent(files: Iterable[Path]) -> None:
    for path in files:
        if path.exists():
            raise InputError(
                f"{path}: exists already", hint="choose another name, or remove it first."
            )


def _check_name(kind: SkeletonKind, name: str) -> None:
    names = {
        "workload": workload_names,
        "experiment": experiment_names,
        "series": lambda: [series.name for series in known_series()],
    }[kind]()
    shape = r"[a-z][a-z0-9_]*" if kind == "workload" else r"[a-z][a-z0-9-]*"
    if not re.fullmatch(shape, name) or len(name) > 40:
        raise InputError(
            f"{name!r} is not a valid name of {_A[kind]}",
            hint="use at most 40 lower-case letters, digits and "
            f"{'_' if kind == 'workload' else '-'}, and begin with a letter.",
        )
    if name in names:
        raise InputError(f"{_A[kind]} called {name!r} exists already", hint="choose another name.")


def _experiment(name: str, workload: str) -> dict[Path, str]:
    here = Path.cwd()
    workloads = workload_names(here)
    if workload not in workloads:
        raise InputError(
            f"--workload {workload}: there is no such workload{did_you_mean(workload, workloads)}",
            hint=(
                f"choose one of: {', '.join(workloads)}; or make a new one: "
                f"`kteardown new workload {workload}`."
            ),
        )
    parameters = load_workload(workload, str(here)).parameters
    # As JSON writes them, the values are TOML.
    lines = [
        f"params.{key} = {json.dumps(spec.values or [spec.default])}  # {spec.help}".replace(
            "\n", " "
        )
        for key, spec in parameters.items()
    ]
    words = {"workload": workload, "params": "\n".join(lines)}
    return {Path("experiments") / f"{name}.toml": _filled("experiment.toml", name, words)}


def _series(name: str, patches: str) -> dict[Path, str]:
    folder = Path("series") / name
    author = _person() or PLACEHOLDER
    skeletons = sorted((_SKELETONS / "series").glob("*.patch"))
    texts = {path.name: path.read_text().replace(PLACEHOLDER, author) for path in skeletons}
    if patches:
        is_branch = ".." in patches and not patches.startswith(".") and not Path(patches).exists()
        origin = str(of_branch(patches, Path(), cache_dir())[1]) if is_branch else patches
        texts = {
            path.name: path.read_text(errors="surrogateescape") for path in resolve(origin).patches
        }
    cover = _filled("series/0000-cover-letter.md", name, {"total": str(len(texts))})
    return {folder / "0000-cover-letter.md": cover} | {
        folder / key: text for key, text in texts.items()
    }


def _person() -> str:
    """Return the name and address of the user that git is configured with; empty if it is not."""
    commands = (["git", "config", "--get", key] for key in ("user.name", "user.email"))
    try:
        values = [
            spawn.run(command, capture_output=True, text=True, check=False).stdout.strip()
            for command in commands
        ]
    except OSError:  # There is no git.
        return ""
    return "{} <{}>".format(*values) if all(values) else ""


def _filled(file: str, name: str, words: Mapping[str, str] | None = None) -> str:
    text = (_SKELETONS / file).read_text(encoding="utf-8")
    return re.sub(r"\bskeleton\b", name, Template(text).safe_substitute(words or {}))
