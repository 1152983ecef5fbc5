"""``kteardown mcp``: a server for programs, on the standard streams."""

from pathlib import Path
from typing import Annotated

import typer

from kteardown.errors import InputError
from kteardown.extras import install_command, need
from kteardown.paths import queue_dir


def mcp(
    root: Annotated[list[Path] | None, typer.Option("--root", metavar="FOLDER")] = None,
    hours: Annotated[float, typer.Option("--hours", metavar="HOURS", min=0.01, max=168)] = 4,
) -> None:
    need("mcp", "`kteardown mcp`")
    try:
        import anyio

        from kteardown_mcp.server import serve
    except ImportError as error:
        raise InputError(
            f"the installed mcp is not of version 2: {error}",
            hint=f"replace it: {install_command(['mcp>=2,<3'])}",
        ) from error
    from kteardown_mcp.roots import Roots

    anyio.run(serve, Roots.of(root or ()), queue_dir() / "mcp.lock", hours)
