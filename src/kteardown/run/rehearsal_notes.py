"""What a user should know of a rehearsal before the comparison: the first figures and their growth,
errors, and what no value was found for."""

from collections.abc import Iterator, Sequence

from kteardown.judge.metrics import name_of
from kteardown.model.point import size_of
from kteardown.model.workload import Metric, Unit, Workload, unit_of
from kteardown.run.rehearse import Rehearsal, Rehearsed, sizes_in_words
from kteardown.rundir.environment import error_lines
from kteardown.script.extract import parse_reading, values
from kteardown.script.growing import SizeGrowth, trend
from kteardown.script.suggest import suggested
from kteardown.script.units import digits, readable, readable_together

_SHOWN = 5
_CHARACTERS = 300
_LITTLE = 0.5
"""The share of its time that a script uses the CPU, below which its whole time says little of its
work."""
_FINE = 0.001
"""A step that is a smaller part of a value is not shown."""
_TIMES = ("ns", "us")
_AMOUNTS = (*_TIMES, "kb", "count")
"""Units of what one more object adds to; of shares and rates there is no sum."""


def notes(workload: Workload, rehearsed: Rehearsed) -> Iterator[str]:
    """Yield what a user should know before the comparison: figures, errors, what no value was found
    for."""
    small = rehearsed.sizes[0]
    yield from _ran(workload, rehearsed)
    yield from _first_figures(workload, rehearsed)
    if not any(spec.read for spec in workload.metrics.values()):
        yield (
            "kteardown compares the whole script, including its programs and their start, so a "
            "change of the kernel is a smaller part of each figure; use marks or --metric to "
            "measure a part (docs/script.md)"
        )
    whole_ns = small.samples.get("whole_ns", 0)
    cpu_ns = 1000 * small.samples.get("cpu_us", 0)
    if cpu_ns < _LITTLE * whole_ns:
        yield (
            f"{workload.name} uses the CPU for {cpu_ns / whole_ns:.1%} of its time: whole_ns is "
            "mostly the time that it waits, and a change of its work shows in cpu_us"
        )
    readings = [parse_reading(spec.read) for spec in workload.metrics.values() if spec.read]
    looks = _options(small)
    if looks and all(reading.kind == "delta" for reading in readings):
        yield f"{workload.name} prints what looks like a metric; compare it with {looks}"
    errors = error_lines(small.output)
    for line in errors[:_SHOWN]:
        yield f"{workload.name} printed this and went on: {line}"
    if len(errors) > _SHOWN:
        yield f"and {len(errors) - _SHOWN} more lines like these"
    if "whole_ns" in small.samples and "all_gone_ns" not in small.samples:
        yield (
            f"{workload.name} left processes, which were killed 10 s after its end, so there is no "
            "all_gone_ns"
        )
    if small.ended and small.ended.dropped:
        yield f"{small.ended.dropped:,} lines of its output are lost: the agent keeps no more"


def _ran(workload: Workload, rehearsed: Rehearsed) -> Iterator[str]:
    """Yield how long a script ran by each clock, and its last line, which says how far it came."""
    runs = rehearsed.sizes
    times = [readable(run.samples["whole_ns"], "ns") for run in runs if "whole_ns" in run.samples]
    ran = f"{workload.name} ran on base {sizes_in_words([run.params for run in runs])}"
    by_guest = f" for {' and '.join(times)} of the guest's clock" if times else ""
    yield f"{ran}{by_guest}; that took {rehearsed.seconds:.0f} s of this host"
    if last := next((line for line in reversed(runs[-1].lines()) if line.strip()), ""):
        yield f"its last line{_at(runs[-1], workload.law)}: {last[:_CHARACTERS]}"


