"""``kteardown serve``: web pages about all runs, on this host only."""

from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.extras import need
from kteardown.paths import runs_dir

_PORT = 8377


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535)] = _PORT,
) -> None:
    need("serve", "`serve`")
    # Imported here, so that no other verb takes the time to import a web server.
    from kteardown.serve.app import address, listen, run

    out = options.output()
    listening = listen(port)
    with listening:
        out.print(f"{address(listening)} shows {runs_dir()}; press Ctrl-C to stop", soft_wrap=True)
        try:
            run(listening)
        except KeyboardInterrupt:
            out.print("stopped")
