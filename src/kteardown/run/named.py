"""What a run or a hunt names outside of its folder, and that it counts only if the user names it
again.

The folder may be a stranger's. With --resume, a path in it would decide which C files and kernels
of this host are compiled, which compiler is executed, or what is fetched. So each must be among the
words that the user types then (``--own``). What a run has in its own folder, such as patches, needs
no name.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import InputError
from kteardown.inputs.load import workload_names
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import split_part
from kteardown.kernels.source_name import is_source, paths_of
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Workload
from kteardown.patches.given import message_id
from kteardown.run import create
from kteardown.run.resolve import series_and_source
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.visible import on_one_line

# What is before the end takes whatever comes: no search begins anew at each character.
_RANGE = re.compile(r"git:(?:(.*)@)?[^@]+\.\..*", re.DOTALL)


class Named(NamedTuple):
    """A path of this host, or what is fetched from the network."""

    text: str
    what: str


def of_source(source: str) -> Iterator[Named]:
    """Yield the paths of a kernel source. Raises InputError if it is malformed."""
    yield from (Named(path, "a kernel source") for path in paths_of(source))


def of_compiler(compiler: str) -> Iterator[Named]:
    """Yield the path of a compiler. One that is only a name is the user's own, from ``PATH``."""
    if "/" in compiler:
        yield Named(compiler, "a compiler")


def of_variant(variant: str) -> Iterator[Named]:
    """Yield what a variant names: a source, or a series that has no name of its own, on a
    source."""
    if is_source(variant) and not _RANGE.fullmatch(variant):
        yield from of_source(variant)
        # A hunt takes what follows the last one of its source.
        if " on " in variant:
            yield from of_source(variant.rpartition(" on ")[2])
        return
    series, source = series_and_source(variant)
    if source:
        yield from of_source(source)
    series = split_part(series)[0]
    if message_id(series):
        yield Named(series, "patches of an archive")
    elif span := _RANGE.fullmatch(series):
        yield Named(span[1] or ".", "patches")
    elif "/" in series or os.path.isfile(series):
        yield Named(series, "patches")


def of_experiment(experiment: Experiment) -> list[Named]:
    """Return all that an experiment names."""
    result = [*of_source(experiment.source), *of_compiler(experiment.compiler)]
    result += [named for variant in experiment.variants for named in of_variant(variant)]
    return result + (
        [Named(experiment.folder, "workloads of its own")] if experiment.folder else []
    )


def of_runs(folder: RunFolder) -> list[Named]:
    """Return what is still needed of all that a run names. Raises InputError if it is damaged."""
    return [named for run in folder.runs for named in _of_run(run, load(run))]


def _of_run(run: RunDir, snapshot: Snapshot) -> Iterator[Named]:
    for request in create.needed_requests(run):
        yield from _of_request(request)
    folder = snapshot.experiment.folder or "."
    archived = run.guest_file.exists()
    shipped = workload_names()
    for name, workload in snapshot.workloads.items():
        if workload.script is None and name not in shipped:
            yield Named(folder, f"the C files of the workload {name}")
        elif workload.script is not None and not archived:
            yield from _of_script(folder, workload)


def _of_request(request: KernelRequest) -> Iterator[Named]:
    yield from of_source(request.source)
    yield from of_compiler(request.compiler)


def _of_script(folder: str, workload: Workload) -> Iterator[Named]:
    """Yield what the archive of a script, which is not made yet, is made of."""
    yield Named(folder, f"the files of the script {workload.name}")
    script = workload.script
    if script and script.root:
        root = str(Path(folder, "workloads", script.root))
        yield Named(root, f"the root file system of the script {workload.name}")
    for program in script.programs if script else ():
        if "/" in program:
            yield Named(program, f"a program for the script {workload.name}")


def need(named: Iterable[Named], typed: Sequence[str], what: str, command: str) -> None:
    """Raise InputError unless each of ``named``, by ``what``, is among ``typed``, or in a folder of
    those.

    ``command`` is the one that was typed, without its ``--own``.
    """
    missing: dict[str, list[str]] = {}
    for item in named:
        if not any(_covers(word, item.text) for word in typed):
            missing.setdefault(on_one_line(item.text), []).append(item.what)
    if missing:
        texts = [f"{text} ({', '.join(dict.fromkeys(whats))})" for text, whats in missing.items()]
        raise InputError(
            f"{what} names {'; '.join(texts)}: kteardown uses it only if you name it again",
            hint=f"if it is what you want to use: {command}{options([*typed, *missing])}",
        )


def options(words: Iterable[str]) -> str:
    """Return the options that name these again, each after a blank."""
    return "".join(f" --own {shlex.quote(word)}" for word in dict.fromkeys(words))


def _covers(word: str, text: str) -> bool:
    """Return whether a typed word is ``text``, or a folder that has it."""
    if word == text or message_id(text):
        return word == text
    typed, path = (Path(os.path.abspath(Path(name).expanduser())) for name in (word, text))
    # After a link, .. leads elsewhere than it seems.
    return path == typed if ".." in Path(text).parts else path.is_relative_to(typed)
