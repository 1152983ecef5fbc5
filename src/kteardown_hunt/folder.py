"""The folder of a hunt: what was asked for, a run directory for each stage, and the result.

- ``hunt.json``: the request, from which a hunt that was interrupted is finished;
- ``fragments/``: the fragments of the kernel configuration that are not shipped;
- ``screen/``, ``confirm/`` and the other ``STAGES``: plan, records and consoles of one stage;
- ``result.json``: the result.

``measure_stage`` boots the guests of one stage.
"""

import json
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.inputs.fragments import located
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import check_source, file_hash
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Outcome, TrialStart
from kteardown.model.workload import StrictModel
from kteardown.paths import runs_dir
from kteardown.progress import Reporter
from kteardown.run import named
from kteardown.run.execute import execute
from kteardown.run.make_plan import rest_of_failed
from kteardown.run.resolve import kernel_of
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.counting import EXACT, BootRecords, trials
from kteardown.rundir.directory import RunDir, new_folder, started
from kteardown.rundir.snapshot import load_plan
from kteardown.rundir.writer import open_writer
from kteardown.vm import host
from kteardown_hunt.catalogue import Way, own_kinds
from kteardown_hunt.plan import Case, alone_plan, kinds_in, shares_boots, with_what_is_missing

_FAILED: tuple[Outcome, ...] = ("panic", "hang", "oom", "agent-error")
_START = 10
"""On the instruction clock a guest takes as long to start as to make and release objects this many
times: 7 to 12 s, and 0.3 to 1 s.
"""
_SHARED = (
    "screen",
    "narrow",
    "confirm",
    "profile-sync",
    "profile-deferred",
    "profile-make",
    "kernels",
    "waits",
    "broadcasts",
    "broadcasts-confirm",
    "stay-check",
    "stay-screen",
    "stay-single",
    "stay",
    "stay-confirm",
    "stay-profile-sync",
    "stay-profile-deferred",
    "stay-profile-make",
    "stay-kernels",
    "owners-screen",
    "owners",
)
"""Stages in which kinds share boots. ``NAME-alone`` has those that are measured again, each
alone."""
STAGES = (
    *(name + alone for name in _SHARED for alone in ("", "-alone")),
    "rate",
    "locks",
)
"""In the order in which they are measured."""


