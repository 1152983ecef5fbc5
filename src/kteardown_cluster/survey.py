"""What each node of a cluster has, found by a job on it."""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from kteardown.door import Entry
from kteardown.errors import LabError
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir
from kteardown.rundir.directory import writing
from kteardown_cluster.node_job import NodeFacts
from kteardown_cluster.slurm import Job, Node, Slurm, SlurmConfig, Submission, UnreachableError

QEMU_MB = 512
"""The memory of a job beyond that of its guest."""


class Surveyed(StrictModel):
    """A node with what was found, or with the reason why nothing was."""

    node: str
    state: str
    found: NodeFacts | None = None
    reason: str = ""


def survey(
    scheduler: Slurm,
    config: SlurmConfig,
    root: Path,
    *,
    limit_s: float = 60.0,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Surveyed]:
    """Look at every node by a job; ``root`` is a folder that the nodes share. Raises LabError.

    A node whose job has not ended after ``limit_s`` is returned with what the scheduler says of it.
    """
    name = f"kt-survey-{secrets.token_hex(4)}"
    folder = Entry(root, (f".{name}",))
    with writing(folder):
        root.mkdir(parents=True, exist_ok=True)
        folder.make_new_folder()
    try:
        nodes = scheduler.nodes()
        for node in nodes:
            files = [
                str(folder / f"{node.name}.json"),
                str(cache_dir()),
                config.node_cache or "/tmp",
            ]
            submission = Submission(
                name=name,
                comment=node.name,
                command=("kteardown_cluster.node_job", *files),
                output=str(folder / f"{node.name}.log"),
                exclusive=False,
                memory_mb=QEMU_MB,
                minutes=2,
                node=node.name,
            )
            scheduler.submit(submission)
        left = limit_s
        while left > 0 and not all((folder / f"{node.name}.json").exists() for node in nodes):
            sleep(0.5)
            left -= 0.5
            if left < limit_s - 5 and not any(job.live for job in scheduler.jobs(name)):
                break
        jobs = {job.comment: job for job in scheduler.jobs(name)}
        return [_surveyed(node, folder, jobs.get(node.name)) for node in nodes]
    except UnreachableError as error:
        raise LabError(
            f"{scheduler.words} does not answer: {error}",
            hint="check with `sinfo` that Slurm runs.",
        ) from error
    finally:
        with suppress(LabError, UnreachableError):
            scheduler.cancel(name)
        folder.remove_tree()


def _surveyed(node: Node, folder: Entry, job: Job | None) -> Surveyed:
    with suppress(OSError, ValidationError):
        facts = NodeFacts.model_validate_json((folder / f"{node.name}.json").content())
        return Surveyed(node=node.name, state=node.state, found=facts)
    lines = text(folder / f"{node.name}.log").strip().splitlines()
    last_line = lines[-1] if lines else (job.reason if job else "the job is gone")
    state = f"the job is {job.state}: " if job else ""
    return Surveyed(node=node.name, state=node.state, reason=f"{state}{last_line}")


def text(file: Entry) -> str:
    """Return the text of a file, or an empty text without it."""
    try:
        return file.text()
    except OSError:
        return ""
