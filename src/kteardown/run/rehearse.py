"""Rehearse a script on base, before a variant is built: does it run, what does it leave behind, how long?

One guest runs it at its two smallest sizes. What is wrong ends the command here, after seconds, with one
message; what is found becomes the metrics of the comparison.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload
from kteardown.kernels import build
from kteardown.model.experiment import Experiment
from kteardown.model.point import points_of, size_of
from kteardown.model.record import Delta, OutputLine, ParamValue, Record, Sample, ScriptEnd, TrialEnd
from kteardown.model.workload import Metric, Workload, unit_of
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.execute import Bootable
from kteardown.run.resolve import base_of
from kteardown.rundir.printed import error_lines
from kteardown.script.describe import Described, named
from kteardown.script.extract import found, growing, metric_of, parse_reading, trend, values
from kteardown.script.presets import preset_metrics
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu import QemuMachine

_LINES = 20
_SHOWN = 5
_MISSING = re.compile(
    r"(?:exec |line \d+: |env: .?|^|: )([\w.+/-]+)(?:'|\u2019)?: (?:command )?not found"
    r"|exec ([\w.+/-]+): No such file"
)
_NOT_IMPLEMENTED = "Function not implemented"
_SYMBOLS = {
    "userfaultfd": "USERFAULTFD",
    "bpf": "BPF_SYSCALL",
    "fanotify": "FANOTIFY",
    "keyctl": "KEYS",
    "perf_event": "PERF_EVENTS",
    "landlock": "SECURITY_LANDLOCK",
    "seccomp": "SECCOMP_FILTER",
    "memfd_secret": "SECRETMEM",
    "fsmount": "BLOCK",
    "mbind": "NUMA",
    "quota": "QUOTA",
}
"""By a word of the script, the symbol without which its system call is not implemented."""


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

    def lines(self, source: str = "script") -> list[str]:
        """Return the lines of ``source``, in order."""
        return [line.text for line in self.output if line.source == source]


@dataclass(frozen=True)
class Rehearsed:
    """A rehearsal at each size, and the seconds that it took."""

    sizes: tuple[Rehearsal, ...]
    seconds: float


def rehearse(experiment: Experiment, acceleration: Acceleration, reporter: Reporter) -> Rehearsed:
    """Build base, and run the only workload of ``experiment``, a script, at its two smallest sizes.

    Raises GuestError if it does not run, with what to do about it, BuildError, LabError, InputError.
    """
    name = experiment.workloads[0].workload
    workload = load_workload(name, experiment.folder)
    base = base_of(experiment)
    image = build.ensure([base], cache_dir=cache_dir(), reporter=reporter).images[base.name]
    every = points_of(experiment, {name: workload})
    own = [{key: point.params[key] for key in workload.parameters} for point in every]
    law = workload.law
    rest = {key: value for key, value in own[0].items() if key != law}
    sized = [point for point in own if {**point, law: 0} == {**rest, law: 0}] if law else own[:1]
    points = sorted(sized, key=lambda point: size_of(point, law))[:2]
    machine = QemuMachine(reporter.command)
    with reporter.task(f"Rehearsing {name} on base: {_words(points)}") as task, ThreadPoolExecutor(1) as pool:
        booting = pool.submit(
            boot_counted,
            Bootable(image.image, image.modules),
            workload,
            points,
            reporter,
            folder=experiment.folder,
            cpus=experiment.machine.largest("cpus"),
            memory_mb=experiment.machine.memory_mb,
            acceleration=acceleration,
            counted=False,
            machine=machine,
        )
        try:
            while not wait([booting], timeout=1).done:
                task.update(0)
        except BaseException:
            machine.stop()
            raise
        booted = booting.result()
    sizes = tuple(_at(index, point, booted.records) for index, point in enumerate(points))
    for one in sizes:
        if one.status != "ok":
            raise _failure(name, one)
    return Rehearsed(sizes, booted.seconds)


def _at(index: int, params: Mapping[str, ParamValue], records: Sequence[Record]) -> Rehearsal:
    end = next((one for one in records if isinstance(one, TrialEnd) and one.trial == index), None)
    return Rehearsal(
        params,
        [one for one in records if isinstance(one, OutputLine) and one.trial == index],
        [one for one in records if isinstance(one, Delta) and one.trial == index],
        {one.metric: one.value for one in records if isinstance(one, Sample) and one.trial == index},
        next((one for one in records if isinstance(one, ScriptEnd) and one.trial == index), None),
        end.status if end else "",
        end.detail if end else "the guest ended before the script",
    )


def _failure(name: str, run: Rehearsal) -> GuestError:
    """Return the error for a script that failed: the reason that is known to be most certain, and its end."""
    lines, log = run.lines(), run.lines("log")
    last = "".join(f"\n  | {line}" for line in lines[-_LINES:]) or "\n  (it printed nothing)"
    message, hint = f"{name} failed on base: {run.detail}", "correct the script; nothing else was built."
    killed = next((line for line in log if "Out of memory" in line or "oom-kill" in line), None)
    missing = next((match for line in lines if (match := _MISSING.search(line))), None)
    if run.ended and run.ended.how == "limit":
        hint = "choose a smaller size with --set, or give it more seconds of the guest: --limit 30m."
    elif killed:
        message = f"{name} failed on base: the guest ran out of memory: {killed}"
        hint = "give it more with --memory-mb, or choose a smaller size with --set."
    elif missing:
        program = missing[1] or missing[2]
        here = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        message = f"{name} failed on base: {program} is not in the guest"
        hint = (
            f"add {here} of this host: --programs {program}"
            if here
            else f"install {program} on this host and name it with --programs, or give a whole root file "
            "system with --root."
        )
    elif any(_NOT_IMPLEMENTED in line for line in lines):
        hint = _symbol_hint(lines)
    elif run.ended and run.ended.how in ("exit", "signal"):
        way = f"{run.ended.how} {run.ended.code}"
        hint = f"correct the script; if it is meant to end so: --allow '{way}'."
    return GuestError(f"{message}\nits last lines:{last}", hint=hint)


def _symbol_hint(lines: Sequence[str]) -> str:
    text = " ".join(line.lower() for line in lines if _NOT_IMPLEMENTED in line)
    symbol = next((symbol for word, symbol in _SYMBOLS.items() if word in text), None)
    known = f"CONFIG_{symbol}=y" if symbol else "CONFIG_NAME=y, the symbol of the system call"
    return f"the kernel lacks a system call: add it to all kernels with --config {known}."


def chosen_metrics(described: Described, rehearsed: Rehearsed, asked: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics that were asked for (``NAME=WHERE``), or else those that a script turns out to have.

    These are of the best kind that there is: marks, those of a known program, what it prints, counters that
    grow with its size. Raises InputError.
    """
    small, large = rehearsed.sizes[0], rehearsed.sizes[-1]
    examples = [*small.output, *large.output]
    if asked:
        return dict(metric_of(*named(one), examples) for one in asked)
    candidates = found(examples, small.deltas)
    if described.preset and not candidates["marks"]:
        return preset_metrics(described.preset, examples)
    if specs := candidates["marks"] or candidates["printed"]:
        return dict(metric_of(name, spec, examples) for name, spec in specs.items())
    sizes = [size_of(run.params, described.workload.law) for run in (small, large)]
    if sizes[0] >= sizes[1]:
        return {}
    grown = growing(small.deltas, large.deltas, sizes[0], sizes[1])
    return dict(_counter(file, field) for file, field, _ in grown)


