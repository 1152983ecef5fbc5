"""``kteardown selftest``: a report on what this host measures, which a user with hardware can
send."""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, get_args

import typer

from kteardown import version
from kteardown.cli import options
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import GateError
from kteardown.flows.runner import Runner
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, on_clocks
from kteardown.model.arch import DEFAULT_ARCH, Arch, host_arch
from kteardown.model.both_clocks import ClockReading
from kteardown.model.timing import Timing
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir, shipped_table
from kteardown.report import formats
from kteardown.report.charts import templates
from kteardown.report.contents import timing_lines
from kteardown.report.formatting import detectable, percent, point_text
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.metrics import shipped_name
from kteardown.report.publication import Publication
from kteardown.visible import echo
from kteardown.vm import acceleration, host
from kteardown.vm.host import HostCheck, wall_checks

_ARCH: Arch = next((arch for arch in get_args(Arch) if arch == host_arch()), DEFAULT_ARCH)
"""The architecture of guests that this host may run under KVM."""
_NOISE = ("workload", "metric", "point", "null_ci", "mde")
_EXPERIMENT = "freezer"
_WORKLOAD = "zombies"
_VARIANT = "freezer-skip-exited"
_POINTS = "zombies=0,3000"


class SelfTest(StrictModel):
    """Everything that ``kteardown selftest`` found. ``run`` is empty without a comparison."""

    kteardown: str
    machine: dict[str, Any]
    acceleration: str
    probe: str
    """Why KVM is not used; empty if it is."""
    probe_s: float
    checks: tuple[HostCheck, ...]
    cannot_show: tuple[dict[str, str], ...]
    """By ``what``: what this host cannot show; ``why``; and the ``command`` that shows it on
    another."""
    run: str = ""
    timing: Timing | None = None
    noise: tuple[dict[str, Any], ...] = ()
    """The fields ``_NOISE`` of each comparison: the A/A interval of base, and what could be
    found."""
    readings: tuple[ClockReading, ...] = ()


def selftest(
    boots: Annotated[int, typer.Option(min=2)] = 6,
    host_only: Annotated[bool, typer.Option("--host-only")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter = options.reporter(verbose, quiet)
    reporter.note("reading the host, and booting a probe guest")
    self_test = _of_host()
    material = None if host_only else _compare(boots, reporter)
    if material is not None:
        self_test = _with_comparison(self_test, material)
    ending = options.error_of(partial(_check_clocks, self_test))
    if as_json:
        echo(formats.render("json", publication(self_test, material).ended_by(ending)), nl=False)
    else:
        echo(text(self_test), nl=False)
    if ending is not None:
        raise ending


def _check_clocks(self_test: SelfTest) -> None:
    """Raise GateError if the two clocks disagree on the comparison."""
    if first := next(
        (reading for reading in self_test.readings if reading.reading == "disagree"), None
    ):
        name = shipped_name(first.workload, first.metric, first.statistic)
        raise GateError(
            f"the clocks disagree on {name}: {first.reason}",
            hint=(
                f"see both with `kteardown report {self_test.run}`, and send the report of this "
                "command."
            ),
        )


def publication(self_test: SelfTest, material: Measured | None) -> Publication:
    """Return what the command says, for scripts; ``material`` is the comparison, unless there is
    none."""
    headline = (
        f"Guests do not run under KVM: {self_test.probe}."
        if self_test.probe
        else "Guests run under KVM."
    )
    # What is left out is in the run.
    details = self_test.model_dump(mode="json", exclude={"run", "timing", "noise", "readings"})
    if material is None:
        return Publication("selftest", headline, details=details)
    return Publication("selftest", headline, materials=(material,), details=details)


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


def cannot_show(
    machine: Mapping[str, Any], best: str, no_counters: str
) -> Iterator[dict[str, str]]:
    """Yield what a host cannot show. ``no_counters`` says why it cannot count events of guests."""
    topology = machine["cpu"]["topology"]
    smt = machine["cpu"]["smt"]
    lacks = {
        "kvm": best != "kvm",
        "hardware": machine["hypervisor"],
        "counters": no_counters,
        "nodes": (topology["nodes"] or 1) < 2,
        "smt": smt != "on",
    }
    for name, limitation in shipped_table("cli/texts/selftest").items():
        if lacks[name]:
            yield {
                **limitation,
                "why": limitation["why"].format(counters=no_counters, smt=smt or "unknown"),
            }


def _compare(boots: int, reporter: TerminalReporter) -> Measured:
    """Measure the shipped comparison on both clocks. Raises what ``pipeline.finish`` raises."""
    overrides = Overrides(
        variant=[_VARIANT],
        workload=[_WORKLOAD],
        arch=_ARCH,
        clock="both",
        assignments=[_POINTS],
        seeds=2,
        boots=boots,
        repetitions=5,
    )
    experiments = on_clocks(load_experiment(_EXPERIMENT), overrides)
    command = (
        f"kteardown run {_EXPERIMENT} --workload {_WORKLOAD} --variant {_VARIANT} --set {_POINTS} "
        f"--clock both --seeds 2 --boots {boots} --repetitions 5 --arch {_ARCH}"
    )
    runner = Runner(reporter, command)
    return runner.boot_rest(runner.start(experiments))


def _with_comparison(self_test: SelfTest, material: Measured) -> SelfTest:
    assert isinstance(material, BothMaterial)
    wall = material.clocks[1].result
    headline = {(r.metric, r.statistic) for r in material.both.readings}
    noise = [
        {name: getattr(c, name) for name in _NOISE}
        for c in wall.comparisons
        if (c.metric, c.statistic) in headline
    ]
    return self_test.model_copy(
        update={
            "run": material.name,
            "timing": wall.timing,
            "noise": tuple(noise),
            "readings": tuple(material.both.readings),
        }
    )


def text(self_test: SelfTest) -> str:
    words = templates("kteardown.cli", "texts", keep_trailing_newline=True)
    words.globals |= {f.__name__: f for f in (percent, detectable, shipped_name, point_text)}
    words.filters["percent"] = percent
    return words.get_template("selftest.txt.j2").render(
        self_test=self_test, timing=timing_lines(self_test.timing)
    )
