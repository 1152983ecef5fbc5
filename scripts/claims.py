"""What is published: each folder of ``results/`` is a claim with the command that measures it, or a
hunt.

- ``claim.toml``, written by hand: the command, and the tables and sentences that are made from the
  result;
- ``result.json``: the result, reduced to what tables can show. With ``--clock both`` there is one
  for each clock, ``instructions/result.json`` and ``wall/result.json``;
- ``measured.json``: the commit, the agent and the kernels with which it was measured, when, and the
  content id of everything in this tree that it depends on;
- ``confirmed.json``, written by ``confirm.py``: the same of a few boots that showed whether it
  still holds.

A figure belongs to the commit that measured it, and is not false when the tree changes: the result
is then older than what it depends on. What a claim depends on is derived from its command, so that
nothing can be forgotten, by ``ids``. Kernel releases and the version of QEMU are no part of this:
they differ by machine.
"""

from __future__ import annotations

import json
import shlex
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typer import TyperException
from typer.main import get_command

from content_ids import agent_id, agent_sources, files_id, listed, text_id, workload_id
from kteardown import analysis
from kteardown.cli import app
from kteardown.door import Entry
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.fragments import fragments
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Designed, Kernels, Overrides, Parts, Scripted, on_clocks
from kteardown.inputs.published import read_posting
from kteardown.kernels.kconfig import wanted_digest, wanted_symbols
from kteardown.model.arch import Arch
from kteardown.model.clock import CLOCKS, Clock
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment
from kteardown.model.record import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.run.resolve import base_and_variants, experiment_for, experiment_of_script
from kteardown.run.resolve import experiment_of as replication
from kteardown.script.describe import Described, content_id, describe, is_script, write
from kteardown.vm.job import Acceleration, BootJob
from kteardown.vm.qemu_command import qemu_command

State = Literal["stale", "older", "current", "not measured"]
"""``stale``: boots on this tree gave other figures; ``older``: a dependency has changed since."""
NOT_CONFIRMED = ("analysis", "design", "rules")
"""Dependencies after a change of which a result must be analysed or measured again, as no boot
shows it."""
_NO_FIGURE = {"name", "question", "reference", "folder", "predict", "quick"}
"""Fields of an experiment that change nothing of what is measured once --quick is applied."""


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

    ``cell`` and ``base`` are texts with figures in braces, see ``result_tables``; ``base`` is for
    cells of the base kernel.
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


class Measured(_Spec):
    """A whole ``measured.json``; a field that the result of an earlier day does not know is absent.

    ``commit`` has a + if what decides figures was not committed. ``agent`` is the SHA-256 of the
    agent, and ``kernels`` has those of the images. ``duration_s`` is the time of the whole command,
    builds included.
    """

    commit: str
    date: str
    command: str
    duration_s: float = 0
    agent: str = ""
    compiler: str = ""
    kernels: dict[str, str] = {}
    ids: dict[str, str]


Seen = Literal["stale", "within", "equal", "first"]
Values = dict[str, dict[str, float]]


class Confirmed(_Spec):
    """A whole ``confirmed.json``: what a few boots counted, compared with boots before.

    ``values`` are what they counted, by point and kernel, then by metric; ``reference`` is what the
    first ones counted on the tree that measured the result, if that differs. ``note`` says what
    differs most.
    """

    state: Seen
    note: str
    commit: str
    date: str
    agent: str
    ids: dict[str, str]
    values: Values
    reference: Values = {}