class Request(StrictModel):
    source: str
    against: tuple[str, ...] = ()
    locks: str = ""
    """The source that is built with lock statistics; empty: none."""
    compiler: str = ""
    """For kernels that are built, as in an experiment."""
    config: tuple[str, ...] = ()
    """Names or paths of fragments, or symbols such as ``CONFIG_X=y``, for kernels that are
    built."""
    kinds: tuple[str, ...] = ()
    """Names of kinds and of parts of the catalogue; empty: all."""
    own: str = ""
    """The folder of the user's own kinds; empty: none."""
    user: str = "root"
    """``root``, or ``ordinary`` for an ordinary user within the limits that it has."""
    budget_minstr: int = 300
    stay: tuple[str, ...] = ()
    """What else stays while objects are released: names of kinds, or ``all``."""
    owners: tuple[int, ...] = ()
    """How many processes also release at once, on the contention clock."""
    command: str = ""
    started: str = ""
    """UTC; empty in hunts of earlier versions."""

    @property
    def own_kinds(self) -> list[Path]:
        """The files of the user's own kinds. Raises InputError."""
        return own_kinds(Path(self.own) if self.own else None)

    @property
    def named(self) -> list[named.Named]:
        """What it names outside of the folder of the hunt. Raises InputError."""
        references = [named.Named(self.own, "kinds of its own")] if self.own else []
        references += named.of_compiler(self.compiler)
        kernels = (self.source, *self.against, self.locks)
        return references + [
            reference for kernel in kernels if kernel for reference in named.of_variant(kernel)
        ]


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
        if not (Entry(path) / "hunt.json").exists():
            files = [Entry(folder.path) / "hunt.json" for folder in Entry(runs_dir()).entries()]
            hunts = [file.root for file in sorted(filter(Entry.exists, files), key=started)]
            matches = (
                hunts[-1:]
                if name == "last"
                else [hunt for hunt in hunts if hunt.name.startswith(name)]
            )
            if len(matches) != 1:
                raise InputError(
                    f"there is no hunt called {name!r}"
                    if not matches
                    else f"the name {name!r} fits several hunts",
                    hint=f"choose one of: {', '.join(hunt.name for hunt in hunts)}."
                    if hunts
                    else "start a hunt with `kteardown hunt`.",
                )
            path = matches[0]
        return cls(path)

    def request(self) -> Request:
        """Return what was asked for, with the paths of the fragments that it keeps. Raises
        InputError."""
        saved = self._saved_request()
        return saved.model_copy(update={"config": self.kept_fragments(saved.config)})

    def _saved_request(self) -> Request:
        file = self.folder / "hunt.json"
        try:
            return Request.model_validate_json(file.content())
        except (OSError, ValidationError) as error:
            raise InputError(
                f"{file}: cannot be read: {error}", hint="restore the file, or start a new hunt."
            ) from error

    def extend(self, against: Sequence[str], locks: str, stay: Sequence[str] = ()) -> None:
        """Add kernels for the finds, the one whose locks are counted, or what stays. Raises
        InputError, LabError."""
        request = self._saved_request()
        new = [name for name in dict.fromkeys(against) if name not in request.against]
        added = "".join(f" --against {shlex.quote(name)}" for name in new)
        added += f" --locks {shlex.quote(locks)}" if locks and locks != request.locks else ""
        added += f" --stay {shlex.quote(','.join(stay))}" if stay and not request.stay else ""
        update = {
            "against": (*request.against, *new),
            "locks": locks or request.locks,
            "stay": tuple(stay) or request.stay,
        }
        self._save_request(
            request.model_copy(update={**update, "command": request.command + added})
        )

    def _save_request(self, request: Request) -> None:
        self.save(self.folder / "hunt.json", request.model_dump_json(indent=1))

    def stage(self, name: str, plan: Plan, agent_hash: str) -> RunDir:
        """Return the run directory of a stage, with its plan: the one that is there, or a new one.

        An existing stage gets boots for the kernels, seeds and ways that it does not have yet.
        Raises InputError if its boots had other kinds or another agent: their figures cannot be put
        together.
        """
        run = RunDir(self.folder / name)
        if run.plan_file.exists():
            if run.environment().get("agent_hash") != agent_hash:
                raise InputError(
                    f"{run.path}: the kinds or the agent have changed since this stage was "
                    "measured",
                    hint="start a new hunt: figures of different programs cannot be put together.",
                )
            planned = load_plan(run)
            extended = with_what_is_missing(planned, plan)
            if extended != planned:
                run.save(run.plan_file, extended.model_dump_json(indent=1))
            return run
        run = RunDir.create_at(self.folder / name)
        environment = {"machine": host.facts(), "agent_hash": agent_hash}
        run.save(run.environment_file, json.dumps(environment, indent=1))
        run.save(run.plan_file, plan.model_dump_json(indent=1))
        return run

    def measured(self, names: Sequence[str] = STAGES) -> list[RunDir]:
        """Return the stages that have been begun, in order."""
        runs = (RunDir(self.folder / name) for name in names)
        return [run for run in runs if run.plan_file.exists()]


def requests_of(
    source: str,
    against: Sequence[str],
    config: Sequence[str],
    modules: Iterable[str] = (),
    compiler: str = "",
) -> list[KernelRequest]:
    """Return what the kernels of a hunt are made of; the first is the one that is hunted on.

    Each is a source, or ``SERIES on SOURCE``; one of ``against`` may also be a series on the first
    one's source. ``modules`` are those that some kinds need. Raises InputError.
    """
    on = source.rpartition(" on ")[2]
    check_source(on)
    module_names = tuple(sorted(modules))
    base = KernelRequest(on, on, fragments=tuple(config), modules=module_names, compiler=compiler)
    kernels = [kernel_of(spec, base)[0] for spec in (source, *against)]
    return [
        replace(kernel, name=name) for kernel, name in zip(kernels, (source, *against), strict=True)
    ]


