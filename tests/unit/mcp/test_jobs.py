"""Jobs of a server, in the process of the test. ``test_server`` has them in a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from kteardown import spawn
from kteardown.errors import InputError
from kteardown_mcp.commands import GivenFile, NamedPath, ToolCommand
from kteardown_mcp.jobs import Jobs
from kteardown_mcp.roots import Roots
from unit.mcp import stub_server

Body = Callable[[Jobs], Coroutine[Any, Any, None]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Body], None]:
    """Run a test with jobs whose command is the stub."""
    stub = str(stub_server.STUB)
    monkeypatch.setattr(spawn, "kteardown", lambda *words: [sys.executable, "-P", stub, *words])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def with_jobs(body: Body) -> None:
        async with anyio.create_task_group() as group:
            jobs = Jobs(group, tmp_path / "queue/lock", 60)
            await body(jobs)
            jobs.close()

    return lambda body: anyio.run(with_jobs, body)


def script(text: str) -> ToolCommand:
    return ToolCommand(("measure", GivenFile("a.sh", text.encode(), "dir/a.sh")))


async def ignore(_seconds: float, _line: str) -> None:
    return


def test_a_file_is_named_as_the_client_knows_it(run: Callable[[Body], None]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.start("measure", script("print"))
        assert job.asked.command == "kteardown measure dir/a.sh"
        await jobs.wait(job, 60, ignore)
        assert (job.state, job.exit_code) == ("ended", 0)
        assert job.answer["words"][:2] == ["measure", "a.sh"]
        assert job.answer["repeat"] == "kteardown measure a.sh"
        assert job.answer["environment"]["KTEARDOWN_SYSTEM_PROGRAMS"] == "1"

    run(body)


def test_the_content_of_a_mail_is_forgotten(run: Callable[[Body], None]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.start("measure", script("print"))
        await jobs.wait(job, 60, ignore)
        assert job.asked.words == ("measure", "dir/a.sh")

    run(body)


def test_a_path_that_is_refused_by_then_ends_the_job(
    run: Callable[[Body], None], tmp_path: Path
) -> None:
    image = tmp_path / "bzImage"

    async def body(jobs: Jobs) -> None:
        image.touch()
        roots = Roots([tmp_path])
        path = NamedPath("--source=image:", "bzImage", roots.plain)
        path.word()
        first = jobs.start("measure", script("print"))
        job = jobs.start("measure", ToolCommand(("measure", path)))
        image.unlink()
        image.symlink_to("/etc/hostname")
        await jobs.wait(job, 60, ignore)
        assert (first.exit_code, job.exit_code) == (0, None)
        assert "'bzImage' is refused" in job.why
        assert job.asked.command == "kteardown measure --source=image:bzImage"

    run(body)


def test_two_servers_have_jobs_of_other_names(run: Callable[[Body], None]) -> None:
    names = []

    async def body(jobs: Jobs) -> None:
        names.append(jobs.start("measure", script("print")).id)

    for _ in range(2):
        run(body)
    assert len({*names}) == 2


def test_nothing_is_left_of_a_job(run: Callable[[Body], None], tmp_path: Path) -> None:
    async def body(jobs: Jobs) -> None:
        for text in ("print", "exit 3"):
            await jobs.wait(jobs.start("measure", script(text)), 60, ignore)

    run(body)
    assert [path.name for path in tmp_path.iterdir()] == ["queue"]


def test_a_job_that_has_not_begun_is_cancelled_at_once(run: Callable[[Body], None]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.start("measure", script("sleep"))
        jobs.cancel(job)
        await jobs.wait(job, 60, ignore)
        assert (job.state, list(job.lines)) == ("cancelled", [])
        jobs.cancel(job)
        assert job.state == "cancelled"

    run(body)


def test_the_seconds_of_progress_never_go_back(run: Callable[[Body], None]) -> None:
    told: list[tuple[float, str]] = []

    async def tell(seconds: float, line: str) -> None:
        told.append((seconds, line))

    async def body(jobs: Jobs) -> None:
        first = jobs.start("measure", script("print"))
        second = jobs.start("measure", script("print"))
        await jobs.wait(second, 60, tell)
        assert first.is_over

    run(body)
    assert sorted(told) == told
    assert "jobs before it: 1" in told[0][1]
    assert any(line == "stub: begins" for _, line in told)


def test_only_the_newest_jobs_that_ended_are_remembered(run: Callable[[Body], None]) -> None:
    async def body(jobs: Jobs) -> None:
        started = []
        for _ in range(25):
            job = jobs.start("measure", script("print"))
            started.append(job.id)
            jobs.cancel(job)
            await jobs.wait(job, 60, ignore)
        assert jobs.named(started[-1]).is_over
        with pytest.raises(InputError, match=f"there is no job '{started[0]}'"):
            jobs.named(started[0])

    run(body)


def test_a_lock_that_is_a_link_is_not_opened(run: Callable[[Body], None], tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    os.symlink(tmp_path / "other", tmp_path / "queue/lock")

    async def body(jobs: Jobs) -> None:
        job = jobs.start("measure", script("print"))
        await jobs.wait(job, 60, ignore)
        assert (job.state, job.exit_code) == ("ended", None)
        assert "could not be started" in job.why

    run(body)
    assert not (tmp_path / "other").exists()
