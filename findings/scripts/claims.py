"""The published results: each folder of ``findings/results`` is a claim or a hunt.

- ``claim.toml``, written by hand: the command that measures the result, and the tables and
  sentences that show it;
- ``result.json``: the result, reduced to what tables can show. A run on both clocks has one for
  each clock, in ``instructions/`` and ``wall/``. A hunt has ``hunt.json`` instead;
- ``measured.json``: the commit at which it was measured, when, how long that took, and the kernels;
- ``boot.json``: what the first boot of each kernel counted, to the digit;
- ``README.md``: the page of the result, made by ``figures.py tables``.

A figure belongs to the commit that measured it. ``Evidence.changed`` lists the inputs that differ
from that commit.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kteardown.model.clock import BOTH, Clock
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from contents import measured  # noqa: E402 (after the path to it)

RESULTS = "findings/results"
AGENT = ("agent/Makefile", "agent/core", "agent/lib", "agent/workload.h")
"""The code of the agent that every guest runs."""


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Below(_Spec):
    """A place in a text without markers: below the paragraph of ``file`` that begins with
    ``below``."""

    file: Annotated[str, Field(alias="in")]
    below: str


class TableSpec(_Spec):
    """A table: its rows and columns are named by axes, which are ``metric``, ``kernel`` or a
    parameter.

    ``cell`` and ``base`` are texts with figures in braces, see ``tables``; ``base`` is for cells of
    the base kernel.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    where: dict[str, tuple[ParamValue, ...]] = {}
    cell: str = "{value}"
    base: str = "{value}"
    unit: str = ""
    divide: Annotated[float, Field(gt=0)] = 1
    """How many of what a cell is about the value is for, such as the pages of 12 MB."""
    margin: Annotated[float, Field(gt=0)] = 0.05
    """Up to which share more, or less where more is better, a change counts as not worse
    (``{judged}``)."""
    labels: dict[str, str] = {}
    clock: Clock | None = None
    terminal: bool = False
    """The part of the report on a terminal that is about these metrics, instead of a table."""
    findings: bool = False
    """What became of the claims of the posting that the command replicates, instead of a table of
    metrics."""
    verdicts: bool = False
    """The verdict of each headline metric over all its points, a row each, with a column for each
    variant."""
    both_clocks: bool = False
    """Both changes of these metrics and how they relate, as a report of both clocks has them."""
    shown: tuple[Below, ...] = ()


class Sentence(_Spec):
    """A sentence of ``file`` in which every ``{...}`` is a figure."""

    file: Annotated[str, Field(alias="in")]
    text: str
    unit: str = ""


class ClaimSpec(_Spec):
    """A whole ``claim.toml``."""

    about: str
    command: str
    tables: dict[str, TableSpec] = {}
    sentences: tuple[Sentence, ...] = ()


class Confirmed(_Spec):
    """What one boot of each kernel counted later: ``differs`` is empty if it was equal to the
    digit."""

    commit: str
    date: str
    differs: str = ""


class Measured(_Spec):
    """A whole ``measured.json``. ``kernels`` has the SHA-256 of each image; ``duration_s`` is the
    time of the whole command, builds included."""

    commit: str
    date: str
    command: str
    duration_s: float = 0
    compiler: str = ""
    kernels: dict[str, str] = {}
    confirmed: Confirmed | None = None


