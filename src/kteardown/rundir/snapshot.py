"""Everything that a result depends on, in the run directory: written once, read by every later
stage.

A report must stay the same after a workload's file was changed, a series deleted, kteardown
upgraded, or the run copied to another computer. So nothing that a result depends on is read from
elsewhere.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown import version
from kteardown.door import LARGE, Entry
from kteardown.errors import InputError
from kteardown.inputs.published import Posting
from kteardown.model.events import EventCounts
from kteardown.model.experiment import Experiment
from kteardown.model.kernel_facts import KernelFacts, Unavailable
from kteardown.model.plan import Plan, rests
from kteardown.model.record import Record
from kteardown.model.result import ChangeCost
from kteardown.model.workload import Name, Workload
from kteardown.rundir import counting
from kteardown.rundir.directory import RunDir

_T = TypeVar("_T")

SCHEMA = 2


@dataclass(frozen=True)
class Snapshot:
    """A run directory with all that its result depends on, as it was at one moment."""

    run: RunDir
    experiment: Experiment
    workloads: Mapping[str, Workload]
    published: Posting | None
    plan: Plan
    kernels: Mapping[str, KernelFacts]
    unavailable: Sequence[Unavailable]
    counted: Sequence[ChangeCost] = ()
    """What the changed functions execute, where that was counted."""
    events: Sequence[EventCounts] = ()
    """What the variants do to waits and broadcasts, where that was counted."""
    notes: Sequence[str] = ()
    """Notes for readers about the run directory itself."""
    version: str = ""
    """The version of kteardown that made the run; empty if it is not known."""

    @cached_property
    def records(self) -> Sequence[Record]:
        """Every record, as the file is when it is first asked for. Raises InputError."""
        return self.run.records()

    @cached_property
    def boots(self) -> Sequence[counting.BootRecords]:
        """Every boot that ended, with its records that count, by boot number. Raises InputError."""
        return counting.boots(self.records)

    @property
    def profile_plan(self) -> Plan | None:
        """The plan of the profiled boots, if a profile was requested."""
        file = self.run.profile.plan_file
        return _read(file, Plan) if file.exists() else None


def load(run: RunDir) -> Snapshot:
    """Read a run directory. Raises InputError that names the file that is missing or damaged."""
    head = read_json(run.run_file)
    schema, maker = head.get("schema"), head.get("kteardown")
    if not isinstance(schema, int):
        raise _damaged(run.run_file, "no schema number")
    if schema != SCHEMA:
        raise InputError(
            f"{run.path} was written by another version of kteardown: schema {schema} instead of "
            f"{SCHEMA}",
            hint="read it with that version.",
        )
    experiment = _read(run.experiment_file, Experiment)
    plan = _read(run.plan_file, Plan)
    workloads = load_workloads(run)
    published = _read(run.published_file, Posting) if run.published_file.exists() else None
    planned = (trial.workload for boot in plan.boots for trial in boot.trials)
    swept = (sweep.workload for sweep in experiment.workloads)
    for name in {*swept, *(point.workload for point in plan.points), *planned} - workloads.keys():
        raise _damaged(run.workloads_file, f"the workload {name} is missing")
    _read(run.environment_file, _Environment)
    unavailable = run.unavailable_file
    later = rests(plan)
    notes = [
        f"{kernel}: the trials that a guest did not reach because it hung ran in {count} further "
        f"guest{'s' * (count > 1)}, without the trials before them; their figures can differ for "
        "that reason"
        for kernel, count in Counter(
            boot.kernel for boot in plan.boots if boot.index in later
        ).items()
    ]
    return Snapshot(
        run=run,
        experiment=experiment,
        workloads=workloads,
        published=published,
        plan=plan,
        kernels=load_kernels(run),
        unavailable=_read(unavailable, list[Unavailable]) if unavailable.exists() else [],
        counted=_read(run.counted_file, list[ChangeCost]) if run.counted_file.exists() else [],
        events=_read(run.events_file, list[EventCounts]) if run.events_file.exists() else [],
        notes=notes,
        version=maker if isinstance(maker, str) else "",
    )


def load_plan(run: RunDir) -> Plan:
    """Read the plan alone. Raises InputError."""
    return _read(run.plan_file, Plan)


def load_workloads(run: RunDir) -> dict[str, Workload]:
    """Read the workloads alone. Raises InputError."""
    return _read(run.workloads_file, dict[Name, Workload])


def write_inputs(
    run: RunDir, workloads: Mapping[str, Workload], published: Posting | None, plan: Plan
) -> None:
    """Write the inputs of a new run. Raises LabError."""
    run.save(run.plan_file, plan.model_dump_json(indent=1))
    fields = {name: workload.model_dump(mode="json") for name, workload in workloads.items()}
    run.save(run.workloads_file, json.dumps(fields, indent=1))
    if published is not None:
        run.save(run.published_file, published.model_dump_json(indent=1))


def mark_whole(run: RunDir, experiment: Experiment) -> None:
    """Write ``run.json``, last: a folder that has it is a whole run directory. Raises LabError."""
    run.save(run.experiment_file, experiment.model_dump_json(indent=1))
    fields = {"schema": SCHEMA, "kteardown": version(), "started": datetime.now(UTC).isoformat()}
    run.save(run.run_file, json.dumps(fields, indent=1))


class _Session(BaseModel):
    machine: dict[str, Any]
    agent_hash: str = ""


class _Environment(BaseModel):
    command: str
    machine: dict[str, Any]
    sessions: list[_Session] = []
    nodes: dict[str, dict[str, Any]] = {}


def load_kernels(run: RunDir) -> dict[str, KernelFacts]:
    """Read the kernels alone, those that are built. Raises InputError."""
    file = run.kernels_file
    declared = KernelFacts.model_fields
    kernels = {
        name: {key: value for key, value in fields.items() if key in declared}
        for name, fields in _read(file, dict[str, dict[str, Any]]).items()
    }
    try:
        return TypeAdapter(dict[str, KernelFacts]).validate_python(kernels)
    except ValidationError as error:
        raise _invalid(file, error) from error


def read_json(file: Entry) -> dict[str, Any]:
    """Return the contents of one of a run's files, which is a JSON object. Raises InputError."""
    return _read(file, dict[str, Any])


def _read(file: Entry, kind: type[_T]) -> _T:
    try:
        return TypeAdapter(kind).validate_json(file.content(LARGE))
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    except ValidationError as error:
        raise _invalid(file, error) from error


def _invalid(file: Entry, error: ValidationError) -> InputError:
    details = error.errors()
    first = next((detail for detail in details if detail["type"] == "extra_forbidden"), details[0])
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return InputError(
            f"{file}: cannot be read: unknown key {key}",
            hint="a newer version of kteardown wrote this run; use that version.",
        )
    return _damaged(file, f"{key}: {first['msg']}" if key else first["msg"])


def _damaged(file: Entry, reason: str) -> InputError:
    return InputError(
        f"{file}: cannot be read: {reason}", hint="restore the run directory from a copy."
    )