@dataclass(frozen=True)
class Evidence:
    """One folder of ``results/``: a claim, or a hunt."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.root / "results" / self.name

    @cached_property
    def measured(self) -> Measured | None:
        """What was recorded when it was measured; None if it was not."""
        file = self.folder / "measured.json"
        return Measured.model_validate_json(file.read_bytes()) if file.is_file() else None

    @cached_property
    def confirmed(self) -> Confirmed | None:
        """What was recorded when it was confirmed; None if it was not."""
        file = self.folder / "confirmed.json"
        return Confirmed.model_validate_json(file.read_bytes()) if file.is_file() else None

    @property
    def exact(self) -> bool:
        """Whether all its figures are of the instruction clock, so that a few boots confirm it."""
        return True

    @cached_property
    def now(self) -> dict[str, str]:
        """The content ids of the tree as it is."""
        raise NotImplementedError

    @property
    def moved(self) -> list[str]:
        """What has changed since it was measured, or since it was confirmed if that is less, by
        name."""
        if self.measured is None:
            return sorted(self.now)
        known = [self.measured.ids]
        if self.exact and self.confirmed and self.confirmed.state != "stale":
            rest = {name: id_ for name, id_ in self.measured.ids.items() if name in NOT_CONFIRMED}
            known.append(rest | self.confirmed.ids)
        names = sorted({*self.now, *self.measured.ids})
        return min(
            ([name for name in names if ids.get(name) != self.now.get(name)] for ids in known),
            key=len,
        )

    @property
    def state(self) -> State:
        """Whether its figures are those of this tree."""
        if self.measured is None:
            return "not measured"
        seen = self.confirmed
        if seen and seen.state == "stale" and seen.ids == confirmable(self.now):
            return "stale"
        return "older" if self.moved else "current"


def confirmable(ids: Mapping[str, str]) -> dict[str, str]:
    """The content ids of what a few boots can confirm."""
    return {name: known for name, known in ids.items() if name not in NOT_CONFIRMED}


@dataclass(frozen=True)
class Claim(Evidence):
    """A result of an experiment."""

    spec: ClaimSpec

    @cached_property
    def results(self) -> Mapping[Clock, Result]:
        """The result on each clock."""
        found = [
            Result.model_validate_json(file.read_bytes()) for file in result_files(self.folder)
        ]
        return {result.clock: result for result in found}

    @property
    def exact(self) -> bool:
        """Whether all its figures are of the instruction clock, and of workloads that are
        shipped."""
        return set(self.results) == {"instructions"} and not is_of_script(self.spec.command)

    @cached_property
    def now(self) -> dict[str, str]:
        """The content ids of the tree as it is."""
        return ids(self.root, self.spec.command)


def claims(root: Path) -> list[Claim]:
    """Every claim, by name. Raises ValueError that names a file that is wrong."""
    return [load(root, file.parent.name) for file in sorted(root.glob("results/*/claim.toml"))]


def load(root: Path, name: str) -> Claim:
    """The claim in ``results/NAME``. Raises ValueError that names the file."""
    file = root / "results" / name / "claim.toml"
    try:
        spec = ClaimSpec.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"{file.relative_to(root)}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{file.relative_to(root)}: {error}") from error
    return Claim(root, name, spec)


def write_json(file: Path, fields: BaseModel) -> None:
    """Write ``measured.json`` or ``confirmed.json``, without what is not known."""
    file.write_text(
        fields.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8"
    )


def result_files(folder: Path) -> list[Path]:
    """The results in a folder: one, or one for each clock."""
    return sorted(folder.glob("result.json")) or sorted(
        file for clock in CLOCKS for file in folder.glob(f"{clock}/result.json")
    )


def guest(arch: Arch, acceleration: Acceleration) -> str:
    """The command line of QEMU with the arguments of the kernel, for a guest of any size."""
    job = BootJob(
        image=Path("image"),
        initramfs=Path("initramfs"),
        arch=arch,
        acceleration=acceleration,
        cpus=1,
        memory_mb=1,
        seed=1,
        console=Entry(Path("console")),
        silence_s=1,
    )
    # The monitor is no part of the guest. Results before QEMU 11 have its older option in their
    # ids.
    command = " ".join(qemu_command(job, records=3, monitor=4))
    return command.replace("-qmp chardev:monitor", "-mon chardev=monitor,mode=control")


def ids(root: Path, command: str) -> dict[str, str]:
    """The content id of everything in the tree that the result of ``command`` depends on, by its
    name."""
    script = _script_of(root, command)
    experiments, switches = experiments_of(root, command)
    # With both clocks there are two, which differ in their design alone.
    experiment = experiments[0]
    names = sorted({sweep.workload for sweep in experiment.workloads})
    workloads = {name: script.workload if script else _workload(root, name) for name in names}
    designs = [
        e.model_dump(mode="json", exclude_defaults=True, exclude=_NO_FIGURE) for e in experiments
    ]
    symbols = wanted_symbols(
        root / "kernels", experiment.machine.arch, fragments(experiment, workloads)
    )
    counts = any(e.design.counts for e in experiments)
    sources = agent_sources(root, names, counts=counts)
    if script:
        sources = sorted((root / "agent/script").glob("*.[ch]"))
    found = {
        "agent": agent_id(root, sources),
        "analysis": str(analysis.RULES),
        "design": text_id(json.dumps([*designs, switches], sort_keys=True)),
        "kernels": wanted_digest(symbols)[:16],
    }
    accelerations: dict[Clock, Acceleration] = {"instructions": "icount", "wall": "mttcg"}
    guests = (guest(experiment.machine.arch, accelerations[e.design.clock]) for e in experiments)
    found["guest"] = text_id(" ".join(guests))
    for name, workload in workloads.items():
        found[f"workloads/{name}"] = workload_id(workload)
    if script:
        files = {path.relative_to(root).as_posix() for path in script.files.values()}
        found[f"workloads/{script.workload.name}"] += f" {files_id(root, files)}"
    for variant in experiment.variants:
        name = variant.partition(" on ")[0].split("@")[0].removeprefix("./")
        for folder in (f"series/{name}", name):
            if (root / folder).is_dir():
                found[folder] = files_id(root, listed(root, [folder]))
    return dict(sorted(found.items()))


def experiments_of(root: Path, command: str) -> tuple[tuple[Experiment, ...], dict[str, str]]:
    """The experiment that a command measures, on each of its clocks, and the options that are no
    part of one.

    Raises ValueError.
    """
    verb, given = options_of(command)
    script = _script_of(root, command)
    if verb not in ("run", "compare", "replicate"):
        raise ValueError(f"not a command that measures: {command}")
    designed = _group(Designed, given)
    if verb == "replicate":
        # Of the posting only what is run counts, not what is claimed. The patch is known by its
        # message id.
        posting = read_posting(root / "postings" / f"{given['posting']}.toml")
        patch = f"lore:{posting.run.patch}" if posting.run and posting.run.patch else given["patch"]
        switches = {"ablate": "False", "clock": str(designed.clock or "")}
        return on_clocks(replication(posting, patch), Overrides.of(designed)), switches
    kernels = _group(Kernels, given)
    if verb == "run":
        asked = Overrides.of(_group(Parts, given), kernels, designed)
        own = root / "experiments" / f"{given['experiment']}.toml"
        known = load_experiment(str(own) if own.is_file() else given["experiment"])
    else:
        source, variants = base_and_variants(given["source"] or "", given["series"] or [], [])
        known = (
            _experiment_of_script(script, source)
            if script
            else experiment_for(given["workload"], source)
        )
        asked = Overrides.of(kernels, designed, variant=variants)
    switches = {"ablate": str(bool(kernels.ablate)), "clock": str(designed.clock or "")}
    return on_clocks(known, asked), switches


def is_of_script(command: str) -> bool:
    """Whether a command compares a script, which only measuring runs: no workload is shipped for
    it."""
    verb, given = options_of(command)
    return verb == "compare" and is_script(given["workload"])


def _script_of(root: Path, command: str) -> Described | None:
    """The script of a command, described as ``compare`` does; None if it measures a workload."""
    if not is_of_script(command):
        return None
    given = options_of(command)[1]
    asked = _group(Scripted, given | {"file": [root / file for file in given["file"] or ()]})
    params = parse_assignments(given["assignments"] or ())
    own = {name: of for name, of in params.items() if name not in MACHINE_PARAMETERS}
    return describe(str(root / given["workload"]), asked, own)


@cache
def _described() -> tempfile.TemporaryDirectory[str]:
    """The folder with the descriptions of scripts, until this program ends."""
    return tempfile.TemporaryDirectory(prefix="kteardown-claims-")


def _experiment_of_script(script: Described, source: str) -> Experiment:
    folder = Path(_described().name, content_id(script))
    write(script, folder)
    return experiment_of_script(script.workload.name, source, folder)


def options_of(command: str) -> tuple[str, dict[str, Any]]:
    """The verb and the options of a command line, by name. Raises ValueError."""
    _, verb, *arguments = shlex.split(command)
    commands: Mapping[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    try:
        return verb, commands[verb].make_context(verb, arguments).params
    except (KeyError, TyperException) as error:
        raise ValueError(f"{command}: {error}") from error


def _group(kind: Any, given: Mapping[str, Any]) -> Any:
    return kind(**{field.name: given[field.name] for field in fields(kind)})


def _workload(root: Path, name: str) -> Workload:
    with (root / "workloads" / f"{name}.toml").open("rb") as stream:
        return Workload.model_validate(tomllib.load(stream))
