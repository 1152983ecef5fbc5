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
    """The section ``[slurm]``; docs/cluster.md says what each setting is, and has an example."""

    partition: _Word = ""
    account: _Word = ""
    qos: _Word = ""
    constraint: _Word = ""
    qemu: _Sha = ""
    qemu_feature: bool = False
    wall: Literal["kvm", "mttcg"] = "kvm"
    python: _Absolute = ""
    minutes: Annotated[int, Field(ge=1)] = 120
    max_jobs: Annotated[int, Field(ge=1)] = 400
    attempts: Annotated[int, Field(ge=1)] = 5
    poll_s: Annotated[float, Field(gt=0)] = 2.0
    grace_s: Annotated[float, Field(ge=0)] = 10.0
    patience_s: Annotated[float, Field(ge=0)] = 60.0
    node_cache: _Absolute = ""
    lock_folder: _Absolute = ""
    lock_wait_s: Annotated[float, Field(ge=0)] = 600.0
    options: tuple[_Option, ...] = ()


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
