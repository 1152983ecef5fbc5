"""The flow on one screen: each function is one stage, from what the one before it saved.

experiment -> kernels -> plan -> boots -> records -> result
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kteardown.errors import GuestError, InputError
from kteardown.kernels import build
from kteardown.kernels.model import KernelImage, KernelRequest
from kteardown.kernels.series import resolve
from kteardown.kernels.source import is_source, split
from kteardown.machines import host, probe
from kteardown.machines.agent import build_agent
from kteardown.machines.base import Acceleration
from kteardown.machines.qemu import QemuMachine
from kteardown.paths import cache_dir, runs_dir
from kteardown.progress import Reporter
from kteardown.records.store import RunDir
from kteardown.report import json as result_json
from kteardown.report import markdown
from kteardown.report.reference import load_reference
from kteardown.spec.load import fragments, load_workloads
from kteardown.spec.model import Experiment, Workload
from kteardown.stats.results import KernelFacts, Result
from kteardown.trials.plan import BASE, TWIN, Plan, make_plan
from kteardown.trials.run import Bootable, Lab, execute


@dataclass(frozen=True)
class Study:
    """An experiment with all that it names looked up: ready to be built and planned."""

    experiment: Experiment
    workloads: dict[str, Workload]
    kernels: tuple[KernelRequest, ...]
    """The base first, then the variants in the order of the report."""


def prepare(experiment: Experiment) -> Study:
    """Look up workloads, series and fragments. Raises InputError."""
    workloads = load_workloads(experiment)
    split(experiment.source)
    wanted = fragments(experiment, workloads)
    arch = experiment.machine.arch
    kernels = [KernelRequest(BASE, experiment.source, fragments=wanted, arch=arch)]
    for variant in experiment.variants:
        if is_source(variant):
            kernels.append(KernelRequest(variant, variant, fragments=wanted, arch=arch))
        else:
            label, patches = resolve(variant)
            kernels.append(KernelRequest(label, experiment.source, patches, label, wanted, arch))
    names = [kernel.name for kernel in kernels]
    for name in names:
        if names.count(name) > 1 or name == TWIN:
            raise InputError(f"two kernels would be called {name!r}", hint="name each variant once.")
    return Study(experiment, workloads, tuple(kernels))


def build_kernels(study: Study, reporter: Reporter) -> dict[str, KernelImage]:
    """Every kernel of the study, built or out of the cache. Raises BuildError, InputError, LabError."""
    return build.ensure(study.kernels, cache_dir=cache_dir(), reporter=reporter)


def plan(study: Study) -> Plan:
    """The boots in their order: pure, the same for the same experiment."""
    return make_plan(study.experiment, study.workloads, [kernel.name for kernel in study.kernels[1:]])


def begin(study: Study, images: dict[str, KernelImage], command: str) -> RunDir:
    """A run directory that holds all that a resume or a report needs. Raises LabError."""
    run = RunDir.create(runs_dir(), study.experiment.name)
    run.save(run.plan_file, plan(study).model_dump_json(indent=1))
    run.save(run.kernels_file, json.dumps({n: asdict(i) for n, i in images.items()}, indent=1, default=str))
    environment = {"command": command, "machine": host.facts()}
    run.save(run.environment_file, json.dumps(environment, indent=1))
    # Last: a folder with experiment.json is a whole run directory.
    run.save(run.experiment_file, study.experiment.model_dump_json(indent=1))
    return run


def measure(run: RunDir, reporter: Reporter, *, jobs: int | None = None) -> None:
    """Boot all that the run's plan has left. Raises LabError; what was recorded stays."""
    experiment = load_experiment_of(run)
    acceleration = _acceleration(experiment, reporter)
    images = _read_images(run)
    kernels = {name: Bootable(Path(i["image"]), tuple(map(Path, i["modules"]))) for name, i in images.items()}
    kernels[TWIN] = kernels[BASE]
    alone = acceleration != "icount"
    spec = experiment.machine
    lab = Lab(
        machine=QemuMachine(),
        agent=build_agent(spec.arch, cache=cache_dir(), reporter=reporter),
        arch=spec.arch,
        acceleration=acceleration,
        # Guests in real time would be each other's noise; instruction counts do not feel it.
        jobs=1 if alone else jobs or os.cpu_count() or 1,
        possible_cpus=spec.possible_cpus,
        kernel_args=spec.kernel_args,
    )
    with run.writer() as log:
        execute(Plan.model_validate_json(run.plan_file.read_bytes()), kernels, lab, log, reporter)


def conclude(run: RunDir) -> Result:
    """The result from what the run directory holds, saved there. Raises InputError, GuestError."""
    # Here, not above: scipy takes longer to import than a cached run takes to its first guest.
    from kteardown.stats.analyse import analyse

    experiment = load_experiment_of(run)
    workloads = load_workloads(experiment)
    environment = json.loads(run.environment_file.read_bytes())
    boots = run.boots()
    facts = {
        name: KernelFacts.model_validate({key: image[key] for key in KernelFacts.model_fields})
        for name, image in _read_images(run).items()
    }
    result = analyse(experiment, workloads, boots, facts, environment["machine"], environment["command"])
    run.save(run.result_file, result_json.dumps(result))
    run.save(run.report_file, markdown.render(result, workloads, load_reference(experiment.reference)))
    if boots and not result.comparisons and not result.boots.get("ok"):
        raise GuestError(
            f"no guest of {run.name} ran to its end: {_told(result.boots)}",
            hint=f"`kteardown show {run.name}` lists the boots and where their consoles are.",
        )
    return result


def load_experiment_of(run: RunDir) -> Experiment:
    """The experiment as the run keeps it."""
    return Experiment.model_validate_json(run.experiment_file.read_bytes())


def find_run(name: str) -> RunDir:
    """A run by its id, by the beginning of one, by its path, or ``last``. Raises InputError."""
    if "/" in name or Path(name).is_dir():
        return RunDir.open(Path(name))
    runs = all_runs()
    found = runs[-1:] if name == "last" else [run for run in runs if run.name.startswith(name)]
    exact = [run for run in found if run.name == name]
    if len(exact or found) != 1:
        many = ", ".join(run.name for run in found)
        raise InputError(
            f"{name!r} could be any of {many}" if many else f"there is no run {name!r} in {runs_dir()}",
            hint="`kteardown list runs` shows them; `last` is the newest.",
        )
    return (exact or found)[0]


def all_runs() -> Sequence[RunDir]:
    """Every run directory, oldest first."""
    root = runs_dir()
    paths = sorted(root.iterdir()) if root.is_dir() else []
    return [RunDir(path) for path in paths if (path / "experiment.json").is_file()]


def _acceleration(experiment: Experiment, reporter: Reporter) -> Acceleration:
    if experiment.design.clock == "instructions":
        return "icount"
    found = probe.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
    if found.reason:
        reporter.note(found.reason)
    return found.acceleration


def _read_images(run: RunDir) -> dict[str, dict[str, Any]]:
    images: dict[str, dict[str, Any]] = json.loads(run.kernels_file.read_bytes())
    for name, image in images.items():
        if not Path(image["image"]).is_file():
            raise InputError(
                f"the image of {name} is gone from the cache: {image['image']}",
                hint="start the experiment anew: the image is then built again.",
            )
    return images


def _told(boots: dict[Any, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in boots.items() if count)
