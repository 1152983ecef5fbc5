"""``kteardown hunt``: find kernel objects whose making or release costs more than in proportion."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psutil
import typer

from kteardown.cli import complete, options
from kteardown.cli.rows import Fields, pick
from kteardown.door import LARGE
from kteardown.errors import InputError, damaged, failing
from kteardown.inputs.contention import MOST_CPUS
from kteardown.inputs.fragments import located
from kteardown.progress import Reporter
from kteardown.report.formats import text
from kteardown.run import named
from kteardown_hunt.catalogue import load_kinds, own_kinds
from kteardown_hunt.folder import HuntFolder, Request
from kteardown_hunt.further_tables import further_reports
from kteardown_hunt.plan import memory_of
from kteardown_hunt.result import HuntResult
from kteardown_hunt.tables import program, report_text, shown_tables, summary, verdicts_line


@dataclass(frozen=True)
class Asked:
    """What to hunt for, and where."""

    source: str = "debian-image:6.12"
    against: list[str] | None = None
    locks: Annotated[str, typer.Option(metavar="SOURCE")] = ""
    config: Annotated[
        list[str] | None, typer.Option(metavar="CONFIG_X=y", autocompletion=complete.fragments)
    ] = None
    compiler: Annotated[str, typer.Option(metavar="COMPILER")] = ""
    kinds: Annotated[str, typer.Option(metavar="NAMES")] = ""
    own: Annotated[list[str] | None, typer.Option(metavar="FOLDER")] = None
    unprivileged: Annotated[bool, typer.Option("--unprivileged")] = False
    stay: Annotated[list[str] | None, typer.Option(metavar="KIND|all")] = None
    owners: Annotated[str, typer.Option(metavar="2,4")] = ""
    budget: Annotated[int, typer.Option(min=1)] = 300


@dataclass(frozen=True)
class HuntOutput:
    """What is printed and written at the end."""

    everything: Annotated[bool, typer.Option("--all")] = False
    json_file: Annotated[Path | None, typer.Option("--json")] = None
    reproducers: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None


def hunt(
    context: typer.Context,
    asked: Asked,
    output: HuntOutput,
    resume: Annotated[str, typer.Option(metavar="HUNT")] = "",
    show: Annotated[str, typer.Option(metavar="HUNT")] = "",
    jobs: options.JobsOption = None,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    options.need_writable(output.json_file)
    reporter = options.reporter(verbose, quiet)
    if show and resume:
        raise InputError(
            "--show and --resume cannot be used together: --show prints a result, and --resume "
            "measures the rest of a hunt",
            hint="use only one of them. --resume prints the result at the end.",
        )
    if show:
        folder = HuntFolder.find(show)
        _need_unchanged(folder, context, but=("own",))
        result = _saved(folder)
        advice = ""
    else:
        folder, result, advice = _measured(context, asked, resume, jobs, reporter)
    # Before anything is printed: a reader such as `head` may close its end of the pipe.
    _write_reproducers(folder, output.reproducers, asked.own or ())
    if output.json_file:
        options.write_text(output.json_file, result.model_dump_json(indent=1) + "\n")
    console = options.output()
    console.print(f"{summary(result)}\n{verdicts_line(result)}", highlight=False, soft_wrap=True)
    for table in shown_tables(result, everything=output.everything):
        text.show(table, console)
    if result.unconfirmed:
        reporter.note(f"finish the hunt with: kteardown hunt --resume {_again(folder)}")
    if advice:
        reporter.note(advice)


def _measured(
    context: typer.Context, asked: Asked, resume: str, jobs: int | None, reporter: Reporter
) -> tuple[HuntFolder, HuntResult, str]:
    """Begin a hunt, or resume one, and measure all of it; return with the result what else can be
    done."""
    from kteardown_hunt import (
        flow,  # They load scipy, as does no other verb when it starts.
        locks,
    )

    kept = "nothing was measured, and kernels that were built are kept"
    try:
        folder = _resumed(resume, asked, context, reporter) if resume else _begin(asked, reporter)
        reporter.note(f"folder: {folder.path}")
        kept = (
            "what was measured is kept; finish the hunt with: "
            f"kteardown hunt --resume {_again(folder)}"
        )
        result = flow.finish(folder, reporter, jobs=jobs)
    except KeyboardInterrupt:
        reporter.note(f"interrupted; {kept}")
        raise
    advice = "" if result.locks else locks.advice(_again(folder), result.finds, folder.request())
    everything = f"to see all kinds: kteardown hunt --show {folder.name} --all"
    return folder, result, f"{everything}\n{advice}".rstrip()


def _again(folder: HuntFolder) -> str:
    """Return the arguments with which --resume goes on."""
    return folder.name + named.options(reference.text for reference in folder.request().named)


def _begin(asked: Asked, reporter: Reporter) -> HuntFolder:
    from kteardown_hunt import flow, locks
    from kteardown_hunt.folder import requests_of

    folder = _kinds_folder(asked.own or ())
    request = Request(
        source=asked.source,
        against=tuple(asked.against or ()),
        locks=asked.locks,
        compiler=asked.compiler,
        config=located(asked.config or (), folder),
        kinds=tuple(word.strip() for word in asked.kinds.split(",") if word.strip()),
        own=folder,
        user="ordinary" if asked.unprivileged else "root",
        budget_minstr=asked.budget,
        stay=_stay(asked.stay or ()),
        owners=_owners(asked.owners),
        command=shlex.join(["kteardown", *sys.argv[1:]]),
        started=datetime.now(UTC).isoformat(),
    )
    # Before anything is written: a wrong name, or a kernel that does not build, leaves no folder.
    requests_of(request.source, request.against, request.config)
    locks.check_locks(request.locks)
    flow.kinds_of(request, reporter)
    flow.check_residents(request, reporter)
    flow.kernels_of(request, reporter)
    return HuntFolder.begin(request)


def _kinds_folder(folders: Sequence[str]) -> str:
    """Return the folder of the user's own kinds; empty if there is none. Raises InputError."""
    if len(folders) > 1:
        raise InputError(
            f"--own {folders[1]}: a hunt can use only one folder of kinds",
            hint="put all kinds into one folder.",
        )
    own_kinds(Path(folders[0]) if folders else None)
    return str(Path(folders[0]).absolute()) if folders else ""


