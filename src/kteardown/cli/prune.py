"""``kteardown prune``: give disk space back."""

from __future__ import annotations

from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.errors import InputError
from kteardown.kernels.cache import Cache
from kteardown.paths import cache_dir


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=prune.__doc__)(prune)


def prune(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(help="Kernels by name (`kteardown list kernels`).", autocompletion=complete.kernels),
    ] = None,
    older_than_days: Annotated[
        float | None,
        typer.Option("--older-than", min=0, metavar="DAYS", help="All not used for so many days."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every kernel, tree and download.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, remove nothing.")] = False,
) -> None:
    """Remove kernels, their build trees and unpacked sources from the cache. Runs are never touched."""
    if not kernels and older_than_days is None and not everything:
        raise InputError("prune what?", hint="name kernels, or give --older-than DAYS or --all.")
    removed = Cache(cache_dir()).prune(
        keys=tuple(kernels or ()), older_than_days=older_than_days, everything=everything, dry_run=dry_run
    )
    out = options.output()
    for entry in removed:
        out.print(f"{'would remove' if dry_run else 'removed'} {entry}", highlight=False, soft_wrap=True)
    if not removed:
        out.print("nothing to remove")
