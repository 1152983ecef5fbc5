"""A machine that is not of this lab: its boots are exported, and their records imported
(``bundle``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kteardown.errors import InputError
from kteardown.model.arch import Arch
from kteardown.model.experiment import Experiment
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.rundir.directory import RunDir
from kteardown.vm import host
from kteardown.vm.agent import build_machine_init
from kteardown.vm.job import Acceleration
from kteardown.vm.machine import Machine

NAMES = ""
PREFIX = "exported:"
"""Followed by the token of its bundle."""


@dataclass(frozen=True)
class ExportedPlace:
    """A machine that is known only by the logs that come back. ``Place`` says what each part is."""

    on: str = PREFIX
    is_here: bool = False
    streams: bool = False
    is_watched: bool = False
    examination: str = ""

    def check(self) -> None:
        """Raise InputError: it cannot be named."""
        raise InputError(
            f"--on {self.on}: guests cannot run there",
            hint="export boots with `kteardown export-boot`.",
        )

    def check_resumed(self, run: RunDir) -> None:
        """Raise InputError: what is left of the run is on another machine."""
        raise InputError(
            f"the boots of {run.name} are exported: they run on a machine outside of this lab",
            hint="import the logs of that machine: kteardown import LOG...",
        )

    def unsettled(self, run: RunDir) -> bool:
        """Return False: nothing of it runs here."""
        return False

    def check_experiment(self, experiment: Experiment, *, kvm: bool) -> None:
        """Raise InputError if a machine cannot measure what is asked for."""
        check_measurable(experiment, kvm=kvm)

    def acceleration(self, experiment: Experiment, reporter: Reporter) -> Acceleration:
        """Return that there is none."""
        return "metal"

    def check_counters(self, acceleration: Acceleration) -> None:
        """The agent reports whether the machine has them."""

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of this host, which exports."""
        return host.facts()

    def first(self, arch: Arch, reporter: Reporter) -> Path | None:
        """Return the first process of a machine, which runs the agent."""
        return build_machine_init(arch, cache=cache_dir(), reporter=reporter)

    def machine(self, owner: str, reporter: Reporter, *, repeat: bool) -> Machine:
        """Return what boots nothing."""
        return _NoMachine()

    def executor(self, arch: Arch) -> None:
        """Return None: nothing is executed."""


class _NoMachine:
    """Boots nothing: the boots are on another machine."""

    def boot(self, *_: object) -> Any:
        raise InputError(
            "exported boots run on their own machine", hint="import the logs of that machine."
        )

    def stop(self) -> None:
        """Nothing runs."""

    def release(self) -> None:
        """Nothing is held."""


def named(on: str) -> ExportedPlace | None:
    """Return the place that ``on`` names; None if it is not one of these."""
    return ExportedPlace(on) if on.startswith(PREFIX) else None


def check_measurable(experiment: Experiment, *, lacks: str = "", kvm: bool = False) -> None:
    """Raise InputError if a machine cannot measure what is asked for.

    ``lacks``: the fragment of the kernel configuration without which it sends nothing.
    """
    design = experiment.design
    machine = experiment.machine
    suspends = any("platform" in sweep.params.get("until", ()) for sweep in experiment.workloads)
    for wrong, why, hint in (
        (
            design.clock != "wall",
            "--clock: a machine has only the wall clock",
            "use --clock wall.",
        ),
        (design.profile, "--profile: stacks are only sampled in guests", "remove --profile."),
        (
            machine.numa_nodes,
            "numa_nodes: the NUMA nodes of a real machine cannot be chosen",
            "remove numa_nodes.",
        ),
        (
            suspends,
            "until=platform suspends the machine, which then may not wake up",
            "choose another value of until.",
        ),
        (kvm, "--require kvm: a machine has no KVM", "remove --require."),
        (lacks, f"a machine without serial needs the fragment {lacks}", f"add --config {lacks}."),
        (machine.arch != "x86_64", "only x86_64 machines are supported", "remove --arch."),
    ):
        if wrong:
            raise InputError(why, hint=hint)
