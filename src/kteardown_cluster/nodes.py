"""The nodes of a cluster, and which of them a job should avoid."""

from collections.abc import Collection
from dataclasses import dataclass, field

from kteardown.errors import LabError


@dataclass
class Nodes:
    """Those of one session."""

    cluster: str
    """Its name in messages."""
    names: tuple[str, ...] = ()
    avoided: set[str] = field(default_factory=set)
    """Nodes that could not run a job, as long as there are others."""
    worked: bool = False
    """Whether a job has had a result in this session."""

    def refused(self, node: str, why: str) -> None:
        """Avoid a node that cannot run the jobs. Raises LabError if none could since the session
        began."""
        self.avoided.add(node)
        if not self.worked and self.avoided >= set(self.names):
            raise LabError(
                f"no node of {self.cluster} can run the jobs; the last one, {node}: {why}",
                hint="check the nodes with `kteardown doctor --on slurm`, then resume the run.",
            )

    def forgive(self) -> None:
        """Avoid none any more if all are avoided."""
        if self.avoided >= set(self.names):
            self.avoided.clear()

    def to_avoid(self, excluded: Collection[str]) -> tuple[str, ...]:
        """Return what a job avoids that must not run on the nodes ``excluded``."""
        usable = set(self.names) - self.avoided - set(excluded)
        # Slurm refuses the name of a node that it does not have, as after a move to another
        # cluster.
        avoid = {*excluded, *(self.avoided if usable else ())} & set(self.names)
        return tuple(sorted(avoid))
