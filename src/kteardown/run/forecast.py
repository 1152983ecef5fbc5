"""Forecast how long a plan will take, from the boots of earlier runs.

The forecast for a trial is the median of the earlier trials at its point. Between measured points
it is interpolated, and beyond them extrapolated by a straight line. Making the objects often takes
longer than measuring them, and one number of repetitions does not show how the time is divided: the
forecast is too long rather than too short in this case.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import TypeAdapter, ValidationError

from kteardown.door import LARGE, Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan, PlannedTrial
from kteardown.model.point import size_of
from kteardown.model.record import TrialEnd
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.directory import REHEARSAL_FILE, RunDir
from kteardown.rundir.find import all_runs

REHEARSAL = "rehearsal"
"""In place of the name of a run: the boot belongs to none."""
_RUNS = 4
"""How many of the newest runs of a workload are read: enough for a forecast, and fast to read."""
Place = tuple[str, tuple[tuple[str, ParamValue], ...], int]
"""Workload, point and number of executions: trials with the same place take equally long."""
SeenTrial = tuple[PlannedTrial, float]
"""One trial of an earlier run, and the seconds of the host that all its executions took."""


def place(trial: PlannedTrial) -> Place:
    """Return the place of ``trial``. Its index is no place: points are shuffled in every block."""
    return trial.workload, tuple(sorted(trial.params.items())), trial.warmup + trial.repetitions


@dataclass(frozen=True)
class SeenBoot:
    """One boot of an earlier run; ``overhead_s`` is its time outside trials."""

    run: str
    acceleration: str
    memory_mb: int
    overhead_s: float
    peak_rss_kb: int | None
    trials: tuple[SeenTrial, ...]


@dataclass(frozen=True)
class Forecast:
    """The expected time and memory of a plan; None where no earlier run has them.

    ``seconds``: measuring, with ``jobs`` guests at a time. ``guest_kb``: the largest host memory of
    one guest. ``carried``: how many of the ``points`` points were not measured with as many
    executions.
    """

    seconds: float | None
    guest_kb: int | None
    jobs: int
    boots: int
    """The number of earlier boots that were used."""
    runs: tuple[str, ...]
    """The runs of these boots."""
    points: int
    carried: int
    unknown: tuple[str, ...]
    """Workloads that no earlier run has."""
    overhead_s: float
    """The time of a boot outside its trials."""
    trial_s: Mapping[Place, float]
    """The seconds of every trial whose workload is known, by its place."""

    def weight(self, trial: PlannedTrial) -> float:
        """Return the seconds of ``trial``, of the first with the overhead of its boot; 1 if
        unknown."""
        if self.seconds is None:
            return 1.0
        return self.trial_s[place(trial)] + (self.overhead_s if trial.index == 0 else 0.0)


def seen_boot(run: str, boot: BootRecords, plan: Plan) -> SeenBoot | None:
    """Return the times of one boot; None if its outcome is not ok, or if its records have no
    times."""
    planned = next((b for b in plan.boots if b.index == boot.boot), None)
    if boot.end.outcome != "ok" or planned is None or boot.end.first_record_s is None:
        return None
    before = first = boot.end.first_record_s
    trials: list[SeenTrial] = []
    for record in boot.records:
        if isinstance(record, TrialEnd) and record.attempt == boot.attempt:
            if record.at_s is None or record.trial >= len(planned.trials):
                return None
            trials.append((planned.trials[record.trial], record.at_s - before))
            before = record.at_s
    return SeenBoot(
        run=run,
        acceleration=boot.start.acceleration,
        memory_mb=plan.memory_mb,
        overhead_s=boot.end.duration_s - (before - first),
        peak_rss_kb=boot.end.peak_rss_kb,
        trials=tuple(trials),
    )


def forecast(
    plan: Plan, workloads: Mapping[str, Workload], earlier: Sequence[SeenBoot], *, jobs: int
) -> Forecast:
    """Forecast ``plan``. ``earlier`` is oldest first, and has its clock and architecture."""
    # KVM is many times faster than emulation: only boots of the acceleration that was used last.
    same_acceleration = [boot for boot in earlier if boot.acceleration == earlier[-1].acceleration]
    names = {trial.workload for boot in plan.boots for trial in boot.trials}
    used = [
        boot
        for boot in same_acceleration
        if any(trial.workload in names for trial, _ in boot.trials)
    ]
    measured = {trial.workload for boot in used for trial, _ in boot.trials}
    trials = {place(trial): trial for boot in plan.boots for trial in boot.trials}
    every = {
        name: [t for b in used for t in b.trials if t[0].workload == name]
        for name in names & measured
    }
    expected = {
        at: _at(trial, workloads[trial.workload].law, every[trial.workload])
        for at, trial in trials.items()
        if trial.workload in every
    }
    overhead = median([boot.overhead_s for boot in used] or [0.0])
    seconds = None
    if names <= measured and used:
        boot_times = [
            overhead + sum(expected[place(t)][0] for t in boot.trials) for boot in plan.boots
        ]
        seconds = sum(boot_times) / min(jobs, len(boot_times))
    peaks = [
        boot.peak_rss_kb for boot in used if boot.peak_rss_kb and boot.memory_mb == plan.memory_mb
    ]
    return Forecast(
        seconds=seconds,
        guest_kb=max(peaks, default=None),
        jobs=min(jobs, len(plan.boots)),
        boots=len(used),
        runs=tuple(dict.fromkeys(boot.run for boot in used)),
        points=len(trials),
        carried=sum(not is_measured for _, is_measured in expected.values()),
        unknown=tuple(sorted(names - measured)),
        overhead_s=overhead,
        trial_s={at: value for at, (value, _) in expected.items()},
    )


def _at(trial: PlannedTrial, law: str, every: Sequence[SeenTrial]) -> tuple[float, bool]:
    """Return the seconds of ``trial``, and whether exactly its point was measured."""
    # They are a function of the parameter of the growth law of its workload, of which ``every``
    # trial is.
    other_params = {name: value for name, value in trial.params.items() if name != law}
    nearest = max(_agree(other_params, earlier.params) for earlier, _ in every)
    executions = trial.warmup + trial.repetitions
    by_size: dict[int, list[tuple[int, float]]] = {}
    for earlier, seconds in every:
        if _agree(other_params, earlier.params) == nearest:
            group = by_size.setdefault(size_of(earlier.params, law), [])
            group.append((earlier.warmup + earlier.repetitions, seconds))
    times_by_size = sorted((size, _seconds(group, executions)) for size, group in by_size.items())
    size = size_of(trial.params, law)
    same = nearest == len(other_params) and size in by_size
    return _on_line(times_by_size, size), same and any(n == executions for n, _ in by_size[size])


def _agree(wanted: Mapping[str, ParamValue], params: Mapping[str, ParamValue]) -> int:
    return sum(params.get(name) == value for name, value in wanted.items())


def _seconds(group: Sequence[tuple[int, float]], executions: int) -> float:
    """Return the seconds of ``executions`` at one point, from the trials with the nearest
    number."""
    # In proportion if they have fewer executions.
    nearest = min((abs(count - executions), count) for count, _ in group)[1]
    typical = median(seconds for count, seconds in group if count == nearest)
    return typical * max(1.0, executions / nearest)


def _on_line(times_by_size: Sequence[tuple[int, float]], size: int) -> float:
    if len(times_by_size) == 1:
        ((only, seconds),) = times_by_size
        return seconds * max(1.0, size / only) if only else seconds
    above = next(
        (n for n, (value, _) in enumerate(times_by_size) if value >= size), len(times_by_size) - 1
    )
    (x0, y0), (x1, y1) = times_by_size[max(above, 1) - 1], times_by_size[max(above, 1)]
    return max(0.0, y0 + (y1 - y0) * (size - x0) / (x1 - x0))


def seen(experiment: Experiment, runs: Iterable[RunDir]) -> list[SeenBoot]:
    """Return the boots of the newest of ``runs`` that have the clock and architecture of
    ``experiment``.

    Of each of its workloads so many runs are read. ``runs`` and the returned boots are oldest
    first. A run that cannot be read is ignored.
    """
    left = dict.fromkeys(_workloads(experiment), _RUNS)
    boots_of_runs: list[list[SeenBoot]] = []
    for run in reversed(list(runs)):
        missing = {name for name, count in left.items() if count}
        if not missing:
            break
        names, boots = _read(run, experiment, missing)
        boots_of_runs.insert(0, boots)
        for name in names & missing:
            left[name] -= 1 if boots else 0
    return [boot for boots in boots_of_runs for boot in boots]


def _read(run: RunDir, planned: Experiment, missing: set[str]) -> tuple[set[str], list[SeenBoot]]:
    """Return the workloads and the boots of a run; none if it has no workload that is missing."""
    try:
        experiment = Experiment.model_validate_json(run.experiment_file.content())
        clock = experiment.design.clock
        arch = experiment.machine.arch
        is_comparable = (clock, arch) == (planned.design.clock, planned.machine.arch)
        if not is_comparable or not _workloads(experiment) & missing:
            return set(), []
        plan = Plan.model_validate_json(run.plan_file.content(LARGE))
        boots = [seen_boot(run.name, boot, plan) for boot in run.boots()]
        return _workloads(experiment), [boot for boot in boots if boot is not None]
    except (OSError, ValidationError, InputError):
        return set(), []


def _workloads(experiment: Experiment) -> set[str]:
    return {sweep.workload for sweep in experiment.workloads}


def forecast_of(
    experiment: Experiment, workloads: Mapping[str, Workload], plan: Plan, jobs: int | None
) -> Forecast:
    """Return the forecast for ``plan`` from the earlier runs on this host, and from a rehearsal."""
    boots = seen(experiment, all_runs())
    with suppress(OSError, ValidationError):
        # The rehearsal of a script, if it was on this clock.
        kept = Entry(Path(experiment.folder), (REHEARSAL_FILE,))
        text = kept.content() if experiment.folder else b""
        rehearsed = TypeAdapter(SeenBoot).validate_json(text)
        if (rehearsed.acceleration == "icount") == (experiment.design.clock != "wall"):
            boots.append(rehearsed)
    return forecast(plan, workloads, boots, jobs=jobs_of(experiment, jobs))


def keep_rehearsal(boot: SeenBoot, folder: Path) -> None:
    """Write the times of a rehearsal beside the description of its script. Raises LabError."""
    with failing(f"{folder}: cannot be written", hint="free some disk space.", kind=LabError):
        file = Entry(folder, (REHEARSAL_FILE,))
        file.replace(TypeAdapter(SeenBoot).dump_json(boot) + b"\n")


def jobs_of(experiment: Experiment, jobs: int | None) -> int:
    """Return how many guests run at the same time: on the wall clock one, since others would add
    noise."""
    return 1 if experiment.design.clock == "wall" else jobs or os.cpu_count() or 1
