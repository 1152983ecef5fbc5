"""``kteardown try``: from a mail to one page that says what the patch does."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.cli.try_steps import check, measure, prepare
from kteardown.inputs.options import Designed, Kernels
from kteardown.patches.find_base import KNOWN
from kteardown.report import try_page
from kteardown.visible import echo

WhatArg = Annotated[
    str,
    typer.Argument(
        help="A mail, an mbox (also .gz), a folder of mails or patches, lore:MESSAGE-ID, or a git range: "
        "git:PATH@BASE..TOPIC."
    ),
]


def try_patch(
    what: WhatArg,
    kernels: Kernels,
    designed: Designed,
    execution: options.Execution,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            help="Run this workload. Default: those that execute most of what the patch changes. Repeatable.",
            autocompletion=complete.workloads,
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="Try only this base kernel: debian:6.12, tar:FILE, git:PATH@REV, or git:PATH, in which the "
            f"commit is found from which the patch was made. Repeatable. Default: {', '.join(KNOWN)}.",
            autocompletion=complete.sources,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Use the whole design of the workload's experiment, not the quick one."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be done; fetch no source, build and boot nothing."),
    ] = False,
) -> None:
    """Try a patch from a mailing list: find its base kernel and its workload, measure, print one page.

    Replies, older revisions and duplicates in the mails are left out, and the answer names them. The known
    sources are tried from the newest to the oldest. Configuration symbols that the patch
    needs are added to base and to the patched kernel.

    Examples:

      kteardown try ./v4-freezer.mbox --workload zombies

      kteardown try lore:20250716062639.1528066-1-zhangzihuan@kylinos.cn --dry-run

      kteardown try ./thread.mbox.gz --source git:~/linux --markdown reply.txt
    """
    reporter = execution.begin()
    tried, chosen = prepare(what, kernels, workload or [], source or [], reporter, fetch=not dry_run)
    text = try_page.plan(tried)
    echo(text, err=not dry_run, nl=False)
    show = partial(echo, "", nl=False)
    if not dry_run and tried.error is None:
        wanted = replace(kernels, config=[*(kernels.config or ()), *tried.config.fragments])
        quick = replace(designed, quick=designed.quick or not full)
        tried = measure(tried, chosen, wanted, quick, execution, reporter)
        text = try_page.page(tried)
        shown = try_page.first_page(tried, text) if sys.stdout.isatty() else text
        show = partial(echo, shown, nl=False)
    execution.publish(partial(try_page.written, tried, text), show, partial(check, tried, execution))
