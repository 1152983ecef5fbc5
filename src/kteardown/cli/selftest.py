"""``kteardown selftest``: a report on what this host measures, which a user with hardware can send."""

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args

import typer

from kteardown import version
from kteardown.cli import options
from kteardown.cli.outcome import material_of_folder
from kteardown.cli.run import boot_rest, start
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import GateError
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, on_clocks
from kteardown.model.arch import DEFAULT_ARCH, Arch, host_arch
from kteardown.model.result import OneClock
from kteardown.model.selftest import CannotShow, Noise, SelfTest
from kteardown.paths import cache_dir
from kteardown.report.contents import timing_lines
from kteardown.report.formatting import detectable, percent, point_text
from kteardown.report.material import BothMaterial
from kteardown.report.metrics import shipped_name
from kteardown.rundir.find import RunFolder
from kteardown.visible import echo
from kteardown.vm import acceleration, host
from kteardown.vm.host_watch import wall_checks

_ARCH: Arch = next((arch for arch in get_args(Arch) if arch == host_arch()), DEFAULT_ARCH)
"""The architecture of guests that this host may run under KVM."""
_EXPERIMENT, _WORKLOAD, _VARIANT, _POINTS = "freezer", "zombies", "freezer-skip-exited", "zombies=0,3000"


def selftest(
    boots: Annotated[int, typer.Option("--boots", min=2, help="Boots of each kernel on the wall clock.")] = 6,
    host_only: Annotated[
        bool, typer.Option("--host-only", help="Build and boot no kernel: only the host and the probe.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter = options.reporter(verbose, quiet)
    reporter.note("reading the host, and booting a probe guest")
    found = _of_host()
    if not host_only:
        found = _with_comparison(found, _compare(boots, reporter))
    if as_json:
        echo(found.model_dump_json(indent=1))
    else:
        echo(text(found), nl=False)
    if found.disagreements:
        first = found.disagreements[0]
        name = shipped_name(first.workload, first.metric, first.statistic)
        raise GateError(
            f"the clocks disagree on {name}: {first.reason}",
            hint=f"see both with `kteardown report {found.run}`, and send the report of this command.",
        )


def _of_host() -> SelfTest:
    best = acceleration.best_wall_acceleration(_ARCH, cache=cache_dir())
    begun = time.monotonic()
    # What was found earlier is stored: a probe guest runs all the same, so that its time is known.
    reason = best.reason or acceleration.probe_boot(_ARCH, "kvm")[0]
    probe_s = time.monotonic() - begun
    machine = host.facts()
    return SelfTest(
        kteardown=version(),
        machine=machine,
        acceleration=best.acceleration,
        probe=reason,
        probe_s=round(probe_s, 3),
        checks=tuple(wall_checks(host.facts())),
        cannot_show=tuple(cannot_show(machine, best.acceleration, host.why_no_counters())),
    )


def cannot_show(machine: Mapping[str, Any], best: str, no_counters: str) -> Iterator[CannotShow]:
    """Yield what a host cannot show. ``no_counters`` says why it cannot count events of guests."""
    topology, smt = machine["cpu"]["topology"], machine["cpu"]["smt"]
    if best != "kvm":
        yield CannotShow(
            what="times under KVM",
            why="guests are emulated here",
            command="on a host with /dev/kvm: kteardown selftest",
        )
    if machine["hypervisor"]:
        yield CannotShow(
            what="what leaving the guest costs, and a host without steal",
            why="this host is itself a guest",
            command="on hardware: kteardown selftest",
        )
    if no_counters:
        yield CannotShow(
            what="cycles, cache misses and TLB misses of guests",
            why=no_counters,
            command="on a host with counters: kteardown run freezer --clock wall --quick --counts",
        )
    if (topology["nodes"] or 1) < 2:
        yield CannotShow(
            what="the choice of one of several nodes",
            why="this host has one node",
            command="on a host with several: kteardown run freezer --clock wall --quick",
        )
    if smt != "on":
        yield CannotShow(
            what="cores whose second CPU is kept free",
            why=f"SMT is {smt or 'unknown'} here",
            command="on a host with SMT: kteardown run freezer --clock wall --quick",
        )


def _compare(boots: int, reporter: TerminalReporter) -> RunFolder:
    """Measure the shipped comparison on both clocks. Raises what ``pipeline.finish`` raises."""
    asked = Overrides(
        variant=[_VARIANT],
        workload=[_WORKLOAD],
        arch=_ARCH,
        clock="both",
        assignments=[_POINTS],
        seeds=2,
        boots=boots,
        repetitions=5,
    )
    execution = options.Execution()
    experiments = on_clocks(load_experiment(_EXPERIMENT), asked)
    command = (
        f"kteardown run {_EXPERIMENT} --workload {_WORKLOAD} --variant {_VARIANT} --set {_POINTS} "
        f"--clock both --seeds 2 --boots {boots} --repetitions 5 --arch {_ARCH}"
    )
    found = start(experiments, reporter, execution, command=command)
    boot_rest(found, reporter, execution)
    return found


def _with_comparison(found: SelfTest, folder: RunFolder) -> SelfTest:
    material = material_of_folder(folder)
    assert isinstance(material, BothMaterial)
    wall = material.wall.result
    headline = {(r.metric, r.statistic) for r in material.both.readings}
    noise = [
        Noise(workload=c.workload, metric=c.metric, point=c.point, null_ci=c.null_ci, mde=c.mde)
        for c in wall.comparisons
        if (c.metric, c.statistic) in headline
    ]
    return found.model_copy(
        update={
            "run": folder.name,
            "timing": wall.timing,
            "noise": tuple(noise),
            "readings": tuple(material.both.readings),
        }
    )


def text(found: SelfTest) -> str:
    """Return the report, with a newline at the end."""
    cpu, machine = found.machine["cpu"], found.machine
    topology = cpu["topology"]
    host = (
        f"{cpu['model']}, {cpu['architecture']}: {cpu['usable']} of {cpu['online']} CPUs, "
        f"{topology['cores']} cores, {topology['packages']} packages, {topology['nodes']} nodes; "
        f"Linux {machine['kernel']}, QEMU {machine['qemu'].get('x86_64')}"
    )
    checks = [f"{'ok' if check.ok else 'no'}  {check.name}: {check.state}" for check in found.checks]
    parts = [
        [f"kteardown {found.kteardown}, selftest"],
        ["The host:", f"  {host}", *(f"  {line}" for line in checks)],
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


def _compared(found: SelfTest) -> Iterator[str]:
    yield from (f"  {line}" for line in timing_lines(found.timing))
    yield "  base compared with itself on the wall clock (A/A), and the smallest change that could be found:"
    for noise in found.noise:
        interval = " to ".join(percent(end) for end in noise.null_ci) if noise.null_ci else "no interval"
        least = "unknown" if noise.mde is None else detectable(noise.mde)
        name = f"{shipped_name(noise.workload, noise.metric)} {point_text(noise.point)}"
        yield f"    {name}: {interval}; {least}"
    yield "  the instruction clock and the wall clock:"
    for reading in found.readings:
        name = shipped_name(reading.workload, reading.metric, reading.statistic)
        sides = f"{_side(reading.instructions)} and {_side(reading.wall)}"
        yield f"    {name} {point_text(reading.point)}: {reading.reading}: {sides} ({reading.reason})"


def _side(side: OneClock | None) -> str:
    if side is None or side.ratio is None:
        return "not compared"
    return f"{percent(side.ratio)} {side.verdict}"
