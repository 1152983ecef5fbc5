"""``kteardown list``: list experiments, workloads, stress tests, kinds, series, fragments and
more."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.rows import Fields, covering, kernel_fields, pick, run_fields, table_of
from kteardown.coverage.maps import shipped_functions, shipped_map, shipped_sources, with_own
from kteardown.coverage.propose import matching, not_covered
from kteardown.errors import InputError
from kteardown.extensions import extensions, function_of
from kteardown.inputs.fragments import fragment_files, fragment_places, fragment_summary
from kteardown.inputs.load import (
    experiment_names,
    load_experiment,
    load_workload,
    stress_names,
    workload_names,
)
from kteardown.inputs.published import load_posting, posting_names
from kteardown.judge.metrics import name_of
from kteardown.kernels.cache import Cache
from kteardown.kernels.series import known_series
from kteardown.kernels.source import check_source
from kteardown.paths import cache_dir
from kteardown.rundir.find import all_folders
from kteardown.visible import echo


def _kind(text: str) -> str:
    """Check what is to be listed. Raises InputError."""
    kinds = [*_LISTS, *_of_packages()]
    if text not in kinds:
        raise InputError.unknown(f"{text}: `kteardown list` knows no such kind", text, kinds)
    return text


def listing(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT", parser=_kind, autocompletion=lambda: [*_LISTS, *_of_packages()]
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    covers: str = "",
    source: str = "debian:6.12",
    kinds_folder: Annotated[Path | None, typer.Option("--own", metavar="FOLDER")] = None,
) -> None:
    if covers and kind not in (None, "workloads"):
        raise InputError(
            f"--covers is about workloads, not {kind}",
            hint=f"write: kteardown list workloads --covers {covers}",
        )
    packaged = _of_packages() if kind and kind not in _LISTS else {}
    if kinds_folder and kind not in packaged:
        raise InputError(
            "--own is about kinds", hint=f"write: kteardown list kinds --own {kinds_folder}"
        )
    if covers:
        rows = {"workloads": _covering(covers, source, as_json=as_json)}
        if not rows["workloads"] and not as_json:
            return
    else:
        lists: dict[str, Callable[[], list[Fields]]] = dict(_LISTS)
        if kind in packaged:
            lists[kind] = partial(function_of(packaged[kind]), kinds_folder)
        rows = {chosen: lists[chosen]() for chosen in ([kind] if kind else _LISTS)}
    if kind is None and not covers and not as_json:
        _print_counts(rows)
        return
    if as_json:
        echo(json.dumps(rows, indent=1))
        return
    out = options.output()
    for chosen, listed in rows.items():
        names = (
            [name for name in listed[0] if name not in _ONLY_IN_JSON] if listed else ["none yet"]
        )
        out.print(table_of(listed, names, chosen))
        out.print()


def _print_counts(rows: Mapping[str, Sequence[Fields]]) -> None:
    """Print what can be listed, with how many there are."""
    counts: list[Fields] = [
        {"name": f"kteardown list {kind}", "number": str(len(listed))}
        for kind, listed in rows.items()
    ]
    counts += [{"name": f"kteardown list {kind}", "number": ""} for kind in _of_packages()]
    options.output().print(table_of(counts, ("name", "number")))


def _covering(function: str, source: str, *, as_json: bool) -> list[Fields]:
    """Return the workloads that execute ``function``. Print which kernel that is known of."""
    check_source(source)
    coverage, missing = with_own(shipped_map(source), Path.cwd())
    if missing:
        scripts = ", ".join(missing)
        echo(
            f"kteardown does not know what these scripts execute: {scripts}. `kteardown compare "
            "NAME` counts it once.",
            err=True,
        )
    if not coverage.source.startswith(source):
        echo(
            f"kteardown counted what workloads execute on {coverage.source}, not on {source}.",
            err=True,
        )
    rows = covering(matching(function, coverage), coverage)
    if not rows:
        executed = {shipped: shipped_functions(shipped) for shipped in shipped_sources()}
        # Beside the JSON, so that an empty list is not read as an answer about a mistyped name.
        echo(not_covered(function, coverage.source, executed), err=as_json)
    return rows


def _workloads() -> list[Fields]:
    here = Path.cwd()

    def row(name: str) -> Fields:
        w = load_workload(name, str(here))
        headline = [name_of(key, m) for key, m in w.metrics.items() if m.headline]
        parameters = " ".join(w.parameters)
        return {
            "name": w.name,
            "parameters": parameters,
            "headline_metrics": headline,
            "summary": w.summary,
        }

    return _rows(row, [name for name in workload_names(here) if name not in stress_names()])


def _rows(row: Callable[[str], Fields], names: Sequence[str]) -> list[Fields]:
    """Return a row for each name; of a file that cannot be read, the last column says what is
    wrong."""
    rows: list[Fields] = []
    unreadable: dict[str, str] = {}
    for name in names:
        try:
            rows.append(row(name))
        except InputError as error:
            unreadable[name] = f"unreadable: {error.message}"
    columns = dict.fromkeys(rows[0], "")  # The shipped files can be read.
    return [
        *rows,
        *({**columns, "name": name, [*columns][-1]: text} for name, text in unreadable.items()),
    ]


def _postings() -> list[Fields]:
    return [
        {
            "name": posting.name,
            "claims": len(posting.all_claims),
            "workload": posting.run.workload if posting.run else "",
            "posted": posting.source.posted,
            "title": posting.source.title,
        }
        for name in posting_names()
        if (posting := load_posting(name))
    ]


def _of_packages() -> dict[str, str]:
    """Return what optional packages list, as ``MODULE:FUNCTION``. It is listed only if it is
    named."""
    return {name: where for extension in extensions() for name, where in extension.lists.items()}


_LISTS: dict[str, Callable[[], list[Fields]]] = {
    "experiments": lambda: _rows(
        lambda name: pick(load_experiment(name), "name", "source", "question"),
        experiment_names(Path.cwd()),
    ),
    "workloads": _workloads,
    "stress-tests": lambda: [
        {"name": w.name, "parameters": " ".join(w.parameters), "summary": w.summary}
        for w in map(load_workload, stress_names())
    ],
    "series": lambda: [
        {"name": s.name, "patches": len(s.patches)} for s in known_series(Path.cwd())
    ],
    # With those that are files in ./kernels/fragments.
    "fragments": lambda: [
        {"name": name, "summary": fragment_summary(path)}
        for name, path in sorted(fragment_files(fragment_places()).items())
    ],
    "postings": _postings,
    "kernels": lambda: [kernel_fields(entry) for entry in Cache(cache_dir()).entries()],
    "runs": lambda: [run_fields(folder) for folder in all_folders()],
}
_ONLY_IN_JSON = ("state", "experiment", "variants", "privileged", "needs", "limit")
"""The name of a run ends in its experiment, and its result names the variants, or has the state.
What a kind needs is said where it fails.
"""
