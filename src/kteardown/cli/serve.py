"""``kteardown serve``: web pages about all runs, on this host only."""

from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.extras import need
from kteardown.paths import runs_dir

_PORT = 8377


def serve(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 is any free port.")
    ] = _PORT,
) -> None:
    """Serve web pages on this host: all runs, two runs compared, the history, and the progress of a run.

    The server listens only on the loopback interface and answers only requests for 127.0.0.1 and localhost.
    It shows reports and writes nothing. Every user of this host can read the pages. From another computer:
    ssh -L 8377:localhost:8377 HOST, then open http://localhost:8377/ there. Ctrl-C stops the server.

    Examples:

      kteardown serve

      KTEARDOWN_RUNS=./runs kteardown serve --port 0
    """
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
