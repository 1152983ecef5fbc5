"""The folder of a hunt: what was asked for, a run directory for each stage, and the result.

- ``hunt.json``: the request, from which a hunt that was interrupted is finished;
- ``fragments/``: the fragments of the kernel configuration that are not shipped;
- ``screen/``, ``confirm/`` and the other ``STAGES``: plan, records and consoles of one stage;
- ``result.json``: the result.
"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from kteardown.errors import InputError
from kteardown.hunt.catalogue import own_kinds
from kteardown.hunt.plan import with_what_is_missing
from kteardown.inputs.fragments import located
from kteardown.model.plan import Plan
from kteardown.model.workload import StrictModel
from kteardown.paths import runs_dir
from kteardown.rundir.directory import RunDir, new_folder, started
from kteardown.rundir.snapshot import load_plan
from kteardown.vm import host

_SHARED = ("screen", "narrow", "confirm", "profile-sync", "profile-deferred", "profile-make", "kernels")
"""Stages in which kinds share boots. ``NAME-alone`` has those that are measured again, each alone."""
STAGES = (*(name + alone for name in _SHARED for alone in ("", "-alone")), "rate", "locks", "owners")
"""In the order in which they are measured."""


class Request(StrictModel):
    source: str
    against: tuple[str, ...] = ()
    locks: str = ""
    """The source that is built with lock statistics; empty: none."""
    compiler: str = ""
    """For kernels that are built, as in an experiment."""
    config: tuple[str, ...] = ()
    """Names or paths of fragments, or symbols such as ``CONFIG_X=y``, for kernels that are built."""
    kinds: tuple[str, ...] = ()
    """Names of kinds and of parts of the catalogue; empty: all."""
    own: str = ""
    """The folder of the user's own kinds; empty: none."""
    user: str = "root"
    """``root``, or ``ordinary`` for an ordinary user within the limits that it has."""
    budget_minstr: int = 300
    owners: tuple[int, ...] = ()
    """How many processes also release at once on the wall clock."""
    command: str = ""
    started: str = ""
    """UTC; empty in hunts of earlier versions."""

    @property
    def own_kinds(self) -> list[Path]:
        """The files of the user's own kinds. Raises InputError."""
        return own_kinds(Path(self.own) if self.own else None)


class HuntFolder(RunDir):
    """The folder of one hunt, of which each stage is a run directory."""

    @classmethod
    def begin(cls, request: Request) -> "HuntFolder":
        """Create a folder for ``request``, with its fragments that are not shipped.

        Raises InputError if there is no such fragment, LabError.
        """
        config = located(request.config, request.own)
        folder = cls(new_folder(runs_dir(), "hunt"))
        folder._save_request(request.model_copy(update={"config": folder.keep_fragments(config)}))
        return folder

    @classmethod
    def find(cls, name: str) -> "HuntFolder":
        """Return a hunt by its id, its path or ``last``. Raises InputError."""
        path = Path(name)
        if not (path / "hunt.json").is_file():
            known = [file.parent for file in sorted(runs_dir().glob("*/hunt.json"), key=started)]
            found = known[-1:] if name == "last" else [one for one in known if one.name.startswith(name)]
            if len(found) != 1:
                raise InputError(
                    f"there is no hunt called {name!r}" if not found else f"{name!r} fits several hunts",
                    hint=f"choose one of: {', '.join(one.name for one in known)}."
                    if known
                    else "start a hunt with `kteardown hunt`.",
                )
            path = found[0]
        return cls(path)

    def request(self) -> Request:
        """Return what was asked for, with the paths of the fragments that it keeps. Raises InputError."""
        saved = self._saved_request()
        return saved.model_copy(update={"config": self.kept_fragments(saved.config)})

    def _saved_request(self) -> Request:
        file = self.path / "hunt.json"
        try:
            return Request.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise InputError(
                f"{file}: cannot be read: {error}", hint="restore the file, or hunt again."
            ) from error

    def extend(self, against: Sequence[str], locks: str) -> None:
        """Add kernels for the finds, or the one whose locks are counted. Raises InputError, LabError."""
        request = self._saved_request()
        new = [name for name in dict.fromkeys(against) if name not in request.against]
        added = "".join(f" --against {shlex.quote(name)}" for name in new)
        added += f" --locks {shlex.quote(locks)}" if locks and locks != request.locks else ""
        update = {"against": (*request.against, *new), "locks": locks or request.locks}
        self._save_request(request.model_copy(update={**update, "command": request.command + added}))

    def _save_request(self, request: Request) -> None:
        self.save(self.path / "hunt.json", request.model_dump_json(indent=1))

    def stage(self, name: str, plan: Plan, agent_hash: str) -> RunDir:
        """Return the run directory of a stage, with its plan: the one that is there, or a new one.

        An existing stage gets boots for the kernels, seeds and ways that it does not have yet. Raises
        InputError if its boots had other kinds or another agent: their figures cannot be put together.
        """
        run = RunDir(self.path / name)
        if run.plan_file.is_file():
            if run.environment().get("agent_hash") != agent_hash:
                raise InputError(
                    f"{run.path}: the kinds or the agent have changed since it was measured",
                    hint="hunt again; figures of different programs cannot be put together.",
                )
            planned = load_plan(run)
            extended = with_what_is_missing(planned, plan)
            if extended != planned:
                run.save(run.plan_file, extended.model_dump_json(indent=1))
            return run
        run = RunDir.create_at(self.path / name)
        environment = {"machine": host.facts(), "agent_hash": agent_hash}
        run.save(run.environment_file, json.dumps(environment, indent=1))
        run.save(run.plan_file, plan.model_dump_json(indent=1))
        return run

    def measured(self, names: Sequence[str] = STAGES) -> list[RunDir]:
        """Return the stages that have been begun, in order."""
        found = (RunDir(self.path / name) for name in names)
        return [run for run in found if run.plan_file.is_file()]
