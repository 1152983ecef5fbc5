"""Slurm, by its commands: sbatch, squeue, scancel and sinfo; and its section of the configuration.

No accounting is needed.

Every value is an argument of its own or is quoted in the script, so that no shell reads a name. Of
the environment, jobs get only what is listed here.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

import kteardown
from kteardown import spawn
from kteardown.errors import LabError, MissingError
from kteardown.inputs.config import section
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir, shipped_table

_ENVIRONMENT = re.compile(r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TMPDIR|SLURM_CONF|SBATCH_\w+")
_TIMEOUT_S = 60.0
_FIELDS = "%i|%T|%N|%k|%r"
WORDS = shipped_table("slurm", Path(__file__).parent)
_TRANSIENT = re.compile("|".join(WORDS["transient"]), re.IGNORECASE)


def _fits(pattern: str, message: str) -> AfterValidator:
    """Return the check of a text that says ``message`` of one that is not as this pattern."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(message)
        return value

    return AfterValidator(check)


_Word = Annotated[
    str, _fits(r"[\w.,:@/+&|()*\[\]-]*", "has characters that a name in Slurm cannot have")
]
_Sha = Annotated[
    str, _fits("([0-9a-f]{64})?", "must be 64 hexadecimal digits, as printed by sha256sum")
]
_Absolute = Annotated[str, _fits("(/[^\0]*)?", "must be an absolute path")]
_Option = Annotated[str, _fits("--[^\0]*", "must be options of sbatch, each `--name=value`")]


class SlurmConfig(StrictModel):
    """The section ``[slurm]``; docs/cluster.md says what each setting is, and has an example."""

    partition: _Word = ""
    account: _Word = ""
    qos: _Word = ""
    constraint: _Word = ""
    qemu: _Sha = ""
    qemu_feature: bool = False
    wall: Literal["kvm", "mttcg"] = "kvm"
    python: _Absolute = ""
    minutes: Annotated[int, Field(ge=1)] = 120
    max_jobs: Annotated[int, Field(ge=1)] = 400
    attempts: Annotated[int, Field(ge=1)] = 5
    poll_s: Annotated[float, Field(gt=0)] = 2.0
    grace_s: Annotated[float, Field(ge=0)] = 10.0
    patience_s: Annotated[float, Field(ge=0)] = 60.0
    node_cache: _Absolute = ""
    lock_folder: _Absolute = ""
    lock_wait_s: Annotated[float, Field(ge=0)] = 600.0
    options: tuple[_Option, ...] = ()


def load_config(file: Path | None = None) -> SlurmConfig:
    """Return the section of the configuration. Raises InputError that names the setting."""
    return section("slurm", SlurmConfig, file)


class UnreachableError(Exception):
    """The scheduler does not answer now; it may later."""


@dataclass(frozen=True)
class Submission:
    """A job to be submitted. ``name`` is that of all jobs of a run, ``comment`` says which one it
    is.

    ``command`` is a module of kteardown, with its arguments.
    """

    name: str
    comment: str
    command: Sequence[str]
    output: str
    exclusive: bool
    memory_mb: int
    minutes: int
    qemu: str = ""
    """The SHA-256 of the QEMU that its node must have; empty: the node does not matter."""
    avoid: tuple[str, ...] = ()
    """Nodes that are not to be used."""
    node: str = ""
    """The only node that is to be used; empty: any."""


@dataclass(frozen=True)
class Job:
    id: str
    state: str
    node: str
    comment: str
    reason: str

    @property
    def live(self) -> bool:
        return self.state in WORDS["live"]


