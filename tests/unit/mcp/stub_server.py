"""The server with ``stub_command`` in place of kteardown: ``stub_server ROOT LOCK [HOURS]``."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from kteardown import spawn
from kteardown_mcp.roots import Roots
from kteardown_mcp.server import serve

STUB = Path(__file__).with_name("stub_command.py")

if __name__ == "__main__":
    spawn.kteardown = lambda *words: [sys.executable, "-P", str(STUB), *words]
    hours = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    anyio.run(serve, Roots([Path(sys.argv[1])]), Path(sys.argv[2]), hours)
