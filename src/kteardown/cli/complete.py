"""Shell completion of names: experiments, workloads, series, runs, kernels, sources, parameters.

Each function imports what it reads: every verb imports this module, and most of them complete
nothing.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import typer

from kteardown.errors import KteardownError
from kteardown.paths import cache_dir, runs_dir

Offer = tuple[str, str]
"""A word and its description."""

_SOURCES = (
    ("debian:6.12", "the distribution's source"),
    ("kernel.org:6.12", "a release, as its tarball is signed"),
    ("git:", "PATH@REV of a git tree"),
    ("tar:", "a tarball"),
    ("image:", "a ready kernel"),
    ("debian-image:6.12", "the distribution's own kernel"),
)


def _offer(
    find: Callable[[typer.Context], Iterable[Offer]],
) -> Callable[[typer.Context, str], list[Offer]]:
    """Return a completion function: the words of ``find`` that begin with what was typed.

    It ignores errors, because a damaged file must not break completion in the user's shell.
    """

    def offer(ctx: typer.Context, incomplete: str) -> list[Offer]:
        with contextlib.suppress(KteardownError, OSError):
            return list(
                {
                    word: (word, what) for word, what in find(ctx) if word.startswith(incomplete)
                }.values()
            )
        return []

    return offer


@_offer
def experiments(_: typer.Context) -> Iterator[Offer]:
    from kteardown.inputs.load import experiment_names, load_experiment, readable

    for experiment in readable(load_experiment, experiment_names(Path.cwd())):
        yield experiment.name, experiment.question


@_offer
def workloads(_: typer.Context) -> Iterator[Offer]:
    from kteardown.inputs.load import load_workload, readable, workload_names

    here = Path.cwd()
    for workload in readable(partial(load_workload, folder=str(here)), workload_names(here)):
        yield workload.name, workload.summary


@_offer
def series(_: typer.Context) -> Iterator[Offer]:
    from kteardown.kernels.series import known_series

    for patch_series in known_series(Path.cwd()):
        yield patch_series.name, f"{len(patch_series.patches)} patches"


@_offer
def postings(_: typer.Context) -> Iterator[Offer]:
    from kteardown.inputs.published import load_posting, posting_names

    for name in posting_names():
        posting = load_posting(name)
        yield name, posting.source.title if posting else ""


@_offer
def sources(_: typer.Context) -> Iterator[Offer]:
    yield from _SOURCES


@_offer
def fragments(_: typer.Context) -> Iterator[Offer]:
    from kteardown.inputs.fragments import fragment_files, fragment_places, fragment_summary

    for name, file in sorted(fragment_files(fragment_places()).items()):
        yield name, fragment_summary(file)


@_offer
def series_and_sources(ctx: typer.Context) -> Iterator[Offer]:
    yield from series(ctx, "")
    yield from _SOURCES


@_offer
def runs(_: typer.Context) -> Iterator[Offer]:
    from kteardown.door import Entry
    from kteardown.model.clock import BOTH
    from kteardown.rundir.directory import CLOCKS_FILE

    yield "last", "the newest run"
    # Only the names, which have the time and the experiment: reading thousands of runs takes too
    # long.
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(runs_dir().iterdir(), reverse=True):
            if (Entry(path) / "experiment.json").exists():
                yield path.name, ""
            elif (Entry(path) / CLOCKS_FILE).exists():
                yield path.name, "both clocks"
                yield from ((f"{path.name}/{clock}", "") for clock in BOTH)


@_offer
def runs_and_things(ctx: typer.Context) -> Iterator[Offer]:
    from kteardown.cli.things import THINGS

    yield from runs(ctx, "")
    yield from ((kind, f"what a {kind} is") for kind in THINGS)


@_offer
def things(ctx: typer.Context) -> Iterator[Offer]:
    from kteardown.cli.things import THINGS, known_names

    if (kind := str(ctx.params.get("what"))) in THINGS:
        yield from ((name, "") for name in known_names(kind))


@_offer
def kernels(_: typer.Context) -> Iterator[Offer]:
    from kteardown.kernels.cache import Cache

    for entry in Cache(cache_dir()).entries():
        yield entry.key, f"{entry.release} {entry.series}".strip()


@_offer
def assignments(ctx: typer.Context) -> Iterator[Offer]:
    """Return ``PARAM=`` for the experiment or workload on the command line, or else for all
    workloads."""

    from kteardown.inputs.load import (
        load_experiment,
        load_workload,
        load_workloads,
        readable,
        workload_names,
    )
    from kteardown.model.experiment import MACHINE_PARAMETERS

    here = str(Path.cwd())
    if name := ctx.params.get("experiment"):
        used = list(load_workloads(load_experiment(name)).values())
    else:
        names = (
            [ctx.params["workload"]] if ctx.params.get("workload") else workload_names(Path.cwd())
        )
        used = list(readable(partial(load_workload, folder=here), names))
    for workload in used:
        for parameter, spec in workload.parameters.items():
            yield f"{parameter}=", spec.help
    for parameter in MACHINE_PARAMETERS:
        yield f"{parameter}=", "a parameter of the guest"