@dataclass(frozen=True)
class Evidence:
    """One folder of ``findings/results``: a claim, or a hunt."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.root / RESULTS / self.name

    @cached_property
    def measured(self) -> Measured | None:
        """How it was measured; None if it was not."""
        file = self.folder / "measured.json"
        return Measured.model_validate_json(file.read_bytes()) if file.is_file() else None

    @property
    def command(self) -> str:
        """The command that measures it."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files and folders of the tree that decide its figures."""
        raise NotImplementedError

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """The inputs that differ from the commit at which it was measured or last confirmed."""
        if self.measured is None:
            return ()
        seen = self.measured.confirmed or self.measured
        return changed_since(self.root, seen.commit, self.inputs)

    def keep(self, measured: Measured) -> None:
        """Write ``measured.json``."""
        text = measured.model_dump_json(indent=1, exclude_defaults=True)
        (self.folder / "measured.json").write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Claim(Evidence):
    """A result of an experiment."""

    spec: ClaimSpec

    @property
    def command(self) -> str:
        """The command that measures it."""
        return self.spec.command

    @cached_property
    def results(self) -> Mapping[Clock, Result]:
        """The result on each clock."""
        files = result_files(self.folder)
        results = [Result.model_validate_json(file.read_bytes()) for file in files]
        return {result.clock: result for result in results}

    @property
    def inputs(self) -> tuple[str, ...]:
        """The agent, the configuration, and what the command and the result name.

        These are the experiment, the script with its files, the workloads and the series.
        """
        paths = {*AGENT, "kernels"}
        for word in shlex.split(self.command):
            paths |= {f"experiments/{word}.toml", word.partition("@")[0].removeprefix("./")}
            if word.startswith("postings/scripts/"):
                paths |= {"agent/script", "agent/waits"}
        for result in self.results.values():
            for workload in {c.workload for c in result.comparisons}:
                paths |= {f"workloads/{workload}.toml", f"agent/workloads/{workload}"}
            for variant in result.kernels:
                series = variant.partition(" on ")[0].partition("@")[0].removeprefix("./")
                paths |= {f"series/{series}", series}
        return tuple(sorted(path for path in paths if path and (self.root / path).exists()))


def claims(root: Path) -> list[Claim]:
    """Every claim, by name. Raises ValueError that names a file that is wrong."""
    return [load(root, file.parent.name) for file in sorted(root.glob(f"{RESULTS}/*/claim.toml"))]


def load(root: Path, name: str) -> Claim:
    """The claim in ``findings/results/NAME``. Raises ValueError that names the file."""
    file = root / RESULTS / name / "claim.toml"
    try:
        spec = ClaimSpec.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"{file.relative_to(root)}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{file.relative_to(root)}: {error}") from error
    return Claim(root, name, spec)


def result_files(folder: Path) -> list[Path]:
    """The results in a folder: one, or one for each clock."""
    return sorted(folder.glob("result.json")) or sorted(
        file for clock in BOTH for file in folder.glob(f"{clock}/result.json")
    )


def changed_since(root: Path, commit: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``paths`` in which a file differs from ``commit``.

    Only what can change a figure counts: figures are written into the message of a patch.
    """
    command = ["git", "diff", "--name-only", commit.rstrip("+"), "--", *paths, ":!series/**/*.md"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        return (f"everything: commit {commit} is not in this repository",)
    names = [name for name in done.stdout.splitlines() if not _is_same(root, commit, name)]
    return tuple(path for path in paths if any(f"{name}/".startswith(f"{path}/") for name in names))


def _is_same(root: Path, commit: str, name: str) -> bool:
    """Whether a file that differs from ``commit`` differs only in what cannot change a figure."""
    if not (root / name).is_file():
        return False
    command = ["git", "show", f"{commit.rstrip('+')}:{name}"]
    before = subprocess.run(command, cwd=root, capture_output=True, check=False)
    now = (root / name).read_bytes()
    return not before.returncode and measured(name, before.stdout) == measured(name, now)


def head(root: Path) -> str:
    """The present commit, short. Raises ValueError if what decides figures is not committed."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()

    deciding = ("agent", "experiments", "kernels", "plugins", "series", "src", "workloads")
    present = [name for name in deciding if (root / name).exists()]
    if dirty := git("status", "--porcelain", "--", *present):
        raise ValueError(f"commit first, since a figure belongs to a commit:\n{dirty}")
    return git("rev-parse", "--short=8", "HEAD")
