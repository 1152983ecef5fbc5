"""Pieces of a run that were submitted as jobs, and how they are ordered."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kteardown.kernels.source import file_hash
from kteardown.run.execute import Piece
from kteardown.run.setting import Setting
from kteardown_cluster.journal import Journal, Kind
from kteardown_cluster.node_job import Order
from kteardown_cluster.slurm import Job, SlurmConfig


@dataclass
class Work:
    """A piece that was submitted and has no result yet."""

    key: str
    kind: Kind
    piece: Piece
    minutes: int
    attempt: int = -1
    lost: int = 0
    submitted: float = 0.0
    job: Job | None = None
    over: float | None = None
    """When it was first seen that its job has ended, or is unknown."""
    avoid: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        return f"{self.kind}.{self.key}.{self.attempt}"

    @property
    def words(self) -> str:
        boots = ", ".join(f"{boot.index} of {boot.kernel}" for boot in self.piece[:2])
        more = f" and {len(self.piece) - 2} more" if len(self.piece) > 2 else ""
        return f"boot {boots}{more}" + (" on a second node" if self.kind == "check" else "")


def key_of(piece: Piece, *, exact: bool) -> str:
    first = piece[0]
    return f"boot-{first.index:04d}" if exact else f"block-{first.block:04d}-{first.index:04d}"


def order_of(
    work: Work,
    setting: Setting,
    journal: Journal,
    config: SlurmConfig,
    qemu: str,
    hashes: dict[Path, str],
) -> Order:
    """Return what a node should execute. ``hashes`` are those of files that are known."""
    setup = setting.lab.placed(Path.absolute)
    kernels = {}
    used = [setup.agent, *setup.programs, *setup.archives]
    for name in dict.fromkeys(boot.kernel for boot in work.piece):
        kernels[name] = files = setting.kernels[name].placed(Path.absolute)
        used += [files.image, *files.modules, *chain(*files.optional_modules.values())]
    hashes |= {path: file_hash(path) for path in used if path not in hashes}
    return Order(
        key=work.key,
        attempt=work.attempt,
        kind=work.kind,
        journal=journal.path,
        plan=setting.plan.model_copy(update={"boots": work.piece, "points": ()}),
        kernels=kernels,
        setup=setup,
        hashes={str(path): hashes[path] for path in used},
        qemu=qemu,
        exclusive=setting.lab.acceleration != "icount",
        config=config,
    )