def _counter(file: str, field: str) -> tuple[str, Metric]:
    name = re.sub(r"[^a-z0-9]+", "_", f"{file}_{field}".lower()).strip("_")
    return metric_of(name, f"delta {file} {field}")


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


def notes(workload: Workload, rehearsed: Rehearsed) -> Iterator[str]:
    """Yield what a user should know before the comparison: figures, errors, what no value was found for."""
    small = rehearsed.sizes[0]
    sizes = _words([run.params for run in rehearsed.sizes])
    yield f"one guest ran {workload.name} at {sizes} in {rehearsed.seconds:.0f} s"
    if not any(spec.read for spec in workload.metrics.values()):
        yield (
            "all of the script is compared, its own programs and their start included, so a change of the "
            "kernel is a smaller part of it; marks or --metric measure a part (docs/script.md)"
        )
    for key, spec in workload.metrics.items():
        if not spec.read:
            continue
        read = [
            values(parse_reading(spec.read), unit_of(key), run.output, run.deltas) for run in rehearsed.sizes
        ]
        if not any(read):
            yield _no_value(key, spec, small)
            continue
        shown = " and ".join(f"{one[0].value:,.9g}" for one in read if one)
        counts = max(map(len, read))
        several = f", the first of {counts}, which count as repetitions" if counts > 1 else ""
        yield f"{key}: {shown}, in steps of {max(v.resolution for one in read for v in one):,.9g}{several}"
        if any(trend([value.value for value in one]) for one in read):
            yield (
                f"{key}: its values rise or fall with their order in one boot: they may be points and not "
                "repetitions; let the script do one of them, chosen by a parameter (--set)"
            )
    errors = error_lines(small.output)
    for line in errors[:_SHOWN]:
        yield f"{workload.name} printed, and went on: {line}"
    if len(errors) > _SHOWN:
        yield f"and {len(errors) - _SHOWN} more lines like these"
    if small.ended and small.ended.dropped:
        yield f"{small.ended.dropped:,} lines of its output were more than are kept"


def _no_value(key: str, spec: Metric, run: Rehearsal) -> str:
    looks = [f"--metric '{name}={like}'" for name, like in found(run.output, run.deltas)["lines"].items()]
    like = f"; did you mean {' or '.join(looks[:3])}?" if looks else ""
    return f"{key}: nothing matches {spec.read}{like}"


def _words(points: Sequence[Mapping[str, ParamValue]]) -> str:
    texts = [", ".join(f"{name}={value}" for name, value in point.items()) for point in points]
    return " and ".join(filter(None, texts)) or "once"