def _resumed(name: str, asked: Asked, context: typer.Context, reporter: Reporter) -> HuntFolder:
    """Return the hunt ``name``, to be measured on the kernels that are asked for, too. Raises
    InputError."""
    from kteardown_hunt import flow, locks

    folder = HuntFolder.find(name)
    request = folder.request()
    stay = _stay(asked.stay or ())
    # Trials beside other residents than those of a stage would be no part of it.
    changeable = () if request.stay and stay != request.stay else ("stay",)
    _need_unchanged(folder, context, but=("against", "locks", "own", *changeable))
    named.need(
        request.named, asked.own or (), folder.name, f"kteardown hunt --resume {shlex.quote(name)}"
    )
    locks.check_locks(asked.locks)
    if asked.against:
        flow.kernels_of(request.model_copy(update={"against": tuple(asked.against)}), reporter)
    flow.check_residents(request.model_copy(update={"stay": stay}), reporter)
    folder.extend(asked.against or (), asked.locks, stay)
    return folder


def _need_unchanged(folder: HuntFolder, context: typer.Context, but: Sequence[str] = ()) -> None:
    """Raise InputError if an option other than ``but`` says what a hunt that has been begun is to
    be."""
    for field in fields(Asked):
        source = context.get_parameter_source(field.name)
        if field.name not in but and source is not None and source.name != "DEFAULT":
            raise InputError(
                f"--{field.name} cannot be changed: the hunt was begun with "
                f"`{folder.request().command}`",
                hint=(
                    f"leave --{field.name} out, or begin a new hunt. With --resume, you can add "
                    "--against, --locks and --stay."
                ),
            )


def _stay(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of what stays; each text may have several, with commas between them."""
    words = (word.strip() for text in texts for word in text.split(","))
    return tuple(word for word in words if word)


def _owners(text: str) -> tuple[int, ...]:
    """Return the numbers of processes. Raises InputError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    wrong = [word for word in words if not (word.isdecimal() and 2 <= int(word) <= MOST_CPUS)]
    if wrong:
        raise InputError(
            f"--owners {text}: {wrong[0]!r} is not a number of processes from 2 to {MOST_CPUS}",
            hint="each process has a CPU of the guest for itself, and no more are counted.",
        )
    needed_mb = memory_of(max(map(int, words), default=1))
    if needed_mb > (most_mb := int(psutil.virtual_memory().total) >> 20):
        raise InputError(
            f"--owners {text}: a guest of {needed_mb:,} MB does not fit into this host, which has "
            f"{most_mb:,} MB",
            hint="choose fewer processes: a guest has 2 GB for each two of them.",
        )
    return tuple(sorted({int(word) for word in words}))


def _saved(folder: HuntFolder) -> HuntResult:
    if not folder.result_file.exists():
        raise InputError(
            f"{folder.name} has no result yet",
            hint=f"finish the hunt with: kteardown hunt --resume {folder.name}",
        )
    hint = f"`kteardown hunt --resume {folder.name}` writes the result again."
    file = str(folder.result_file)
    with failing(f"{file}: cannot be read", hint=hint), damaged(file, hint=hint):
        return HuntResult.model_validate_json(folder.result_file.content(LARGE))


def _write_reproducers(folder: HuntFolder, target: Path | None, typed: Sequence[str]) -> None:
    """Write ``KIND-WAY-COST.txt`` for each find, and ``KIND.c`` for its kind.

    Raises InputError if the hunt has own kinds, and their folder is not among what was ``typed``.
    """
    if target is None:
        return
    result = _saved(folder)
    request = folder.request()
    user_kinds = [reference for reference in request.named if reference.text == request.own]
    command = f"kteardown hunt --show {folder.name} --reproducers {shlex.quote(str(target))}"
    named.need(user_kinds, typed, folder.name, command)
    files = request.own_kinds
    with failing(f"--reproducers {target}", hint="name a folder that can be written."):
        target.mkdir(parents=True, exist_ok=True)
    reports = [
        (f"{find.way}-{find.cost or 'failed'}", find.kind, report_text(find, result))
        for find in result.finds
    ]
    waiting = (release for release in result.owners if release.is_find)
    reports += [
        (f"{release.way}-{release.owners}-processes", release.kind, report_text(release, result))
        for release in waiting
    ]
    texts = [(f"{kind}-{name}", (kind,), written) for name, kind, written in reports]
    for name, kinds, written in [*texts, *further_reports(result)]:
        options.write_text(target / f"{name}.txt", written)
        for kind in kinds:
            options.write_text(target / f"{kind}.c", program(kind, files))


def list_kinds(folder: Path | None) -> list[Fields]:
    """Return what ``kteardown list kinds`` lists, with the user's own in ``folder``."""
    names = ("part", "name", "ways", "object", "privileged", "needs", "limit")
    kinds = load_kinds(own_kinds(folder), options.reporter(verbose=False, quiet=False))
    return [{**pick(kind, *names), "ways": " ".join(kind.ways)} for kind in kinds]
