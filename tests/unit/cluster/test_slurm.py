"""The commands of Slurm: every value is one argument or is quoted, and answers are understood."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kteardown
from kteardown.errors import InputError, LabError, MissingError
from kteardown.inputs.config import config_file
from kteardown.run.places import HERE, place_of, remembered_place
from kteardown.rundir.directory import RunDir
from kteardown_cluster.slurm import (
    Job,
    Node,
    Slurm,
    SlurmConfig,
    Submission,
    UnreachableError,
    load_config,
    script,
)

JOB = Submission(
    name="kt-1",
    comment="done.boot-0003.0",
    command=("x",),
    output="/runs/a%jb/output.log",
    exclusive=False,
    memory_mb=1024,
    minutes=120,
    qemu="0123456789abcdef",
)


def test_a_boot_of_the_instruction_clock_takes_one_cpu() -> None:
    argv = Slurm(SlurmConfig(partition="perf", account="lab", constraint="amd|intel")).sbatch(JOB)
    assert {"--partition=perf", "--account=lab", "--constraint=(amd|intel)"} <= set(argv)
    assert {"--cpus-per-task=1", "--mem=1024M", "--no-requeue"} <= set(argv)
    assert "--output=/runs/a%%jb/output.log" in argv
    assert "--exclusive" not in argv


def test_a_block_has_its_node_for_itself_and_the_build_of_qemu_is_a_constraint() -> None:
    config = SlurmConfig(qemu_feature=True, constraint="amd", options=("--nice=9",))
    argv = Slurm(config, "fast").sbatch(replace(JOB, exclusive=True, avoid=("n1", "n2"), node="n3"))
    wanted = {
        "--exclusive",
        "--mem=0",
        "--constraint=amd&qemu-0123456789ab",
        "--partition=fast",
        "--exclude=n1,n2",
    }
    assert wanted <= set(argv)
    assert argv[-1] == "--nice=9"
    assert "--nodelist=n3" in argv


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12), max_size=4
    )
)
def test_no_shell_reads_a_name(words: list[str]) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="a b; exit 3") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        python = Path(folder, "python")
        python.write_text('#!/bin/sh\nprintf "%s\\0" "$PYTHONPATH" "$@"\n')
        python.chmod(0o755)
        patch.setattr(sys, "executable", str(python))
        patch.setattr(kteardown, "__file__", f"{folder}/src/kteardown/__init__.py")
        text = script(SlurmConfig(), ["module", *words])
        done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=True)
    expected = [f"{os.path.realpath(folder)}/src", "-P", "-m", "module", *words]
    assert done.stdout == "".join(f"{word}\0" for word in expected).encode()


def _fake(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_queue_and_the_nodes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(
        tmp_path,
        "squeue",
        "echo '7|PENDING||done.boot-0003.0|Resources, or (so) | more'",
        monkeypatch,
    )
    _fake(
        tmp_path,
        "sinfo",
        "printf 'n1|idle|none\\nn1|idle|none\\nn2|down*|Not responding\\n'",
        monkeypatch,
    )
    assert Slurm(SlurmConfig()).jobs("kt") == [
        Job("7", "PENDING", "", "done.boot-0003.0", "Resources, or (so) | more")
    ]
    nodes = Slurm(SlurmConfig()).nodes()
    assert nodes == [Node("n1", "idle", "none"), Node("n2", "down*", "Not responding")]
    assert [node.usable for node in nodes] == [True, False]


def test_a_submission_gives_the_id_and_only_some_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(
        tmp_path,
        "sbatch",
        f"cd {tmp_path}; env > env; cat > script; echo '12;cluster'",
        monkeypatch,
    )
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    monkeypatch.setenv("KTEARDOWN_CACHE", "cache")
    assert Slurm(SlurmConfig()).submit(JOB) == "12"
    environment = (tmp_path / "env").read_text()
    assert "SLURM_CONF=/etc/slurm.conf" in environment
    assert "secret" not in environment
    assert f"KTEARDOWN_CACHE={Path('cache').absolute()}" in environment
    assert (tmp_path / "script").read_text() == script(SlurmConfig(), ["x"])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            UnreachableError,
        ),
        ("Batch job submission failed: Socket timed out on send/recv operation", UnreachableError),
        ("Batch job submission failed: Invalid account or account/partition combination", LabError),
        ("invalid partition specified: nope", LabError),
    ],
)
def test_an_answer_that_may_change_is_another_error_than_one_that_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception]
) -> None:
    _fake(tmp_path, "sbatch", f"echo 'sbatch: error: {said}' >&2; exit 1", monkeypatch)
    with pytest.raises(error, match=said.partition("(")[0].strip()):
        Slurm(SlurmConfig()).submit(JOB)


def test_a_limit_of_the_cluster_is_an_error_that_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    _fake(tmp_path, "sbatch", f'echo "sbatch: error: {said}" >&2; exit 1', monkeypatch)
    with pytest.raises(LabError, match="submit limit") as raised:
        Slurm(SlurmConfig()).submit(JOB)
    assert "max_jobs" in raised.value.hint


def test_a_job_reads_no_module_from_the_folder_in_which_it_starts(tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text("raise SystemExit(3)")
    text = script(SlurmConfig(), ["kteardown_cluster.node_job", "no-such-order"])
    done = subprocess.run(
        ["/bin/sh"], input=text.encode(), cwd=tmp_path, capture_output=True, check=False
    )
    assert b"No such file" in done.stderr
    assert done.returncode == 1
    assert "--chdir=/" in Slurm(SlurmConfig()).sbatch(JOB)


def test_slurm_that_is_not_installed_is_an_error_that_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="squeue is not installed"):
        Slurm(SlurmConfig()).jobs("kt")


@pytest.mark.parametrize("on", ["sge", "slurm:-x", "slurm:a b", "", "slurm:$(x)"])
def test_a_place_that_there_is_not_is_an_error(on: str) -> None:
    with pytest.raises(InputError):
        place_of(on).check()


def test_a_run_remembers_where_it_is_executed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert remembered_place(run, None) == HERE
    assert remembered_place(run, "slurm:perf").on == "slurm:perf"
    with pytest.raises(InputError, match="began on slurm:perf"):
        remembered_place(run, None)
    assert remembered_place(run, "slurm:perf").on == "slurm:perf"
    assert remembered_place(run, "local") == HERE
    assert remembered_place(run, None) == HERE


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
