"""``kteardown prune``: remove files from the cache."""

from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.errors import InputError
from kteardown.kernels.cache import Cache
from kteardown.paths import cache_dir


def prune(
    kernels: Annotated[list[str] | None, typer.Argument(autocompletion=complete.kernels)] = None,
    older_than_days: Annotated[
        float | None, typer.Option("--older-than", min=0, metavar="DAYS")
    ] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    if not kernels and older_than_days is None and not everything:
        raise InputError(
            "you named nothing to remove",
            hint="name kernels, or add --older-than DAYS or --all.",
        )
    reporter = options.reporter(verbose=False, quiet=False)
    removed = Cache(cache_dir(), reporter).prune(
        keys=tuple(kernels or ()),
        older_than_days=older_than_days,
        everything=everything,
        dry_run=dry_run,
    )
    out = options.output()
    for entry in removed:
        out.print(
            f"{'would remove' if dry_run else 'removed'} {entry}", highlight=False, soft_wrap=True
        )
    if not removed:
        out.print("nothing to remove")
