"""`kteardown mcp` with guests, and the SDK's own client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from kteardown.paths import cache_dir
from unit.mcp.clients import Place, called, place

pytestmark = [pytest.mark.vm, pytest.mark.build]
PATIENCE_S = 600

SCRIPT = """\
#!/bin/sh
i=0
while [ $i -lt $N ]; do true; i=$((i + 1)); done
echo "counted to $N"
"""
ENDLESS = "#!/bin/sh\nwhile :; do :; done\n"
CLIENT = """\
import os, sys, anyio
from pathlib import Path
from mcp import Client
from kteardown.paths import cache_dir
from unit.mcp.clients import Place

async def main():
    place = Place(Path(sys.argv[1]), sys.argv[2])
    async with Client(place.real(KTEARDOWN_CACHE=sys.argv[3])) as client:
        arguments = {"script_path": "endless.sh", "source": ["image:bzImage"], "wait_s": 600}
        await client.call_tool("measure", arguments)

anyio.run(main)
"""


@pytest.fixture
def here(tmp_path: Path, base_image: Path) -> Place:
    """A root with two scripts and a kernel."""
    made = place(tmp_path)
    for name, text in {"count.sh": SCRIPT, "endless.sh": ENDLESS}.items():
        (made.root / name).write_text(text)
    (made.root / "bzImage").write_bytes(base_image.read_bytes())
    return made


def test_a_client_measures_a_script_and_reads_the_run(here: Place) -> None:
    lines: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")

    async def session() -> dict[str, Any]:
        async with Client(here.real(KTEARDOWN_CACHE=str(cache_dir()))) as client:
            arguments = {"script_path": "count.sh", "source": ["image:bzImage"], "wait_s": 1500}
            more = {"sizes": [20, 40, 80], "seeds": 1}
            result = await client.call_tool("measure", arguments | more, progress_callback=report)
            answer = result.structured_content
            assert isinstance(answer, dict)
            assert (answer["state"], answer["exit_code"]) == ("ended", 0), answer
            laws = "runs/0/results/instructions/laws"
            told = await called(client, "job_result", job=answer["job"], at=laws)
            assert {law["model"] for law in told["answer"]["value"]} == {"linear"}
            listed = await called(client, "list_runs")
            (run,) = listed["newest"]["value"]
            console = await called(client, "read_run", run=run["name"], part="console", boot=0)
            assert "Power down\n" in console["text"]["text"]
            page = await called(client, "read_run", run=run["name"])
            assert "measure-count" in page["text"]["text"]
            return answer

    answer: dict[str, Any] = anyio.run(session)
    assert "for one more N" in answer["headline"]["text"]
    assert any("Rehearsing count" in line for line in lines)
    here.wait_until_empty()


def test_no_guest_is_left_if_the_client_is_killed(here: Place) -> None:
    client = subprocess.Popen(
        [sys.executable, "-P", "-c", CLIENT, str(here.folder), here.mark, str(cache_dir())],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    end = time.monotonic() + PATIENCE_S
    while not any("qemu" in process.name() for process in here.processes()):
        assert time.monotonic() < end and client.poll() is None
        time.sleep(0.2)
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    here.wait_until_empty()
    assert not list(here.folder.glob("kteardown-mcp-*"))