@dataclass(frozen=True)
class Node:
    name: str
    state: str
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether jobs can run there, now or when those before them have ended."""
        return self.state.rstrip("*~#!%$@^-+").lower() in WORDS["usable"]


class Slurm:
    """The scheduler of this machine's cluster, with the settings and the partition of the user.

    Each call raises UnreachableError if it does not answer, LabError if it refuses.
    """

    def __init__(self, config: SlurmConfig, partition: str = "") -> None:
        self._config = config
        self._partition = partition or config.partition
        self.words = f"Slurm's partition {self._partition}" if self._partition else "Slurm"
        """The name of the cluster for readers."""

    def submit(self, job: Submission) -> str:
        return _run(self.sbatch(job), script(self._config, job.command)).strip().split(";")[0]

    def sbatch(self, job: Submission) -> list[str]:
        """Return the command that submits ``job``; its script is the standard input."""
        config = self._config
        build = f"qemu-{job.qemu[:12]}" if config.qemu_feature else ""
        features = [config.constraint, build] if job.qemu else []
        # Without patterns, which Slurm would replace.
        output = job.output.replace("\\", "\\\\").replace("%", "%%")
        constraint = "&".join(
            f"({feature})" if "|" in feature else feature for feature in features if feature
        )
        settings = {
            "partition": self._partition,
            "account": config.account,
            "qos": config.qos,
            "constraint": constraint,
            "exclude": ",".join(job.avoid),
            "nodelist": job.node,
        }
        return [
            *("sbatch", "--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--chdir=/"),
            *(f"--job-name={job.name}", f"--comment={job.comment}", f"--time={job.minutes}"),
            *(f"--output={output}", "--open-mode=append", "--input=/dev/null"),
            # The memory of a job that has its node for itself is all of it, also where a default is
            # less.
            *(
                ["--exclusive", "--mem=0"]
                if job.exclusive
                else ["--cpus-per-task=1", f"--mem={job.memory_mb}M"]
            ),
            *(f"--{name}={value}" for name, value in settings.items() if value),
            *config.options,
        ]

    def jobs(self, name: str) -> list[Job]:
        text = _run(
            ["squeue", "--noheader", "--states=all", f"--name={name}", f"--format={_FIELDS}"]
        )
        rows = (line.split("|", 4) for line in text.splitlines())
        return [Job(*(field.strip() for field in row)) for row in rows if len(row) == 5]

    def cancel(self, name: str) -> None:
        _run(["scancel", "--quiet", f"--name={name}"])

    def nodes(self) -> list[Node]:
        where = [f"--partition={self._partition}"] if self._partition else []
        text = _run(["sinfo", "--Node", "--noheader", "--format=%N|%T|%E", *where])
        rows = (line.split("|", 2) for line in text.splitlines())
        by_name = {
            row[0].strip(): Node(*(field.strip() for field in row)) for row in rows if len(row) == 3
        }
        return list(by_name.values())


def script(config: SlurmConfig, command: Sequence[str]) -> str:
    """Return the script of a job that runs ``command``, a module of kteardown with its
    arguments."""
    # Every word is quoted. Nodes with the same Python use this kteardown.
    folder = str(Path(kteardown.__file__).resolve().parents[1])
    path = "" if config.python else f"export PYTHONPATH={shlex.quote(folder)}\n"
    words = spawn.python("-m", *command, program=config.python)
    return f"#!/bin/sh\n{path}exec {shlex.join(words)}\n"


def _run(argv: Sequence[str], text: str | None = None) -> str:
    environment = {
        name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)
    }
    environment["KTEARDOWN_CACHE"] = str(cache_dir().absolute())
    try:
        done = spawn.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            env=environment,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise MissingError(f"{argv[0]} is not installed", ["slurm-client"]) from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{argv[0]} did not answer within {_TIMEOUT_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
    message = lines[-1].removeprefix(f"{argv[0]}: ").removeprefix("error: ").removeprefix("fatal: ")
    if _TRANSIENT.search(done.stderr):
        raise UnreachableError(message)
    hint = "check --on, the section [slurm] of the configuration (docs/cluster.md), and `sinfo`."
    if "limit" in message.lower():
        hint = (
            "set max_jobs, or minutes, to what the cluster allows (docs/cluster.md), then resume "
            "the run."
        )
    raise LabError(f"{argv[0]}: {message}", hint=hint)
