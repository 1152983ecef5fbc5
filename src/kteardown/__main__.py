"""The program ``kteardown``, also as ``python -m kteardown``."""

import os
import signal


def main() -> None:
    """Run the command line and exit with its exit code."""
    # The imports take longer than many verbs; until they are done there is nothing to clean up.
    signal.signal(signal.SIGINT, _end)
    from kteardown.cli import main as run

    run()


def _end(*_: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
