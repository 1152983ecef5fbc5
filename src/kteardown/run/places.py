"""Where the guests of a run are: this host, or the cluster that ``--on`` names."""

import re
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.inputs.config import config_file, load_config
from kteardown.model.arch import Arch
from kteardown.run.executors.cluster import ClusterBackend
from kteardown.run.executors.node_job import qemu_hash
from kteardown.run.executors.slurm import Slurm
from kteardown.rundir.directory import writing

LOCAL = "local"
_NAME = re.compile(r"(?:\w[\w.,-]*)?", re.ASCII)


def check(on: str | None) -> None:
    """Check the value of ``--on`` and the configuration, before anything is built. Raises InputError."""
    if on is not None and on != LOCAL:
        _partition(on)
        load_config()


def slurm(on: str) -> Slurm:
    """Return the scheduler that ``on`` names. Raises InputError."""
    return Slurm(load_config().slurm, _partition(on))


def backend(on: str, arch: Arch) -> ClusterBackend | None:
    """Return what runs the boots; None for this host. Raises InputError, LabError."""
    if not on:
        return None
    config = load_config().slurm
    try:
        qemu = config.qemu or qemu_hash(arch)
    except LabError as error:
        raise LabError(
            error.message, hint=f"set qemu to the SHA-256 of the QEMU of the nodes in {config_file()}."
        ) from error
    return ClusterBackend(slurm(on), config, qemu)


def remembered(run: Path, on: str | None) -> str:
    """Return where the run at ``run`` is executed, and remember it: empty for this host. Raises LabError."""
    file = run / "on"
    if on is None:
        return file.read_text().strip() if file.is_file() else ""
    with writing(file):
        if on != LOCAL:
            file.write_text(f"{on}\n")
        else:
            file.unlink(missing_ok=True)
    return "" if on == LOCAL else on


def _partition(on: str) -> str:
    engine, _, partition = on.partition(":")
    if engine != "slurm":
        raise InputError(
            f"--on {on}: not a place where guests can run",
            hint="the places are local, slurm and slurm:PARTITION.",
        )
    if not _NAME.fullmatch(partition):
        raise InputError(
            f"--on {on}: not the name of a partition", hint="see the names with `sinfo --summarize`."
        )
    return partition
