"""An option that is accepted is used, and everything else is refused; input files have a usual
size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, apply
from kteardown.kernels.kconfig import parse_fragment
from unit.cli.test_main import kteardown

EXPERIMENT = """\
name = "x"
question = "?"
source = "debian:6.12"
[[workloads]]
workload = "zombies"
"""


def changed(**given: object) -> None:
    """Apply options to the freezer experiment."""
    apply(load_experiment("freezer"), Overrides.of(**given))


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("source", "", "--source: is empty"),
        ("variant", [""], "--variant: is empty"),
        ("variant", ["freezer-skip-exited", ""], "--variant: is empty"),
        ("lost_limit", "", "--lost-limit: is empty"),
        ("assignments", ["zombies=5", "zombies=6"], "zombies is given twice"),
        ("predict", ["zombies=5", "zombies=6"], "--predict zombies=6: zombies is given twice"),
        (
            "assignments",
            ["possible_cpus=1", "cpus=2"],
            "machine.cpus = 2 is more than 1, the number of possible CPUs",
        ),
        (
            "assignments",
            ["possible_cpus=1,4", "cpus=2"],
            "machine.cpus = 2 is more than 1, the number of possible CPUs",
        ),
        (
            "assignments",
            ["numa_nodes=3", "cpus=2"],
            "machine.numa_nodes = 3 is more than 2, the number of possible CPUs",
        ),
        (
            "assignments",
            ["possible_cpus=256"],
            "machine.possible_cpus = 256 is more than 255, the number of CPUs that a guest",
        ),
        (
            "assignments",
            ["numa_nodes=129", "possible_cpus=200"],
            "machine.numa_nodes = 129 is more than 128, the number of NUMA nodes that QEMU",
        ),
        ("seeds", 1_000_000, "trials; the maximum is 500,000"),
        ("assignments", ["cpus=1:16:1", "zombies=0:9999:1"], "trials; the maximum is 500,000"),
    ],
)
def test_what_would_be_ignored_or_too_much_is_refused(
    option: str, value: object, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        changed(**{option: value})


def test_two_numbers_of_cpus_are_refused() -> None:
    quick = apply(load_experiment("freezer"), Overrides(cpus=8, assignments=["possible_cpus=8,16"]))
    assert (quick.machine.cpus, quick.machine.possible_cpus) == (8, (8, 16))
    with pytest.raises(InputError, match="--cpus 8 and --set cpus are both given"):
        apply(load_experiment("freezer"), Overrides(cpus=8, assignments=["cpus=2,4"]))


def test_a_node_has_memory() -> None:
    given = ["numa_nodes=100", "possible_cpus=100"]
    apply(load_experiment("freezer"), Overrides(memory_mb=100, assignments=given))
    with pytest.raises(
        InputError,
        match="numa_nodes = 100 is more than 64, the number of NUMA nodes that QEMU",
    ):
        apply(load_experiment("freezer"), Overrides(memory_mb=64, assignments=given))


@pytest.mark.parametrize("argument", ["quiet\\u0000", "a\\nb", " x", ""])
def test_an_argument_of_the_kernel_is_plain_text(argument: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f'{EXPERIMENT}[machine]\nkernel_args = ["{argument}"]\n')
    with pytest.raises(InputError, match="kernel_args"):
        load_experiment(str(file))


def test_an_argument_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--variant", "./\udce9.patch", home=tmp_path)
    assert (done.returncode, "an argument is not text in UTF-8" in done.stderr) == (2, True)


def test_what_fits_is_accepted() -> None:
    changed(assignments=["possible_cpus=2,4", "cpus=2"])
    changed(assignments=["numa_nodes=2", "possible_cpus=4", "cpus=1"])
    changed(seeds=1000)


@pytest.mark.parametrize("until", ["ci=100%", "ci=100000%"])
def test_a_width_without_meaning_is_refused(until: str, tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--until", until, home=tmp_path)
    assert (done.returncode, "is not a stopping rule" in done.stderr) == (2, True)


@pytest.mark.parametrize("margin", ["inf", "nan", "1.0"])
def test_a_margin_without_meaning_is_refused(margin: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"{EXPERIMENT}[design]\nsame_within = {margin}\n")
    with pytest.raises(InputError, match="same_within"):
        load_experiment(str(file))


def test_the_map_of_another_source_is_named_and_an_unknown_one_refused(tmp_path: Path) -> None:
    verb = ("list", "workloads", "--covers", "kernel/freezer.c", "--source")
    done = kteardown(*verb, "nonsense", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    done = kteardown(*verb, "debian:99", home=tmp_path)
    assert (done.returncode, ", not on debian:99." in done.stderr) == (0, True)
    assert kteardown(*verb, "debian:6.12", home=tmp_path).stderr == ""
    assert kteardown("show", "kernel", "git:/nonexistent@x", home=tmp_path).returncode == 2


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "large", "deep"])
def test_an_experiment_is_a_file_of_a_usual_size(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    match kind:
        case "fifo":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case "large":
            file.touch()
            os.truncate(file, 1 << 40)
        case "deep":
            file.write_text(f"x = {'[' * 200_000}")
    with pytest.raises(InputError, match=r"cannot be read: it is|nested too deeply"):
        load_experiment(str(file))


def test_a_message_quotes_no_line_of_a_file_that_is_no_fragment() -> None:
    with pytest.raises(InputError) as refused:
        parse_fragment("CONFIG_NET=y\nroot:*:20228:0:99999:7:::\n", "/etc/shadow")
    assert refused.value.message == "/etc/shadow:2: is neither a symbol nor a comment"
    with pytest.raises(InputError, match="'CONFIG_NET y' is neither"):
        parse_fragment("CONFIG_NET y\n", "x.config")
