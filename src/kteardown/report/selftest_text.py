"""What ``kteardown selftest`` found, as text that can be sent in a mail."""

from collections.abc import Iterator, Mapping
from typing import Any

from kteardown.model.both_clocks import ClockReading, OneClock
from kteardown.model.selftest import Noise, SelfTest
from kteardown.model.timing import Timing
from kteardown.report.formatting import detectable, percent, point_text
from kteardown.report.metric_names import shipped_name
from kteardown.report.sections.timing_lines import lines_of


def text(found: SelfTest) -> str:
    """Return the report, with a newline at the end."""
    checks = [f"{'ok' if check.ok else 'no'}  {check.name}: {check.state}" for check in found.checks]
    parts = [
        [f"kteardown {found.kteardown}, selftest"],
        ["The host:", f"  {_processor(found.machine)}", *(f"  {line}" for line in checks)],
        ["The probe:", f"  {found.probe or f'a probe guest ran under KVM in {found.probe_s:.2f} s'}"],
    ]
    if found.run:
        parts.append([f"A comparison on both clocks ({found.run}):", *_compared(found)])
    else:
        parts.append(["No guests were booted: there is no noise and no comparison here."])
    cannot = [
        line for one in found.cannot_show for line in (f"  {one.what}: {one.why}", f"    {one.command}")
    ]
    parts.append(["What this host cannot show:", *(cannot or ["  nothing is left"])])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _processor(machine: Mapping[str, Any]) -> str:
    cpu, topology = machine["cpu"], machine["cpu"]["topology"]
    return (
        f"{cpu['model']}, {cpu['architecture']}: {cpu['usable']} of {cpu['online']} CPUs, "
        f"{topology['cores']} cores, {topology['packages']} packages, {topology['nodes']} nodes; "
        f"Linux {machine['kernel']}, QEMU {machine['qemu'].get('x86_64')}"
    )


def _compared(found: SelfTest) -> Iterator[str]:
    timing: Timing | None = found.timing
    if timing is not None:
        yield from (f"  {line}" for line in lines_of(timing))
    yield "  base compared with itself on the wall clock (A/A), and the smallest change that could be found:"
    yield from (f"    {_noise(noise)}" for noise in found.noise)
    yield "  the instruction clock and the wall clock:"
    yield from (f"    {_reading(reading)}" for reading in found.readings)


def _noise(noise: Noise) -> str:
    interval = " to ".join(percent(end) for end in noise.null_ci) if noise.null_ci else "no interval"
    least = "unknown" if noise.mde is None else detectable(noise.mde)
    return f"{shipped_name(noise.workload, noise.metric)} {point_text(noise.point)}: {interval}; {least}"


def _reading(reading: ClockReading) -> str:
    sides = f"{_side(reading.instructions)} and {_side(reading.wall)}"
    name = shipped_name(reading.workload, reading.metric, reading.statistic)
    return f"{name} {point_text(reading.point)}: {reading.reading}: {sides} ({reading.reason})"


def _side(side: OneClock | None) -> str:
    if side is None or side.ratio is None:
        return "not compared"
    return f"{percent(side.ratio)} {side.verdict}"
