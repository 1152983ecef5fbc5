"""Clients of the SDK, each with a server process, and the processes that belong to a test."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from unit.mcp import stub_server

PATIENCE_S = 120
_MARK = "KTEARDOWN_TEST_OF_MCP"


@dataclass(frozen=True)
class Place:
    """A folder with a root for clients, and a mark by which all processes of its servers are
    known."""

    folder: Path
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def environment(self) -> dict[str, str]:
        """What servers get: runs, queue and cache of their own."""
        names = ("RUNS", "QUEUE", "CACHE")
        own = {f"KTEARDOWN_{name}": str(self.folder / name.lower()) for name in names}
        path = {"PYTHONPATH": str(Path(__file__).parents[2])}
        return {_MARK: self.mark, **own, **path, "TMPDIR": str(self.folder)}

    def stub(self, *more: str) -> StdioServerParameters:
        """Return how the server is started whose jobs are the stub."""
        program = str(Path(stub_server.__file__))
        lock = str(self.folder / "queue/mcp.lock")
        arguments = ["-P", program, str(self.root), lock, *more]
        return self._started(arguments, self.environment)

    def real(self, *options: str, **more: str) -> StdioServerParameters:
        """Return how `kteardown mcp` is started."""
        arguments = ["-P", "-m", "kteardown", "mcp", "--root", str(self.root), *options]
        return self._started(arguments, {**self.environment, **more})

    def _started(
        self, arguments: list[str], environment: Mapping[str, str]
    ) -> StdioServerParameters:
        # The project's own variables, such as that of its cache, are not among those that a client
        # passes on.
        return StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(environment), cwd=self.folder
        )

    def processes(self) -> list[psutil.Process]:
        """Return all processes that a server of this place started, and the servers."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            except OSError:
                continue
            if f"{_MARK}={self.mark}".encode() in environment and process.pid != os.getpid():
                found.append(process)
        return found

    def wait_until_empty(self) -> None:
        """Wait until no process is left. Fails after some time, with those that are."""
        end = time.monotonic() + PATIENCE_S
        while left := self.processes():
            assert time.monotonic() < end, [process.cmdline() for process in left]
            time.sleep(0.1)


def place(folder: Path) -> Place:
    """Make a place."""
    made = Place(folder)
    made.root.mkdir()
    return made


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that does not fail, and return what it says."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails, and return its message."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))
