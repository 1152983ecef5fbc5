"""What a place is where the guests of a run boot."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kteardown.model.arch import Arch
from kteardown.model.experiment import Experiment
from kteardown.progress import Reporter
from kteardown.rundir.directory import RunDir
from kteardown.vm.job import Acceleration
from kteardown.vm.machine import Machine

if TYPE_CHECKING:
    from kteardown.run.execute import Executor


class Place(Protocol):
    """Where guests boot: what it can measure, and what boots there.

    A place that nothing is known of here, such as the nodes of a cluster, says so while the run
    goes on.
    """

    @property
    def on(self) -> str:
        """Its name, as ``--on`` has it; empty: this host."""

    @property
    def is_here(self) -> bool:
        """Whether its guests run on this host, where the host's time can be forecast."""

    @property
    def streams(self) -> bool:
        """Whether records come while the guest runs, and not only at its end."""

    @property
    def is_watched(self) -> bool:
        """Whether the machine that boots a guest also sees what other work takes from it."""

    @property
    def examination(self) -> str:
        """What ``kteardown doctor --on`` calls with it, as ``MODULE:FUNCTION``; empty: nothing."""

    def check_resumed(self, run: RunDir) -> None:
        """Raise InputError if a run that began there cannot go on."""

    def unsettled(self, run: RunDir) -> bool:
        """Return whether something of an interrupted run is left there, even if every boot has
        ended."""

    def check(self) -> None:
        """Check the configuration, before anything is built. Raises InputError."""

    def check_experiment(self, experiment: Experiment, *, kvm: bool) -> None:
        """Check that it can measure the experiment, with ``kvm`` under KVM, before anything is
        built.

        Raises InputError, LabError.
        """

    def acceleration(self, experiment: Experiment, reporter: Reporter) -> Acceleration:
        """Return the acceleration for the clock of an experiment; report the reason if it is not
        KVM."""

    def check_counters(self, acceleration: Acceleration) -> None:
        """Raise LabError if it is known that guests have no hardware counters."""

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the machine for the run's environment. Raises InputError."""

    def first(self, arch: Arch, reporter: Reporter) -> Path | None:
        """Return the first process of its boots; None: the agent is the first."""

    def machine(self, owner: str, reporter: Reporter, *, repeat: bool) -> Machine:
        """Return what boots kernels. Raises InputError.

        ``owner`` names what uses it; ``repeat``: equal boots are only repeated (``run.repeat``).
        """

    def executor(self, arch: Arch) -> "Executor | None":
        """Return what executes a plan, if that is not the machine itself. Raises LabError,
        InputError."""
