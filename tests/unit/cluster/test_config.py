"""The user's configuration: its place, its defaults, and errors that name the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.config import config_file
from kteardown_cluster.slurm import SlurmConfig, load_config


def test_without_a_file_every_setting_has_a_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_file() == tmp_path / "kteardown" / "config.toml"
    assert load_config() == SlurmConfig()


def test_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[slurm]\npartition = "perf"\noptions = ["--mem=0"]\nminutes = 30\n')
    found = load_config(file)
    assert (found.partition, found.options, found.minutes) == ("perf", ("--mem=0",), 30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[slurm", "not valid TOML"),
        ("[slurm]\npartitoin = 'x'\n", "slurm.partitoin: unknown key; did you mean 'partition'"),
        (
            "[slurm]\npartition = 'a b; rm'\n",
            "slurm.partition: has characters that a name in Slurm",
        ),
        ("[slurm]\nqemu = 'abc'\n", "slurm.qemu: must be 64 hexadecimal digits"),
        ("[slurm]\nnode_cache = 'cache'\n", "slurm.node_cache: must be an absolute path"),
        ("[slurm]\noptions = ['x']\n", "slurm.options.0: must be options of sbatch"),
        ("[slurm]\nminutes = 0\n", "slurm.minutes"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_config(file)
