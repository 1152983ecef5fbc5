"""The user's configuration: ``kteardown/config.toml`` in ``$XDG_CONFIG_HOME``, or in ``~/.config``."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import Field, ValidationError, field_validator

from kteardown.errors import InputError
from kteardown.inputs.load import read_text
from kteardown.model.workload import StrictModel

_WORD = re.compile(r"[\w.,:@/+&|()*\[\]-]*", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{64}")


class SlurmConfig(StrictModel):
    """The section ``[slurm]``; docs/cluster.md has an example."""

    partition: str = ""
    """Empty: the default partition of the cluster."""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    """Features that a node must have, as in ``sbatch --constraint``."""
    qemu: str = ""
    """The SHA-256 of the QEMU that nodes must have. Empty: that of the QEMU of this machine."""
    qemu_feature: bool = False
    """Whether the nodes have the feature ``qemu-`` and the first 12 digits of the SHA-256 of their QEMU."""
    wall: Literal["kvm", "mttcg"] = "kvm"
    """How guests run on the wall clock; a node that cannot is not used."""
    python: str = ""
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
    node_cache: str = ""
    """A folder on each node that keeps copies of kernels. Empty: they are read from the shared cache."""
    lock_folder: str = ""
    """A folder on each node for the lock of the host. Empty: ``/run/lock``, or ``/tmp``."""
    lock_wait_s: Annotated[float, Field(ge=0)] = 600.0
    """How long a job waits for guests that others left behind on its host."""
    options: tuple[str, ...] = ()
    """Further options of ``sbatch``, each ``--name=value``."""

    @field_validator("partition", "account", "qos", "constraint")
    @classmethod
    def _is_word(cls, value: str) -> str:
        if not _WORD.fullmatch(value):
            raise ValueError("has characters that a name in Slurm cannot have")
        return value

    @field_validator("qemu")
    @classmethod
    def _is_sha(cls, value: str) -> str:
        if value and not _SHA.fullmatch(value):
            raise ValueError("must be 64 hexadecimal digits, as printed by sha256sum")
        return value

    @field_validator("python", "node_cache", "lock_folder")
    @classmethod
    def _is_path(cls, value: str) -> str:
        if value and not Path(value).is_absolute():
            raise ValueError("must be an absolute path")
        return value

    @field_validator("options")
    @classmethod
    def _are_options(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(option.startswith("--") for option in value):
            raise ValueError("must be options of sbatch, each `--name=value`")
        return value


class Config(StrictModel):
    """The whole file."""

    slurm: SlurmConfig = SlurmConfig()


def config_file() -> Path:
    """Return where the configuration is, whether it exists or not."""
    return Path(platformdirs.user_config_dir("kteardown")) / "config.toml"


def load_config(file: Path | None = None) -> Config:
    """Return the configuration; every setting has a default. Raises InputError that names the setting."""
    file = file or config_file()
    try:
        fields = tomllib.loads(read_text(file))
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}", hint="check the file.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{file}: not TOML: {error}", hint="correct the line.") from error
    try:
        return Config.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{file}: {name}: {first['msg'].removeprefix('Value error, ')}",
            hint=f"the settings are {', '.join(SlurmConfig.model_fields)}, in the section [slurm].",
        ) from error
