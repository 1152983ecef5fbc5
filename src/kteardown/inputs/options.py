"""The options that change an experiment: each is described here, and nowhere else.

An option is a field of one of the three groups. A field with the name of a field of the design or of the
machine replaces it (``inputs.override``). A verb takes the groups of which it has the options, and
``cli.options.grouped`` makes an option of the command line of each field.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

from kteardown import sandbox
from kteardown.model.arch import Arch
from kteardown.model.clock import Clock


def option(flag: str, default: Any = None, **more: Any) -> Any:
    """Return a field of a group that is given by ``flag``.

    ``more``: what ``typer.Option`` takes, and with ``completes`` the function of ``cli.complete`` that offers
    values.
    """
    return field(default=default, metadata={"flag": flag, **more})


_what = partial(option, rich_help_panel="What is compared")
_how = partial(option, rich_help_panel="How it is measured")


def _permit_unsafe_build(given: bool) -> bool:
    sandbox.unsafe_build = given
    return given


@dataclass(frozen=True)
class Parts:
    """The parts of an experiment to run, and the source of base."""

    source: str | None = _what(
        "--source",
        help="The base kernel: debian:6.12, git:PATH@REV, tar:FILE, image:FILE or debian-image:6.12.",
        completes="sources",
    )
    variant: list[str] | None = _what(
        "--variant",
        help="Only this variant: a series, its first two patches (NAME@2), all but its second patch "
        "(NAME@-2), a source, or a series on another source ('NAME on debian:7.3'). Repeatable.",
        completes="series_and_sources",
    )
    workload: list[str] | None = _what(
        "--workload", help="Only this workload of the experiment. Repeatable.", completes="workloads"
    )


@dataclass(frozen=True)
class Kernels:
    """The architecture, and the kernels that are built in addition to base and the variants."""

    arch: Arch | None = _what("--arch", help="The guest's architecture. Default: that of the experiment.")
    config: list[str] | None = _what(
        "--config",
        help="Add a configuration fragment to all kernels (`kteardown list fragments`, or a path to a "
        ".config file), or one symbol (CONFIG_NAME=y): debug, kasan and kmemleak find faults, which "
        "makes the kernels slower. Repeatable.",
        completes="fragments",
    )
    ablate: bool = _what(
        "--ablate",
        help="Find the effect of each patch: for every series of several patches, also boot each prefix, "
        "and the series without each patch, if that applies and builds.",
        default=False,
    )
    layout_twin: bool = _what(
        "--layout-twin",
        help="Wall clock: also boot base with a function that is never called in each file that the "
        "series touch, in every block. Without this option that kernel is booted at the end, if a "
        "difference below 10% needs it.",
        default=False,
    )
    unsafe_build: bool = _what(
        "--unsafe-build",
        help="Build without the sandbox: a patch can then run any program as you, while it is built. The "
        "result says so.",
        callback=_permit_unsafe_build,
        default=False,
    )


@dataclass(frozen=True)
class Designed:
    """The design: clock, points, number of boots, stopping rule, and the guests' machine."""

    clock: Literal[Clock, "both"] | None = _how(
        "--clock",
        metavar="CLOCK",
        help="instructions: instruction counts; with one CPU in the guest they are the same in every run "
        "and on every host, with several CPUs nearly always. wall: real time, with the boots of all "
        "kernels in random order and an A/A twin. both: first the one, then the other, and both changes "
        "of each point side by side. Default: that of the experiment.",
    )
    quick: bool = _how(
        "--quick",
        help="Fewer boots and points: a result in minutes, with less statistical power.",
        default=False,
    )
    assignments: list[str] | None = _how(
        "--set",
        metavar="PARAM=VALUES",
        help="The values of a parameter: zombies=0,3000 or zombies=0:30000:3000 (from, to, step); also "
        "of the guest's cpus, possible_cpus and numa_nodes. Repeatable.",
        completes="assignments",
    )
    seeds: int | None = _how(
        "--seeds",
        min=1,
        help="Number of seeds (instruction clock only); each kernel is booted once with each seed.",
    )
    boots: int | None = _how("--boots", min=1, help="Number of boots of each kernel (wall clock only).")
    repetitions: int | None = _how("--repetitions", min=1, help="Measured repetitions in each trial.")
    until: str | None = _how(
        "--until",
        metavar="RULE",
        help="Stop as soon as the result is certain, by a sequential rule that keeps its error rate: "
        "`verdict`: when no headline metric is inconclusive; `ci=2%`: when the interval of every "
        "headline metric is within 2% of the estimate. --boots or --seeds is then the maximum (default: "
        "40 boots, 20 seeds). With --clock both, the rule is applied to each clock.",
    )
    budget: str | None = _how(
        "--budget",
        metavar="TIME",
        help="With --until: the maximum time to measure on each clock, as 90s, 30m or 2h. (--budget of "
        "`kteardown hunt` is in million instructions.)",
    )
    lost_limit: str | None = _how(
        "--lost-limit",
        metavar="SHARE",
        help="Wall clock: a trial that lost more than this share of its time (5%, 0.5%) to other work of "
        "the host is void and repeated, at most twice; 100%: none is repeated. Default: 5% under KVM if "
        "the host has more CPUs than the guest, else 100%.",
    )
    predict: list[str] | None = _how(
        "--predict",
        metavar="PARAM=N",
        help="Extrapolate the growth laws to this value, with an interval, if the data supports it: "
        "zombies=100000. Repeatable.",
    )
    profile: bool = _how(
        "--profile",
        help="After measuring, boot each kernel again and sample its stacks: shows in which functions "
        "the time is spent, which grow faster than N, and which differ from base; keeps the stacks for "
        "flame graph tools.",
        default=False,
    )
    counts: bool = _how(
        "--counts",
        help="Also count instructions, cycles, cache misses and data TLB misses in the stretch that each "
        "workload measures, by the processor's counters, as metrics beside time: on the wall clock under "
        "KVM, where `kteardown doctor` says that the host has counters (docs/wall-clock.md).",
        default=False,
    )
    cpus: int | None = _how(
        "--cpus",
        min=1,
        help="Number of CPUs of the guest. Default: what the experiment and its workloads need.",
    )
    memory_mb: int | None = _how(
        "--memory-mb",
        min=64,
        help="Memory of the guest, in MiB. Default: what the experiment and its workloads need.",
    )

    def only_of(self, clock: Clock) -> Self:
        """Return these options without those that are only for the other clock."""
        if clock == "wall":
            return dataclasses.replace(self, seeds=None)
        return dataclasses.replace(self, boots=None, lost_limit=None, counts=False)


@dataclass(frozen=True)
class Overrides(Designed, Kernels, Parts):
    """All of these options; None, False or empty keeps the value of the experiment."""

    @classmethod
    def of(cls, *groups: Designed | Kernels | Parts, **more: Any) -> Overrides:
        """Return the options of some groups, and ``more`` by name."""
        given = {name: value for group in groups for name, value in vars(group).items()}
        return cls(**{**given, **more})
