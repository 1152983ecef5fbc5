"""``kteardown replicate``: test what a posting claims, with the posted patch."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kteardown.analysis.replication import replicate as replicated
from kteardown.cli import complete, options
from kteardown.cli.outcome import gate
from kteardown.cli.run import boot_rest, start
from kteardown.cli.script import experiments_on
from kteardown.errors import InputError
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, readable
from kteardown.inputs.options import Designed, Overrides, Scripted, on_clocks
from kteardown.inputs.published import Posting, load_posting
from kteardown.kernels.source import is_source
from kteardown.model.result import Result
from kteardown.patches.posted import read
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.report.formats import text
from kteardown.report.sections.published import claim_row, replication_table
from kteardown.run.resolve import experiment_of

_BASE = "debian:6.12"
"""The kernel of a script, where a posting has no patch that can be run."""
_NOT_REPEATED = {"--patch", "--json", "--jobs"}


def replicate(
    designed: Designed,
    scripted: Scripted,
    posting: Annotated[str, typer.Argument(autocompletion=complete.postings)],
    patch: options.PatchOption = "",
    script: options.ScriptOption = "",
    jobs: options.JobsOption = None,
    json_file: Annotated[Path | None, typer.Option("--json")] = None,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    options.need_writable(json_file)
    known = load_posting(posting)
    assert known is not None
    if known.run is None and not script:
        _write(json_file, known, [_report(known, None)])
        return
    reporter = options.reporter(verbose, quiet)
    base = known.run.source if known.run else _BASE
    if script and not (patch or (known.run and known.run.patch)):
        variant, source, base = our_series(known), "", _BASE
        why = f"{known.cannot or 'its patch is in no archive'}; {script} is run with our series {variant}"
        reporter.note(f"{known.name}: {why}")
        known = known.model_copy(update={"cannot": why})
    else:
        variant, source = posted_patch(known, patch, reporter)
    if script:
        asked = Overrides.of(designed, variant=[variant])
        experiments = tuple(
            one.model_copy(update={"reference": known.name})
            for one in experiments_on(script, base, asked, scripted, reporter)
        )
    else:
        experiments = on_clocks(experiment_of(known, variant), Overrides.of(designed))
    execution = options.Execution(jobs=jobs)
    found = start(experiments, reporter, execution, command=command_line(source))
    material = boot_rest(found, reporter, execution)
    size = ""
    if script:
        first = experiments[0]
        size = load_workload(first.workloads[0].workload, first.folder).law
        known = measured_with(known, script, size)
        text.brief(material, options.output())
    _write(json_file, known, [_report(known, one.result, size) for one in material.clocks])
    reporter.note(f"the whole report: kteardown report {found.name}")
    gate(material, None)


def our_series(posting: Posting) -> str:
    """Return our series about the subject of ``posting``. Raises InputError if there is none."""
    for known in readable(load_experiment, experiment_names()):
        if known.reference == posting.name:
            return next(name for name in known.variants if not is_source(name))
    raise InputError(
        f"{posting.name}: its patch is in no archive, and no series of ours is about the same",
        hint="give the patch with --patch FILE.",
    )


def measured_with(posting: Posting, script: str, size: str) -> Posting:
    """Return ``posting`` with a script in place of the workload of ours that measures the same."""
    if posting.run is None:
        return posting
    sized = f"; its {size} has the place of the posting's parameter" if size else ""
    differs = f"measured with {script}{sized}"
    return posting.model_copy(update={"run": posting.run.model_copy(update={"differs": differs})})


def posted_patch(posting: Posting, given: str, reporter: Reporter) -> tuple[str, str]:
    """Return the patches as a variant, and the file that they are from; empty for the posted mails.

    A file that has the message id of the posting is the posted patch. Raises InputError, LabError.
    """
    run = posting.run
    if not (given or (run and run.patch)):
        raise InputError(
            f"{posting.name}: its patch is in no archive", hint="give the patch with --patch FILE."
        )
    posted = run.patch if run else ""
    series = read(given or f"lore:{posted}", cache_dir=cache_dir(), reporter=reporter)
    for note in series.notes:
        reporter.note(note)
    part = f"@{run.patches}" if run and run.patches else ""
    return f"{series.folder}{part}", "" if posted and series.message_id == posted else given


def command_line(source: str) -> str:
    """Return the command that repeats this one: without the file of a patch that is the posted one."""
    words, kept = iter(sys.argv[1:]), ["kteardown"]
    for word in words:
        if word in _NOT_REPEATED:
            next(words, None)
        elif word.partition("=")[0] not in _NOT_REPEATED:
            kept.append(word)
    return shlex.join([*kept, *(("--patch", Path(source).name) if source else ())])


def _report(posting: Posting, result: Result | None, size: str = "") -> dict[str, Any]:
    """Print the findings, and return them for --json; ``size`` is the parameter of a script's law."""
    found = replicated(posting, result, size)
    table, console = replication_table(posting, found, result), options.output()
    text.fitted(lambda most: text.show(text.first_rows(table, most), console), console, text.LINES // 2)
    rows = [claim_row(one, posting) | {"interval": one.ours.ci} for one in found]
    return {"clock": result.clock if result else None, "claims": rows}


def _write(file: Path | None, posting: Posting, clocks: list[dict[str, Any]]) -> None:
    if file is not None:
        options.write_text(file, json.dumps({"posting": posting.name, "clocks": clocks}, indent=1) + "\n")
