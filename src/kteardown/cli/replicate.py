"""``kteardown replicate``: test what a posting claims, with the posted patch."""

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kteardown.analysis.replication import FINDINGS, Replicated
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
from kteardown.model.clock import CLOCKS
from kteardown.model.result import Result
from kteardown.patches.posted import read
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.report.formats import text
from kteardown.report.material import Measured
from kteardown.report.publication import Publication
from kteardown.report.sections.published import claim_row, replication_table
from kteardown.run.resolve import experiment_of

_BASE = "debian:6.12"
"""The kernel of a script, where a posting has no patch that can be run."""
_IS = {True: "is", False: "are"}
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
    execution = options.Execution(jobs=jobs, verbose=verbose, quiet=quiet, json_file=json_file)
    reporter = execution.begin("replicate", ())
    known = load_posting(posting)
    assert known is not None
    if known.run is None and not script:
        claims = replicated(known, None)
        said = publication(known, [(None, claims)], None)
        execution.publish(said, partial(_show, known, claims, None), lambda: None)
        return
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
    found = start(experiments, reporter, execution, command=command_line(source))
    material = boot_rest(found, reporter, execution)
    size = ""
    if script:
        first = experiments[0]
        size = load_workload(first.workloads[0].workload, first.folder).law
        known = measured_with(known, script, size)
        text.brief(material, options.output())
    claimed = [(one.result, replicated(known, one.result, size)) for one in material.clocks]

    def show() -> None:
        for result, claims in claimed:
            _show(known, claims, result)
        reporter.note(f"the whole report: kteardown report {found.name}")

    said = publication(known, claimed, material)
    execution.publish(said, show, partial(gate, material, None))


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


def _show(posting: Posting, claims: Sequence[Replicated], result: Result | None) -> None:
    """Print what becomes of each claim on one clock."""
    table, console = replication_table(posting, claims, result), options.output()
    text.fitted(lambda most: text.show(text.first_rows(table, most), console), console, text.LINES // 2)


def publication(
    posting: Posting,
    claimed: Sequence[tuple[Result | None, Sequence[Replicated]]],
    material: Measured | None,
) -> Publication:
    """Return what the command says, for scripts.

    ``claimed``: what becomes of the claims by each result; None without a measurement.
    """
    details = {
        "posting": posting.name,
        "clocks": [
            {
                "clock": result.clock if result else None,
                "claims": [claim_row(one, posting) | {"interval": one.ours.ci} for one in claims],
            }
            for result, claims in claimed
        ],
    }
    headline = "\n".join(_headline(posting, claims, result) for result, claims in claimed)
    materials = () if material is None else (material,)
    return Publication("replicate", headline, materials=materials, details=details)


def _headline(posting: Posting, claims: Sequence[Replicated], result: Result | None) -> str:
    counts = Counter(claim.finding for claim in claims)
    parts = []
    for finding in filter(counts.get, FINDINGS):
        count = counts[finding]
        verb = ("replicates" if count == 1 else "replicate") if finding == "replicates" else ""
        parts.append(f"{count} {verb or f'{_IS[count == 1]} {finding}'}")
    where = f" on {CLOCKS[result.clock]}" if result else ""
    return f"Of the claims of {posting.name}{where}, {', '.join(parts)}."