def measure_stage(
    folder: HuntFolder,
    name: str,
    plan: Plan,
    kernels: Mapping[str, KernelImage],
    lab: Lab,
    reporter: Reporter,
) -> list[BootRecords]:
    """Boot the rest of a stage and return the records of its boots. A stage that is complete boots
    nothing.

    Where each kind has boots of its own, the trials after one in which a guest failed run in a
    further boot, without those of the way that failed. Where several kinds share a boot, those of a
    boot that failed, or of which a trial gave no figures, are measured again, each in a boot of its
    own: what one leaves may have made another fail. Raises LabError, InputError; records that were
    written before are kept.
    """
    run = folder.stage(name, plan, file_hash(lab.agent))
    planned = load_plan(run)
    shared = shares_boots(planned)
    # In real time a guest starts in seconds, and a trial that waits until it is quiet can take half
    # a minute.
    start = _START if lab.acceleration == EXACT else 0

    def expected(trial: PlannedTrial) -> float:
        # The number of objects matters little, since the agent leaves out the trials that would
        # take long. Which these are is not known before; all boots have some.
        return trial.warmup + trial.repetitions + (start if trial.index == 0 else 0)

    bootable = {name: Bootable.of(image) for name, image in kernels.items()}
    with open_writer(run, host.facts()) as log:
        execute(planned, bootable, lab, log, reporter, expected)
        while not shared and (more := further_boots(planned, run)):
            planned = planned.model_copy(update={"boots": (*planned.boots, *more)})
            run.save(run.plan_file, planned.model_dump_json(indent=1))
            execute(planned, bootable, lab, log, reporter, expected)
    boots = run.boots()
    failed = without_figures(planned, boots) if shared else ()
    if not failed:
        return boots
    names = ", ".join(dict.fromkeys(kind for _, kind in failed))
    reporter.note(
        "a boot of several kinds failed, or a trial gave no figures; measuring these kinds again, "
        f"each in a boot of its own: {names}"
    )
    again = alone_plan(planned, failed)
    return [
        *(without(boot, failed) for boot in boots),
        *measure_stage(folder, f"{name}-alone", again, kernels, lab, reporter),
    ]


def further_boots(plan: Plan, run: RunDir) -> tuple[PlannedBoot, ...]:
    """Return boots for the trials that come after one in which a guest failed, and release in
    another way."""
    # With more objects, the way that failed would fail as well.
    return rest_of_failed(
        plan,
        run.boots(),
        outcomes=_FAILED,
        leave_out=lambda trial, failed: trial.params["way"] == failed.params["way"],
    )


def without_figures(plan: Plan, boots: Iterable[BootRecords]) -> list[tuple[int, str]]:
    """Return boots and their kinds: all of a boot that failed, else those of trials that gave no
    figures."""
    unmeasured = []
    for boot in boots:
        failed = {str(trial.params["kind"]) for trial in trials(boot.records) if not trial.usable}
        kinds = kinds_in(plan.boots[boot.boot])
        unmeasured += [
            (boot.boot, kind) for kind in kinds if boot.end.outcome in _FAILED or kind in failed
        ]
    return unmeasured


def without(boot: BootRecords, parts: Collection[tuple[int, str]]) -> BootRecords:
    """Return the records of a boot without those of trials of ``parts``, which are boots and their
    kinds."""
    left_out = {
        record.trial
        for record in boot.records
        if isinstance(record, TrialStart) and (boot.boot, record.params["kind"]) in parts
    }
    kept = (record for record in boot.records if getattr(record, "trial", None) not in left_out)
    return replace(boot, records=tuple(kept))


def case_of(params: Mapping[str, int | str]) -> Case:
    return Case(str(params["kind"]), cast(Way, params["way"]), str(params["user"]))
