"""What each node of a cluster is like, found by one job on each: ``kteardown doctor --on slurm``.

The job is this module: ``python -m kteardown.run.survey FILE CACHE NODE_CACHE`` writes what it finds to FILE.
"""

import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from pydantic import ValidationError

from kteardown.errors import LabError
from kteardown.inputs.config import SlurmConfig
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir, replace_text
from kteardown.run.executors.node_job import qemu_hash
from kteardown.run.executors.slurm import Job, Node, Slurm, Submission, UnreachableError
from kteardown.rundir.directory import writing
from kteardown.vm import host
from kteardown.vm.acceleration import best_wall_acceleration
from kteardown.vm.host import qemu_version

_JOB_MB = 512
_PAUSE_S = 0.5


class NodeFacts(StrictModel):
    qemu: str
    """The SHA-256 of QEMU for x86-64; empty if there is none."""
    qemu_version: str
    kvm: str
    """Why guests do not run on KVM; empty if a probe guest ran."""
    cores: int
    cpu: str
    memory_mb: int
    disk_mb: int
    """What is free where the node keeps copies of kernels."""
    cache: bool
    """Whether the node sees the shared cache."""
    load: float
    smt: str
    governor: str


class Surveyed(StrictModel):
    """A node with what was found, or with the reason why nothing was."""

    node: str
    state: str
    found: NodeFacts | None = None
    reason: str = ""


def look(cache: Path, node_cache: Path) -> NodeFacts:
    facts = host.facts()
    cpu = facts["cpu"]
    try:
        qemu, version = qemu_hash(DEFAULT_ARCH), qemu_version(DEFAULT_ARCH)
        kvm = best_wall_acceleration(DEFAULT_ARCH, cache=cache).reason
    except LabError as error:
        qemu, version, kvm = "", "", error.message
    there = next(each for each in (node_cache, *node_cache.parents) if each.exists())
    return NodeFacts(
        qemu=qemu,
        qemu_version=version,
        kvm=kvm.removeprefix("KVM is not used: ").partition(". ")[0],
        cores=cpu["topology"]["cores"] or cpu["online"] or 0,
        cpu=cpu["model"] or "",
        memory_mb=facts["memory_kb"] // 1024,
        disk_mb=psutil.disk_usage(str(there)).free >> 20,
        cache=cache.is_dir(),
        load=os.getloadavg()[0],
        smt=cpu["smt"] or "",
        governor=cpu["governor"] or "",
    )


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
    folder = root / f".{name}"
    with writing(folder):
        folder.mkdir(parents=True)
    try:
        nodes = scheduler.nodes()
        for node in nodes:
            files = [str(folder / f"{node.name}.json"), str(cache_dir()), config.node_cache or "/tmp"]
            submission = Submission(
                name=name,
                comment=node.name,
                command=("kteardown.run.survey", *files),
                output=str(folder / f"{node.name}.log"),
                exclusive=False,
                memory_mb=_JOB_MB,
                minutes=2,
                node=node.name,
            )
            scheduler.submit(submission)
        left = limit_s
        while left > 0 and not all((folder / f"{node.name}.json").is_file() for node in nodes):
            sleep(_PAUSE_S)
            left -= _PAUSE_S
            if left < limit_s - 5 and not any(job.live for job in scheduler.jobs(name)):
                break
        jobs = {job.comment: job for job in scheduler.jobs(name)}
        return [_surveyed(node, folder, jobs.get(node.name)) for node in nodes]
    except UnreachableError as error:
        raise LabError(
            f"{scheduler.words} does not answer: {error}", hint="check with `sinfo` that Slurm runs."
        ) from error
    finally:
        with suppress(LabError, UnreachableError):
            scheduler.cancel(name)
        shutil.rmtree(folder, ignore_errors=True)


def _surveyed(node: Node, folder: Path, job: Job | None) -> Surveyed:
    try:
        found = NodeFacts.model_validate_json((folder / f"{node.name}.json").read_bytes())
        return Surveyed(node=node.name, state=node.state, found=found)
    except (OSError, ValidationError):
        pass
    log = folder / f"{node.name}.log"
    lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
    said = lines[-1] if lines else (job.reason if job else "the job is gone")
    state = f"the job is {job.state}: " if job else ""
    return Surveyed(node=node.name, state=node.state, reason=f"{state}{said}")


def main(arguments: Sequence[str]) -> int:
    file, cache, node_cache = map(Path, arguments)
    replace_text(file, look(cache, node_cache).model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
