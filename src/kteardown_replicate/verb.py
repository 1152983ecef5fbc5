"""``kteardown replicate``: test what a posting claims, with the posted patch."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.inputs.options import Designed, Scripted
from kteardown.inputs.published import Posting, load_posting
from kteardown.model.result import Result
from kteardown.report.formats import text
from kteardown_replicate.claims import Replicated
from kteardown_replicate.flow import plan_replication
from kteardown_replicate.flow import replicate as replicate_posting
from kteardown_replicate.table import replication_table

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
    loaded = load_posting(posting)
    assert loaded is not None
    planned = plan_replication(loaded, designed, scripted, reporter, patch=patch, script=script)
    answer = replicate_posting(planned, execution.runner(reporter, command_line(planned.source)))

    def show() -> None:
        if script and answer.material is not None:
            text.brief(answer.material, options.output())
        for result, claims in answer.claimed:
            _show(answer.posting, claims, result)
        if answer.material is not None:
            reporter.note(f"the whole report: kteardown report {answer.material.name}")

    execution.publish(answer.publication(), show, answer.check)


def command_line(source: str) -> str:
    """Return the command that repeats this one: without the file of a patch that is the posted
    one."""
    words = iter(sys.argv[1:])
    kept = ["kteardown"]
    for word in words:
        if word in _NOT_REPEATED:
            next(words, None)
        elif word.partition("=")[0] not in _NOT_REPEATED:
            kept.append(word)
    return shlex.join([*kept, *(("--patch", Path(source).name) if source else ())])


def _show(posting: Posting, claims: Sequence[Replicated], result: Result | None) -> None:
    """Print what becomes of each claim on one clock."""
    table = replication_table(posting, claims, result)
    console = options.output()
    text.fitted(
        lambda most: text.show(text.first_rows(table, most), console), console, text.LINES // 2
    )
