"""Rehearse a script on base, before a variant is built: does it run, what does it leave behind, how
long?

Each of its two smallest sizes is run in a guest of its own. What is wrong ends the command here,
after seconds, with one message; what is found becomes the metrics of the comparison.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload
from kteardown.model.experiment import Experiment
from kteardown.model.plan import PlannedTrial
from kteardown.model.point import points_of, size_of
from kteardown.model.record import BootEnd, Record, Sample, TrialEnd
from kteardown.model.record_fields import ParamValue
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.model.workload import Metric, Workload, unit_of
from kteardown.paths import shipped_table
from kteardown.progress import Reporter
from kteardown.run.boot_once import Params, boot_counted, boot_together
from kteardown.run.forecast import REHEARSAL, SeenBoot
from kteardown.run.places.place import Place
from kteardown.run.script_progress import ScriptProgress
from kteardown.run.setting import Bootable
from kteardown.script.describe import Described, named
from kteardown.script.extract import metric_of, parse_reading, values
from kteardown.script.growing import SizeGrowth, growing
from kteardown.script.presets import preset_metrics
from kteardown.script.suggest import marks_and_printed, slug
from kteardown.script.tap import tap_failures
from kteardown.script.units import readable
from kteardown.vm.job import Acceleration
from kteardown.vm.machine import Machine

_LINES = 20
_CHARACTERS = 300
_WORDS = shipped_table("run/rehearse")
_MISSING = re.compile("|".join(_WORDS["missing"]))
NOT_IMPLEMENTED = "Function not implemented"


@dataclass(frozen=True)
class Rehearsal:
    """What one execution of a script left behind."""

    params: Mapping[str, ParamValue]
    output: Sequence[OutputLine]
    deltas: Sequence[Delta]
    samples: Mapping[str, float]
    ended: ScriptEnd | None
    status: str
    detail: str
    ended_s: float = 0
    """Host seconds from the start of the guest to the end of the trial."""

    def lines(self, source: str = "script") -> list[str]:
        return [line.text for line in self.output if line.source == source]


@dataclass(frozen=True)
class Rehearsed:
    """A rehearsal at each size, the seconds that it took, and of what."""

    sizes: tuple[Rehearsal, ...]
    seconds: float
    seen: SeenBoot
    again: Callable[[], Rehearsal]
    """Runs the smallest size once more, with another seed. Raises as ``rehearse`` does."""


def rehearse(
    kernel: Bootable,
    experiment: Experiment,
    place: Place,
    reporter: Reporter,
    lacks: Callable[[Rehearsal], str] = lambda run: "",
) -> Rehearsed:
    """Run the only workload of ``experiment``, a script, on ``kernel`` at its two smallest sizes.

    ``lacks`` is called after each of them: it may raise, or return a hint about what ``kernel``
    lacks. Raises GuestError if it does not run, with what to do about it, BuildError, LabError,
    InputError.
    """
    name = experiment.workloads[0].workload
    workload = load_workload(name, experiment.folder)
    every = points_of(experiment, {name: workload})
    params = [{key: point.params[key] for key in workload.parameters} for point in every]
    law = workload.law
    other_params = {key: value for key, value in params[0].items() if key != law}
    sized = (
        [point for point in params if {**point, law: 0} == {**other_params, law: 0}]
        if law
        else params[:1]
    )
    points = sorted(sized, key=lambda point: size_of(point, law))[:2]

    acceleration = place.acceleration(experiment, reporter)

    boots: list[tuple[Rehearsal, BootEnd]] = []

    def boot(point: Params, seed: int = 1) -> tuple[Rehearsal, BootEnd]:
        # A guest of its own, which ^C ends.
        machine = place.machine("", reporter, repeat=False)
        return _rehearsed_at(
            point,
            seed,
            workload,
            kernel,
            experiment,
            acceleration,
            machine,
            reporter,
            lacks if seed == 1 else lambda run: "",
            boots[-1][0] if boots else None,
        )

    for point in points:
        boots.append(boot(point))
    seconds = sum(end.duration_s for _, end in boots)
    memory_mb = experiment.machine.memory_mb or workload.memory_mb
    seen = _seen(name, boots, acceleration, memory_mb)
    return Rehearsed(
        tuple(run for run, _ in boots), seconds, seen, lambda: boot(points[0], seed=2)[0]
    )


def _seen(
    name: str,
    boots: Sequence[tuple[Rehearsal, BootEnd]],
    acceleration: Acceleration,
    memory_mb: int,
) -> SeenBoot:
    """Return what a forecast uses: the time of each size, and of a boot besides its trials."""
    trials = []
    for index, (run, end) in enumerate(boots):
        trial = PlannedTrial(
            index=index, workload=name, params={**run.params}, warmup=0, repetitions=1
        )
        trials.append((trial, run.ended_s - (end.first_record_s or 0)))
    seconds = sum(end.duration_s for _, end in boots)
    overhead_s = (seconds - sum(trial_s for _, trial_s in trials)) / len(boots)
    peak_kb = boots[-1][1].peak_rss_kb
    return SeenBoot(REHEARSAL, acceleration, memory_mb, overhead_s, peak_kb, tuple(trials))


def _rehearsed_at(
    point: Params,
    seed: int,
    workload: Workload,
    kernel: Bootable,
    experiment: Experiment,
    acceleration: Acceleration,
    machine: Machine,
    reporter: Reporter,
    lacks: Callable[[Rehearsal], str],
    smaller: Rehearsal | None,
) -> tuple[Rehearsal, BootEnd]:
    """Run the script at one size on ``machine``, after ``smaller``. Raises as ``rehearse`` does."""
    title = f"Rehearsing {workload.name} on base {sizes_in_words([point])}"
    if seed > 1:
        title += ", with another seed"
    assert workload.script is not None
    progress = ScriptProgress(workload.script.limit_s)
    boot = partial(
        boot_counted,
        kernel,
        workload,
        [point],
        reporter,
        folder=experiment.folder,
        spec=experiment.machine,
        acceleration=acceleration,
        counted=False,
        seed=seed,
        machine=machine,
        on_record=progress.see_record,
        on_clock=progress.see_clock,
    )
    with reporter.task(title) as task:
        (booted,) = boot_together([boot], machine, lambda done: task.update(done, progress.words()))
    run = _at(point, booted.records)
    lacked = lacks(run)
    if run.status != "ok":
        raise failure(workload, run, lacked, smaller)
    return run, booted.end


def _at(params: Mapping[str, ParamValue], records: Sequence[Record]) -> Rehearsal:
    end = next((record for record in records if isinstance(record, TrialEnd)), None)
    output = [record for record in records if isinstance(record, OutputLine)]
    if end and end.status == "ok" and (failures := tap_failures(output)):
        end = end.model_copy(update={"status": "void", "detail": f"a test failed: {failures[0]}"})
    return Rehearsal(
        params,
        output,
        [record for record in records if isinstance(record, Delta)],
        {record.metric: record.value for record in records if isinstance(record, Sample)},
        next((record for record in records if isinstance(record, ScriptEnd)), None),
        end.status if end else "",
        end.detail if end else "the guest ended before the script",
        (end and end.at_s) or 0.0,
    )


def failure(
    workload: Workload, run: Rehearsal, lacked: str = "", smaller: Rehearsal | None = None
) -> GuestError:
    """Return the error for a script that failed: the reason that is known to be most certain, and
    its end.

    ``lacked``: the hint about what a prebuilt kernel lacks; empty: nothing that is known.
    ``smaller``: the rehearsal at a smaller size, which ended.
    """
    name = workload.name
    lines = run.lines()
    log = run.lines("log")
    last = (
        "".join(f"\n  | {line[:_CHARACTERS]}" for line in lines[-_LINES:])
        or "\n  (it printed nothing)"
    )
    message = f"{name} failed on base: {_way(run)}"
    hint = "correct the script; nothing else was built."
    killed = next(
        (line for line in log if any(words in line for words in _WORDS["no_memory"])), None
    )
    missing = next((match for line in lines if (match := _MISSING.search(line))), None)
    if run.ended and run.ended.how == "limit":
        message += _least_growth(workload, run, smaller)
        hint = (
            "choose a smaller size with --set (the script has --set N=1000 as $N and $1), or give "
            "the script more time of the guest with --limit 30m. If the script reads from its "
            "terminal, nothing answers."
        )
    elif killed:
        message = f"{name} failed on base: the guest ran out of memory: {killed}"
        hint = "give the guest more memory with --memory-mb, or choose a smaller size with --set."
    elif missing:
        program = next(filter(None, missing.groups()))
        message = f"{name} failed on base: {program} is not in the guest"
        hint = (
            f"install {program} on this host, if it is missing, and add --programs {program}; or "
            "give a whole root file system with --root."
        )
    elif lacked:
        hint = lacked
        if run.ended and run.ended.how in ("exit", "signal"):
            hint += f" If the script is meant to end like this, add {_allowed(run.ended)}."
    elif lacking := [line for line in lines if NOT_IMPLEMENTED in line]:
        words = " ".join(lacking).lower()
        symbol = next((of for call, of in _WORDS["symbols"].items() if call in words), "NAME")
        hint = (
            "the kernel lacks a system call: add its symbol to all kernels with --config "
            f"CONFIG_{symbol}=y."
        )
    elif any(re.search(_WORDS["disk"], line) for line in lines):
        hint = (
            "the guest has no disk of the host: --config disk adds ext4 and /dev/ram0, in its "
            "memory."
        )
    elif run.ended and run.ended.how in ("exit", "signal"):
        hint = f"correct the script; if it is meant to end like this, add {_allowed(run.ended)}."
    return GuestError(f"{message}\nits last lines:{last}", hint=hint)


def _least_growth(workload: Workload, run: Rehearsal, smaller: Rehearsal | None) -> str:
    """Return what a size that ended and one that was killed at its limit say of the growth; empty
    if they say nothing."""
    assert workload.script is not None
    law = workload.law
    if smaller is None or "whole_ns" not in smaller.samples:
        return ""
    small_n, large_n = (size_of(of.params, law) for of in (smaller, run))
    limit_ns = workload.script.limit_s * 1e9
    growth = SizeGrowth(small_n, large_n, smaller.samples["whole_ns"], limit_ns)
    least = growth.at_least
    text = f"; {law}={small_n} took {readable(growth.small, 'ns')}"
    return f"{text}: it grows {least} between {small_n} and {large_n}" if least else text


def _allowed(ended: ScriptEnd) -> str:
    return f"--allow '{ended.how} {ended.code}'"


def _way(run: Rehearsal) -> str:
    """Return how a script ended, without its last line, which an error shows with others."""
    if run.ended is None:
        return run.detail
    if run.ended.how == "limit":
        how = run.detail.partition("; its last line: ")[0].removeprefix("ended: ")
        return f"{how} of the guest's clock"
    how = f"it ended with {'exit status' if run.ended.how == 'exit' else 'signal'} {run.ended.code}"
    if "whole_ns" not in run.samples:
        return how
    return f"{how} after {readable(run.samples['whole_ns'], 'ns')} of the guest's clock"


def chosen_metrics(
    described: Described, rehearsed: Rehearsed, options: Sequence[str]
) -> dict[str, Metric]:
    """Return the metrics that were asked for (``NAME=WHERE``), or else those that a script turns
    out to have.

    These are of the best kind that there is: marks, those of a known program, what it prints,
    counters that grow with its size, for which the smallest is run once more. Raises InputError,
    and as ``rehearse``.
    """
    small = rehearsed.sizes[0]
    large = rehearsed.sizes[-1]
    examples = [*small.output, *large.output]
    if options:
        return dict(metric_of(*named(option), examples) for option in options)
    marks, lines = marks_and_printed(examples)
    if described.preset and not marks:
        printed = preset_metrics(described.preset, examples)
        # A script may send the output of a program anywhere, and a function may have its name.
        if printed or not (described.workload.script and described.workload.script.file):
            return printed
    if specs := marks or lines:
        return dict(metric_of(name, spec, examples) for name, spec in specs.items())
    small_n, large_n = (size_of(run.params, described.workload.law) for run in (small, large))
    grown = growing(small.deltas, large.deltas, small_n, large_n)
    if grown:
        # What another boot leaves behind is not the same to the last object.
        grown = growing(small.deltas, large.deltas, small_n, large_n, rehearsed.again().deltas)
    return dict(
        metric_of(slug(f"{file}_{field}"), f"delta {file} {field}") for file, field, _ in grown
    )


def with_resolution(metrics: Mapping[str, Metric], rehearsed: Rehearsed) -> dict[str, Metric]:
    """Return ``metrics`` with the resolution of what was printed, which no verdict may go below."""
    result = {}
    for key, spec in metrics.items():
        steps = [
            value.resolution
            for run in rehearsed.sizes
            if spec.read
            for value in values(parse_reading(spec.read), unit_of(key), run.output, run.deltas)
        ]
        result[key] = spec.model_copy(update={"resolution": max(steps)}) if steps else spec
    return result


def sizes_in_words(points: Sequence[Mapping[str, ParamValue]]) -> str:
    """Return the sizes of rehearsals: ``at N=1000 and N=2000``, or ``once``."""
    texts = [", ".join(f"{name}={value}" for name, value in point.items()) for point in points]
    shown = " and ".join(filter(None, texts))
    return f"at {shown}" if shown else "once"
