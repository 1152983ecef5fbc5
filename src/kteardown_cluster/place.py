"""The nodes of a cluster, which ``--on slurm`` or ``--on slurm:PARTITION`` names."""

import re
from dataclasses import dataclass
from functools import cached_property

from kteardown.errors import LabError
from kteardown.inputs.config import config_file
from kteardown.model.arch import Arch
from kteardown.model.experiment import Experiment
from kteardown.progress import Reporter
from kteardown.run.places.local import LocalPlace, no_kvm
from kteardown.rundir.directory import RunDir
from kteardown.vm.job import Acceleration
from kteardown_cluster.cluster import Cluster
from kteardown_cluster.journal import Journal
from kteardown_cluster.node_job import qemu_hash
from kteardown_cluster.slurm import Slurm, SlurmConfig, load_config

NAMES = "slurm, slurm:PARTITION (see `sinfo --summarize`)"
_NAME = re.compile(r"slurm(?::(\w[\w.,-]*)?)?", re.ASCII)


@dataclass(frozen=True)
class ClusterPlace(LocalPlace):
    """A partition of the cluster. Its nodes boot as this host does, and each says what it lacks."""

    is_here: bool = False
    partition: str = ""
    examination: str = "kteardown_cluster.doctor:examine"

    @cached_property
    def config(self) -> SlurmConfig:
        """The section of the configuration. Raises InputError."""
        return load_config()

    @property
    def scheduler(self) -> Slurm:
        """The scheduler of the partition."""
        return Slurm(self.config, self.partition)

    def check(self) -> None:
        """Read the configuration. Raises InputError."""
        load_config()

    def check_experiment(self, experiment: Experiment, *, kvm: bool) -> None:
        """Raise LabError on the contention clock, or if KVM is required and the configuration lets
        nodes emulate.

        A node without KVM is not used, unless the configuration says otherwise.
        """
        if experiment.design.clock == "contention":
            raise LabError(
                "--clock contention: nodes of a cluster do not count what their CPUs share",
                hint="run it on this host.",
            )
        if kvm and experiment.design.clock == "wall" and self.config.wall != "kvm":
            raise no_kvm("the configuration lets nodes emulate (slurm.wall)")

    def acceleration(self, experiment: Experiment, reporter: Reporter) -> Acceleration:
        """Return that of the configuration: on the wall clock all nodes must use the same."""
        return "icount" if experiment.design.clock == "instructions" else self.config.wall

    def check_counters(self, acceleration: Acceleration) -> None:
        """Raise LabError if nodes emulate. What else they have is not known here."""
        if acceleration == "mttcg":
            super().check_counters(acceleration)

    def unsettled(self, run: RunDir) -> bool:
        """Return whether jobs of an earlier session may still run."""
        return Journal(run).unsettled

    def executor(self, arch: Arch) -> Cluster:
        """Return what runs boots as jobs. Raises LabError if the QEMU of the nodes is not known."""
        try:
            qemu = self.config.qemu or qemu_hash(arch)
        except LabError as error:
            hint = f"set qemu to the SHA-256 of the QEMU of the nodes in {config_file()}."
            raise LabError(error.message, hint=hint) from error
        return Cluster(self.scheduler, self.config, qemu)


def named(on: str) -> ClusterPlace | None:
    """Return the place that ``on`` names; None if it is not one of these."""
    match = _NAME.fullmatch(on)
    return ClusterPlace(on, partition=match[1] or "") if match else None
