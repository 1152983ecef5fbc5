"""What the jobs of a run have in common, and the order of each."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import kteardown
from kteardown.inputs.config import SlurmConfig
from kteardown.kernels.source import file_hash
from kteardown.run.executors.node_job import KernelFiles, Order
from kteardown.run.executors.port import Piece, Setting
from kteardown.rundir.journal import Kind


@dataclass
class Ordering:
    """Makes orders. ``qemu`` is the SHA-256 of the QEMU of the run."""

    config: SlurmConfig
    qemu: str
    _hashes: dict[Path, str] = field(default_factory=dict)

    def order(
        self, setting: Setting, piece: Piece, key: str, attempt: int, kind: Kind, journal: Path
    ) -> Order:
        """Return the order of an attempt at a piece."""
        lab = setting.lab
        kernels = {}
        for name in dict.fromkeys(boot.kernel for boot in piece):
            files = setting.kernels[name]
            more = {module: _absolute(paths) for module, paths in files.optional_modules.items()}
            image, modules = files.image.absolute(), _absolute(files.modules)
            kernels[name] = KernelFiles(image=image, modules=modules, optional_modules=more)
        agent, programs = lab.agent.absolute(), _absolute(lab.programs)
        used = [*(path for files in kernels.values() for path in files.files()), agent, *programs]
        self._hashes |= {path: file_hash(path) for path in used if path not in self._hashes}
        return Order(
            key=key,
            attempt=attempt,
            kind=kind,
            journal=journal,
            plan=setting.plan.model_copy(update={"boots": piece, "points": ()}),
            kernels=kernels,
            agent=agent,
            programs=programs,
            hashes={str(path): self._hashes[path] for path in used},
            arch=lab.arch,
            acceleration=lab.acceleration,
            kernel_args=lab.kernel_args,
            lost_limit=lab.lost_limit,
            lost_asked=lab.lost_asked,
            qemu=self.qemu,
            exclusive=lab.acceleration != "icount",
            node_cache=Path(self.config.node_cache) if self.config.node_cache else None,
            lock_folder=Path(self.config.lock_folder) if self.config.lock_folder else None,
            lock_wait_s=self.config.lock_wait_s,
        )

    def command(self, order: Path) -> list[str]:
        """Return the command of a job."""
        return python_command(self.config, "kteardown.run.executors.node_job", str(order))


def _absolute(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path.absolute() for path in paths)


def python_command(config: SlurmConfig, module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of kteardown on a node.

    -P: no folder in which others may write, such as /tmp, can replace a module.
    """
    return [config.python or sys.executable, "-P", "-m", module, *arguments]


def python_path(config: SlurmConfig) -> str:
    """Return where the nodes find this kteardown, if they run the same Python; else empty."""
    return "" if config.python else str(Path(kteardown.__file__).resolve().parents[1])
