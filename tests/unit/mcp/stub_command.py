"""A command in place of kteardown, for tests of servers: what it does stands in the script that it
is given.

``sleep``: sleeps, with a process in a session of its own that ignores SIGINT and SIGTERM.
``print``: prints a line on each stream and writes a JSON. ``exit N``: exits. Everything else: it
prints its arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

STUBBORN = "trap '' INT TERM; sleep 1000 & wait; sleep 1000"


def main() -> None:
    """Do what the script says."""
    words = sys.argv[1:]
    scripts = [Path(word) for word in words if "/given/" in word]
    does = scripts[0].read_text().split() if scripts else []
    print("stub: begins", file=sys.stderr, flush=True)
    if does[:1] == ["sleep"]:
        subprocess.Popen(["sh", "-c", STUBBORN], start_new_session=True)
        print("stub: sleeps", file=sys.stderr, flush=True)
        time.sleep(1000)
    if does[:1] == ["exit"]:
        sys.exit(int(does[1]))
    print(f"a page \x1b[2J of {words[0]}")
    for word in words:
        if word.startswith("--json="):
            repeat = " ".join(["kteardown", *words])
            answer = {
                "repeat": repeat,
                "headline": "\x1b[31mred",
                "words": words,
                "environment": dict(os.environ),
                "many": list(range(5000)),
            }
            Path(word.partition("=")[2]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
