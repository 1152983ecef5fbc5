"""``kteardown serve``: a small local page over the run directory."""

from __future__ import annotations

from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.extras import need
from kteardown.paths import runs_dir

_PORT = 8377


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=serve.__doc__)(serve)


def serve(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 is any free port.")
    ] = _PORT,
) -> None:
    """Serve a page on this machine: all runs, any two compared, the history, and a run as it goes on.

    It listens on loopback alone, answers only to the names 127.0.0.1 and localhost, shows reports and
    nothing else, and writes nothing. Every user of this machine can read it. From another machine:
    ssh -L 8377:localhost:8377 HOST, then http://localhost:8377/ there. Ctrl-C ends it.

    Examples:

      kteardown serve

      KTEARDOWN_RUNS=./runs kteardown serve --port 0
    """
    need("serve", "`serve`")
    # Imported here: no other verb should wait for a web server to be imported.
    from kteardown.serve import server

    out = options.output()
    listening = server.listen(port)
    with listening:
        out.print(
            f"{server.address(listening)} shows {runs_dir()}; Ctrl-C ends it", highlight=False, soft_wrap=True
        )
        try:
            server.run(listening)
        except KeyboardInterrupt:
            out.print("stopped", highlight=False)
