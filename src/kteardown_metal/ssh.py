"""A machine that ``--machine ssh:HOST`` names: it is reached by ssh and boots by kexec
(``metal``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.inputs.config import config_file, sections
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import Experiment
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.rundir.directory import RunDir
from kteardown.vm.agent import build_machine_init
from kteardown.vm.machine import Machine
from kteardown_metal.exported import ExportedPlace, check_measurable
from kteardown_metal.metal import MachineConfig, MetalMachine, Proof

PREFIX = "ssh:"
"""Followed by a host."""
NAMES = "ssh:HOST"
PSTORE = "pstore"


def machines() -> dict[str, MachineConfig]:
    """Return the machines of the configuration by host. Raises InputError."""
    return sections("machines", MachineConfig)


@dataclass(frozen=True)
class SshPlace(ExportedPlace):
    """A machine of this lab, which was seen to come back by itself (``prove``)."""

    examination: str = "kteardown_metal.prove:examine"

    @property
    def host(self) -> str:
        """The host, as ssh names it."""
        return self.on.removeprefix(PREFIX)

    def check_resumed(self, run: RunDir) -> None:
        """A run that began there goes on there."""

    def check(self) -> None:
        """Raise InputError if the machine was not proved."""
        self.proof()

    def check_experiment(self, experiment: Experiment, *, kvm: bool) -> None:
        """Raise InputError if the machine cannot measure what is asked for."""
        config = machines().get(self.host)
        is_silent = config is not None and not config.serial and PSTORE not in experiment.config
        check_measurable(experiment, lacks=PSTORE if is_silent else "", kvm=kvm)

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the machine, as it was proved."""
        return self.proof().facts

    def machine(self, owner: str, reporter: Reporter, *, repeat: bool = False) -> Machine:
        """Return the machine. Raises InputError if it is not in the configuration, or was not
        proved."""
        proof = self.proof()
        watchdog_s = self.config().boot_s if proof.by == "watchdog" else 0
        return self._machine(owner, reporter, proof, watchdog_s)

    def unproved(self, owner: str, reporter: Reporter) -> MetalMachine:
        """Return the machine, to prove it. Raises InputError, BuildError, LabError."""
        return self._machine(owner, reporter, None, 0)

    def _machine(
        self, owner: str, reporter: Reporter, proof: Proof | None, watchdog_s: int
    ) -> MetalMachine:
        config = self.config()
        first = build_machine_init(DEFAULT_ARCH, cache=cache_dir(), reporter=reporter)
        return MetalMachine(self.host, config, first, owner, proof, reporter.note, watchdog_s)

    def config(self) -> MachineConfig:
        """Return its section of the configuration. Raises InputError."""
        config = machines().get(self.host)
        if config is None:
            raise InputError(
                f"--machine {self.on}: there is no section for this machine in {config_file()}",
                hint=f'add [machines."{self.host}"], with serial = "COMMAND" if it has a serial '
                "line (docs/machine.md).",
            )
        return config

    @property
    def proof_file(self) -> Entry:
        """Where its proof is kept."""
        return Entry(cache_dir() / "machines" / quote(self.host, safe="@"), ("proof.json",))

    def proof(self) -> Proof:
        """Return what the machine was seen to do. Raises InputError if it was not proved."""
        try:
            return Proof.model_validate_json(self.proof_file.content())
        except (OSError, ValidationError) as error:
            raise InputError(
                f"--machine {self.on}: it is not proved that this machine comes back after each "
                "boot",
                hint=f"boot it three times to prove it: kteardown doctor --machine {self.on}",
            ) from error


def named(on: str) -> SshPlace | None:
    """Return the place that ``on`` names; None if it is not one of these."""
    return SshPlace(on) if on.startswith(PREFIX) else None
