"""The flow on one screen: each function is one stage, from what the one before it saved.

experiment -> kernels -> plan -> boots -> records -> result
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kteardown.errors import BuildError, GuestError, InputError, KteardownError
from kteardown.inputs.load import load_workloads, own_sources
from kteardown.inputs.load import programs as programs_of
from kteardown.inputs.published import load_reference
from kteardown.kernels import build, guest_programs, layout_twin
from kteardown.kernels.request import Building, Built
from kteardown.kernels.source import Sources
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan, blocks_of, controls
from kteardown.model.record import BASE, LAYOUT
from kteardown.model.result import Result
from kteardown.paths import cache_dir, runs_dir
from kteardown.progress import Reporter, SilentReporter, Standing
from kteardown.report import forecast_text
from kteardown.report.context import Material
from kteardown.report.formats import json as result_json
from kteardown.report.formats import markdown
from kteardown.report.interim import rows as standing_rows
from kteardown.run import run_kernels
from kteardown.run.execute import Lab, execute
from kteardown.run.forecast import Forecast, forecast
from kteardown.run.make_plan import make_plan, with_layout_twin
from kteardown.run.past_boots import seen
from kteardown.run.profile_plan import plan_profile
from kteardown.run.resolve import Study, look_up
from kteardown.rundir.completeness import up_to
from kteardown.rundir.directory import RecordWriter, RunDir
from kteardown.vm import acceleration, host
from kteardown.vm.agent import build_agent
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu import QemuMachine


@dataclass(frozen=True)
class Cost:
    """What a study will take, from what earlier ones took."""

    building: Building
    measuring: Forecast


def prepare(experiment: Experiment, *, ablate: bool = False) -> Study:
    """Look up what the experiment names; with ``ablate`` the parts of its series too. Raises InputError."""
    if experiment.design.until:
        from kteardown.analysis.sequential import parse_until

        parse_until(experiment.design.until)
    return look_up(experiment, ablate=ablate)


def build_kernels(study: Study, reporter: Reporter) -> Built:
    """Every kernel of the study, built or out of the cache; the layout twin where the design has it.

    Raises BuildError, InputError, LabError.
    """
    requests = list(study.kernels)
    if LAYOUT in controls(study.experiment.design):
        twin = layout_twin.request(study.base, study.series, Sources(cache_dir(), reporter))
        if twin is None:
            raise InputError(
                "there is no layout twin: no series changes a .c file of the base",
                hint="leave --layout-twin out.",
            )
        requests.append(twin)
    built = build.ensure(requests, cache_dir=cache_dir(), reporter=reporter)
    if LAYOUT in built.images:
        layout_twin.check(built.images[BASE], built.images[LAYOUT])
    for name, reason in built.left_out.items():
        reporter.note(f"{name} is left out: {reason.splitlines()[0]}")
    return built


def plan(study: Study, left_out: Collection[str] = ()) -> Plan:
    """The boots in their order: pure, the same for the same experiment and kernels."""
    variants = [kernel.name for kernel in study.kernels[1:] if kernel.name not in left_out]
    return make_plan(study.experiment, study.workloads, variants)


def plan_sampled(study: Study, planned: Plan) -> Plan:
    """The boots that are sampled beside those of ``planned``, where the experiment asks for a profile."""
    kernels = [kernel.name for kernel in study.kernels if not kernel.optional]
    wanted = kernels if study.experiment.design.profile else []
    return plan_profile(planned, study.experiment, study.workloads, wanted)


def cost(study: Study, planned: Plan, *, jobs: int | None = None) -> Cost:
    """What building and booting ``planned`` will take; builds, boots and downloads nothing to tell."""
    requests = list(study.kernels)
    if LAYOUT in controls(study.experiment.design):
        sources = Sources(cache_dir(), SilentReporter())
        twin = layout_twin.request(study.base, study.series, sources, unpack=False)
        requests.append(twin or replace(study.series[0], name=LAYOUT))
    return Cost(build.cost(requests, cache_dir=cache_dir()), _forecast(study.experiment, planned, jobs))


def begin(study: Study, built: Built, command: str, reporter: Reporter) -> RunDir:
    """A run directory that holds all that a resume or a report needs. Raises LabError."""
    run = RunDir.create(runs_dir(), study.experiment.name)
    run.save(run.plan_file, plan(study, built.left_out).model_dump_json(indent=1))
    run_kernels.keep(run, study, built, Sources(cache_dir(), reporter))
    run.save(run.environment_file, json.dumps({"command": command, "machine": host.facts()}, indent=1))
    if study.experiment.design.profile:
        _plan_profile(run, study)
    # Last: a folder with experiment.json is a whole run directory.
    run.save(run.experiment_file, study.experiment.model_dump_json(indent=1))
    return run


def complete(run: RunDir, reporter: Reporter, *, jobs: int | None = None) -> Result:
    """Boot all that the run's plan has left, look by look where it stops when sure, and conclude.

    A claim of less than ten percent on the wall clock gets its layout twin. Every decision follows from
    the run directory, so a run that was killed goes on as if it had not been.
    Raises LabError, GuestError, InputError; what was recorded stays.
    """
    experiment = load_experiment_of(run)
    with run.writer(host.facts()) as log:
        expected = _announce(run, log, reporter, jobs)
        result = conclude(run) if experiment.design.until and log.finished() else None
        while True:
            measure(run, log, reporter, expected, jobs=jobs, after=result)
            result = conclude(run)
            if result.stopping is not None:
                reporter.note(forecast_text.standing(result, load_workloads(experiment)))
            sure = result.stopping is None or result.stopping.done
            if sure and not _add_layout_twin(run, result, reporter):
                break
    return result if not profile(run, reporter, jobs=jobs) else conclude(run)


def measure(
    run: RunDir,
    log: RecordWriter,
    reporter: Reporter,
    expected: Forecast,
    *,
    jobs: int | None = None,
    after: Result | None = None,
) -> None:
    """Boot what the plan has left: all of it, or up to the next look where the run stops when sure.

    ``after``: the result of its last look. Raises LabError; what was recorded stays.
    """
    experiment = load_experiment_of(run)
    due = _due(experiment, _read_plan(run), after)
    if all(boot.index in log.finished() for boot in due.boots):
        return
    lab = _lab(experiment, reporter, jobs)

    def between() -> None:
        reporter.standing(lambda: standing(run))

    execute(due, run_kernels.bootable(run), lab, log, reporter, expected.weight, between)


def profile(run: RunDir, reporter: Reporter, *, jobs: int | None = None) -> bool:
    """Boot what the profile of ``run`` has left: whether anything was booted. Raises LabError."""
    experiment, into = load_experiment_of(run), run.profile
    if not into.plan_file.is_file():
        return False
    planned = _read_plan(into)
    with into.writer() as log:
        if all(boot.index in log.finished() for boot in planned.boots):
            return False
        reporter.note("sampling where the time goes, in boots that are not compared")
        execute(planned, run_kernels.bootable(run), _lab(experiment, reporter, jobs), log, reporter)
    return True


def conclude(run: RunDir) -> Result:
    """The result from what the run directory holds, saved there. Raises InputError, GuestError."""
    # Here, not above: scipy takes longer to import than a cached run takes to its first guest.
    from kteardown.analysis.conclude import result_of
    from kteardown.analysis.profile.summarize import profiles_of

    experiment = load_experiment_of(run)
    workloads = load_workloads(experiment)
    result = result_of(run, experiment, workloads, run_kernels.facts(run), run_kernels.unavailable(run))
    told = profiles_of(run, experiment, workloads)
    result = result.model_copy(update={"profiles": told.profiles, "notes": (*result.notes, *told.notes)})
    for name, stacks in told.folded.items():
        run.save(run.profile.path / name, stacks)
    run.save(run.result_file, result_json.dumps(result))
    run.save(run.report_file, markdown.render(result, workloads, load_reference(experiment.reference)))
    if any(result.boots.values()) and not result.comparisons and not result.boots.get("ok"):
        raise GuestError(
            f"no guest of {run.name} ran to its end: {_told(result.boots)}",
            hint=f"`kteardown show {run.name}` lists the boots and where their consoles are.",
        )
    return result


def standing(run: RunDir) -> list[Standing]:
    """How the comparisons stand by what was recorded so far, by the report's statistics; nothing where that
    is too little. Nothing is written."""
    from kteardown.analysis.conclude import result_of

    experiment = load_experiment_of(run)
    workloads = load_workloads(experiment)
    try:
        result = result_of(run, experiment, workloads, run_kernels.facts(run), run_kernels.unavailable(run))
    except KteardownError:
        return []
    return standing_rows(result, workloads)


def material(run: RunDir) -> Material:
    """What the rich formats are made of, concluded anew. Raises InputError, GuestError."""
    return material_of(run, conclude(run))


def material_of(run: RunDir, result: Result) -> Material:
    """A result with every sample of its run; nothing is written. Raises InputError."""
    from kteardown.analysis.gather_samples import gather

    experiment = load_experiment_of(run)
    workloads = load_workloads(experiment)
    at = result.stopping.stopped_at if result.stopping else None
    variants = [name for name in result.kernels if result.is_asked_for(name)]
    samples = gather(experiment, workloads, run.boots(), run.profile.boots(), variants, blocks=at)
    reference = load_reference(experiment.reference)
    return Material(run.name, result, workloads, reference, samples)


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


def _plan_profile(run: RunDir, study: Study) -> None:
    into = run.profile
    (into.path / "console").mkdir(parents=True)
    run.save(into.plan_file, plan_sampled(study, _read_plan(run)).model_dump_json(indent=1))


def _lab(experiment: Experiment, reporter: Reporter, jobs: int | None) -> Lab:
    spec = experiment.machine
    wanted = programs_of(experiment, load_workloads(experiment))
    return Lab(
        machine=QemuMachine(reporter.command),
        agent=build_agent(spec.arch, cache=cache_dir(), reporter=reporter, own=own_sources(experiment)),
        arch=spec.arch,
        acceleration=_acceleration(experiment, reporter),
        jobs=_jobs(experiment, jobs),
        kernel_args=spec.kernel_args,
        programs=guest_programs.ensure(wanted, spec.arch, Sources(cache_dir(), reporter), reporter),
    )


def _acceleration(experiment: Experiment, reporter: Reporter) -> Acceleration:
    if experiment.design.clock == "instructions":
        return "icount"
    found = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
    if found.reason:
        reporter.note(found.reason)
    return found.acceleration


def _add_layout_twin(run: RunDir, result: Result, reporter: Reporter) -> bool:
    """Build the layout twin and plan its blocks, where the result claims what it could explain.

    False where nothing is to be booted: it is not needed, is there already, or cannot be had.
    """
    from kteardown.analysis.analyse import needs_layout_twin

    experiment = load_experiment_of(run)
    workloads = load_workloads(experiment)
    planned = _read_plan(run)
    if not needs_layout_twin(result, workloads) or any(boot.kernel == LAYOUT for boot in planned.boots):
        return False
    try:
        run_kernels.add_layout_twin(run, experiment, cache_dir(), reporter)
    except (BuildError, InputError) as error:
        reporter.note(f"a claim of less than 10% needs a layout twin, and there is none: {error.message}")
        return False
    blocks = result.stopping.stopped_at if result.stopping else blocks_of(experiment.design)
    reporter.note(
        f"a change of less than 10% is claimed, which moving code alone can make: {blocks} more blocks, of "
        "base and its layout twin"
    )
    extended = with_layout_twin(planned, experiment, workloads, blocks)
    run.save(run.plan_file, extended.model_dump_json(indent=1))
    return True


def _due(experiment: Experiment, planned: Plan, after: Result | None) -> Plan:
    """The part of the plan that is to be booted before the next conclusion."""
    design = experiment.design
    if not design.until:
        return planned
    from kteardown.analysis.conclude import next_look

    added = [boot for boot in planned.boots if boot.block >= blocks_of(design)]
    due = up_to(planned, next_look(design, after)).boots
    return planned.model_copy(update={"boots": (*due, *added)})


def _announce(run: RunDir, log: RecordWriter, reporter: Reporter, jobs: int | None) -> Forecast:
    """Say what the boots that are left will take, where there are any."""
    experiment = load_experiment_of(run)
    planned = _read_plan(run)
    finished = log.finished()
    left = tuple(boot for boot in planned.boots if boot.index not in finished)
    expected = _forecast(experiment, planned.model_copy(update={"boots": left}), jobs)
    if left:
        for line in forecast_text.measuring(
            expected, planned.memory_mb, at_most=bool(experiment.design.until)
        ):
            reporter.note(line)
    return expected


def _forecast(experiment: Experiment, planned: Plan, jobs: int | None) -> Forecast:
    return forecast(
        planned,
        load_workloads(experiment),
        seen(experiment, all_runs()),
        clock=experiment.design.clock,
        arch=experiment.machine.arch,
        jobs=_jobs(experiment, jobs),
    )


def _jobs(experiment: Experiment, jobs: int | None) -> int:
    # Guests in real time would be each other's noise; instruction counts do not feel it.
    return 1 if experiment.design.clock == "wall" else jobs or os.cpu_count() or 1


def _read_plan(run: RunDir) -> Plan:
    return Plan.model_validate_json(run.plan_file.read_bytes())


def _told(boots: dict[Any, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in boots.items() if count)