def _first_figures(workload: Workload, rehearsed: Rehearsed) -> Iterator[str]:
    counts_instructions = rehearsed.seen.acceleration == "icount"
    clock = "; 1 ns of the guest's clock is one instruction" if counts_instructions else ""
    each = " at each size" if len(rehearsed.sizes) > 1 else ""
    lines = [
        line
        for key, spec in workload.metrics.items()
        for line in _figures(workload, key, spec, rehearsed)
    ]
    if lines:
        yield f"the first figures, of base in one boot{each}{clock}:"
        yield from (f"  {line}" for line in lines)


def _figures(workload: Workload, key: str, spec: Metric, rehearsed: Rehearsed) -> Iterator[str]:
    label = f"{name_of(key, spec)} ({key})"
    if not spec.read:
        measured = [(run, run.samples[key]) for run in rehearsed.sizes if key in run.samples]
        if measured:
            yield f"{label}: {_of_sizes(workload, key, measured, 0.0, rehearsed)}"
        return
    reading = parse_reading(spec.read)
    unit = unit_of(key)
    of_sizes = [values(reading, unit, run.output, run.deltas) for run in rehearsed.sizes]
    if not any(of_sizes):
        looks = _options(rehearsed.sizes[0])
        yield f"{key}: nothing matches {spec.read}" + (f"; did you mean {looks}?" if looks else "")
        return
    firsts = [
        (run, of_size[0].value)
        for run, of_size in zip(rehearsed.sizes, of_sizes, strict=True)
        if of_size
    ]
    step = max(value.resolution for of_size in of_sizes for value in of_size)
    counts = max(map(len, of_sizes))
    several = f"; the first of {counts}, which count as repetitions" if counts > 1 else ""
    yield f"{label}: {_of_sizes(workload, key, firsts, step, rehearsed)}{several}"
    if any(trend([value.value for value in of_size]) for of_size in of_sizes):
        yield (
            f"{key}: its values rise or fall with their order in one boot: they may be points and "
            "not repetitions; let the script do one of them, chosen by a parameter (--set)"
        )


def _of_sizes(
    workload: Workload,
    key: str,
    measured: Sequence[tuple[Rehearsal, float]],
    step: float,
    rehearsed: Rehearsed,
) -> str:
    """Return a figure at each size, the step in which it changes, and how it grows."""
    unit = unit_of(key)
    law = workload.law
    texts = readable_together([value for _, value in measured], unit)
    shown = ", ".join(
        f"{text}{_at(run, law)}" for text, (run, _) in zip(texts, measured, strict=True)
    )
    if step > _FINE * min(abs(value) for _, value in measured):
        shown += f", in steps of {readable(step, unit)}"
    (small_run, small), (large_run, large) = measured[0], measured[-1]
    small_n, large_n = (size_of(run.params, law) for run in (small_run, large_run))
    if small_n >= large_n:
        return shown
    if abs(large - small) <= step:
        return f"{shown}; no difference between the sizes"
    growth = SizeGrowth(small_n, large_n, small, large)
    return f"{shown}; {_growth(growth, law, unit, rehearsed.seen.acceleration == 'icount')}"


def _growth(growth: SizeGrowth, law: str, unit: Unit, counts_instructions: bool) -> str:
    """Return what one more object costs, and the growth between the sizes."""
    parts = []
    if unit in _AMOUNTS:
        cost = readable(growth.for_one_more, unit)
        if counts_instructions and unit in _TIMES:
            instructions = growth.for_one_more * (1000 if unit == "us" else 1)
            cost += f" ({digits(instructions)} instructions)"
        parts.append(f"{cost} for one more {law}")
    if growth.name:
        times = digits(growth.large / growth.small)
        more = digits(growth.large_n / growth.small_n)
        parts.append(f"{growth.name} ({times} times at {more} times {law})")
    return ", ".join(parts)


def _at(run: Rehearsal, law: str) -> str:
    return f" at {law}={run.params[law]}" if law in run.params else ""


def _options(run: Rehearsal) -> str:
    return " or ".join(f"--metric '{option}'" for option in suggested(run.output))
