"""The user's configuration: ``kteardown/config.toml`` in ``$XDG_CONFIG_HOME``, or in ``~/.config``."""

import re
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, Field

from kteardown.inputs.load import read_toml, validated
from kteardown.model.workload import StrictModel


def _fits(pattern: str, message: str) -> AfterValidator:
    """Return the check of a text that says ``message`` of one that is not as this pattern."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(message)
        return value

    return AfterValidator(check)


_Word = Annotated[str, _fits(r"[\w.,:@/+&|()*\[\]-]*", "has characters that a name in Slurm cannot have")]
_Sha = Annotated[str, _fits("([0-9a-f]{64})?", "must be 64 hexadecimal digits, as printed by sha256sum")]
_Absolute = Annotated[str, _fits("(/[^\0]*)?", "must be an absolute path")]
_Option = Annotated[str, _fits("--[^\0]*", "must be options of sbatch, each `--name=value`")]


class SlurmConfig(StrictModel):
    """The section ``[slurm]``; docs/cluster.md has an example."""

    partition: _Word = ""
    """Empty: the default partition of the cluster."""
    account: _Word = ""
    qos: _Word = ""
    constraint: _Word = ""
    """Features that a node must have, as in ``sbatch --constraint``."""
    qemu: _Sha = ""
    """The SHA-256 of the QEMU that nodes must have. Empty: that of the QEMU of this machine."""
    qemu_feature: bool = False
    """Whether the nodes have the feature ``qemu-`` and the first 12 digits of the SHA-256 of their QEMU."""
    wall: Literal["kvm", "mttcg"] = "kvm"
    """How guests run on the wall clock; a node that cannot is not used."""
    python: _Absolute = ""
    """The Python on the nodes that has kteardown. Empty: the one that runs this command."""
    minutes: Annotated[int, Field(ge=1)] = 120
    """The time limit of a job."""
    max_jobs: Annotated[int, Field(ge=1)] = 400
    """How many jobs wait and run at a time."""
    attempts: Annotated[int, Field(ge=1)] = 5
    """How often a piece of the plan is submitted before the run is given up."""
    poll_s: Annotated[float, Field(gt=0)] = 2.0
    """How often Slurm is asked about the jobs."""
    grace_s: Annotated[float, Field(ge=0)] = 10.0
    """How long a result of a job that has ended may take to appear on the shared file system."""
    patience_s: Annotated[float, Field(ge=0)] = 60.0
    """How long all jobs wait before that is reported, with Slurm's reason."""
    node_cache: _Absolute = ""
    """A folder on each node that keeps copies of kernels. Empty: they are read from the shared cache."""
    lock_folder: _Absolute = ""
    """A folder on each node for the lock of the host. Empty: ``/run/lock``, or ``/tmp``."""
    lock_wait_s: Annotated[float, Field(ge=0)] = 600.0
    """How long a job waits for guests that others left behind on its host."""
    options: tuple[_Option, ...] = ()
    """Further options of ``sbatch``, each ``--name=value``."""


class Config(StrictModel):
    slurm: SlurmConfig = SlurmConfig()


def config_file() -> Path:
    """Return where the configuration is, whether it exists or not."""
    return Path(platformdirs.user_config_dir("kteardown")) / "config.toml"


def load_config(file: Path | None = None) -> Config:
    """Return the configuration; every setting has a default. Raises InputError that names the setting."""
    file = file or config_file()
    known = (
        f"correct these keys; the settings are {', '.join(SlurmConfig.model_fields)}, in the section [slurm]."
    )
    return validated(Config, read_toml(file), file, known) if file.exists() else Config()
