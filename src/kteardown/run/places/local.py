"""This host: QEMU, on the instruction clock or under KVM."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kteardown.errors import LabError
from kteardown.model.arch import Arch
from kteardown.model.experiment import Experiment
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.repeat import RepeatingMachine
from kteardown.rundir.directory import RunDir
from kteardown.vm import acceleration, host
from kteardown.vm.job import Acceleration
from kteardown.vm.machine import Machine
from kteardown.vm.qemu import QemuMachine

if TYPE_CHECKING:
    from kteardown.run.execute import Executor

LOCAL = "local"


@dataclass(frozen=True)
class LocalPlace:
    """This host. ``Place`` says what each part is."""

    on: str = ""
    is_here: bool = True
    streams: bool = True
    is_watched: bool = True
    examination: str = ""

    def check_resumed(self, run: RunDir) -> None:
        """A run can go on anywhere."""

    def unsettled(self, run: RunDir) -> bool:
        """Return False: guests end with their process."""
        return False

    def check(self) -> None:
        """Every host can boot something."""

    def check_experiment(self, experiment: Experiment, *, kvm: bool) -> None:
        """Raise LabError if guests lack KVM, or the counters of ``--counts``."""
        if experiment.design.clock != "wall" or not (kvm or experiment.design.counts):
            return
        best = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
        if kvm and best.acceleration != "kvm":
            raise no_kvm(best.reason)
        if experiment.design.counts:
            self.check_counters(best.acceleration)

    def acceleration(self, experiment: Experiment, reporter: Reporter) -> Acceleration:
        """Return the one for the clock; report the reason if it is not KVM."""
        if experiment.design.clock != "wall":
            return "icount"
        best = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
        if best.reason:
            reporter.note(best.reason)
        return best.acceleration

    def check_counters(self, acceleration: Acceleration) -> None:
        """Raise LabError if guests of this host have no hardware counters."""
        # Whether an emulated processor has counters on the instruction clock is checked with the
        # experiment.
        if acceleration == "icount":
            return
        reason = "it has no KVM, and emulation has no counters"
        if acceleration == "kvm":
            reason = host.why_guests_have_no_counters()
        if reason:
            raise LabError(
                "--counts: guests of this host have no hardware counters on the wall clock: "
                f"{reason}",
                hint="leave out --counts (in an experiment file, counts), or use a host for which "
                "`kteardown doctor` shows hardware counters as ok.",
            )

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of this host."""
        return host.facts()

    def first(self, arch: Arch, reporter: Reporter) -> Path | None:
        """Return None: the agent is the first process."""
        return None

    def machine(self, owner: str, reporter: Reporter, *, repeat: bool) -> Machine:
        """Return QEMU."""
        return (RepeatingMachine if repeat else QemuMachine)(reporter.command)

    def executor(self, arch: Arch) -> "Executor | None":
        """Return None: this process executes a plan."""
        return None


def no_kvm(reason: str) -> LabError:
    """Return the error of ``--require kvm``."""
    return LabError(
        f"--require kvm: the wall clock would be emulated: {reason}",
        hint=(
            "use a host for which `kteardown doctor` shows the wall clock on KVM as ok (a user may "
            "have to join the group kvm), or --clock instructions, which needs no KVM."
        ),
    )
