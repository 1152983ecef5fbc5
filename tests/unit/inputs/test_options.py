"""Command-line options applied to an experiment."""

from __future__ import annotations

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import experiment_names, load_experiment
from kteardown.inputs.options import Overrides, apply, parse_seconds


def test_without_options_nothing_changes() -> None:
    experiment = load_experiment("freezer")
    assert apply(experiment, Overrides()) == experiment


def test_options_change_their_fields() -> None:
    experiment = apply(
        load_experiment("freezer"),
        Overrides(
            clock="wall",
            boots=3,
            source="debian:7.2",
            cpus=2,
            variant=["v"],
            assignments=["zombies=1,2"],
        ),
    )
    assert (experiment.design.clock, experiment.design.boots) == ("wall", 3)
    assert (experiment.source, experiment.machine.cpus, experiment.variants) == (
        "debian:7.2",
        2,
        ("v",),
    )
    assert all(sweep.params["zombies"] == (1, 2) for sweep in experiment.workloads)


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (
            Overrides(source="debian-image:6.12", variant=["debian-image:7.3"], config=["disk"]),
            "config",
        ),
        (Overrides(source="image:x", variant=["image:y"], config=["CONFIG_XFS_FS=y"]), "config"),
        (Overrides(source="image:x", variant=["image:y"], compiler="gcc-14"), "compiler"),
    ],
)
def test_options_of_a_build_are_refused_if_no_kernel_is_built(
    asked: Overrides, option: str
) -> None:
    with pytest.raises(InputError, match=f"--{option}: .* is a finished kernel") as error:
        apply(load_experiment("freezer"), asked)
    assert f"--{option}" in error.value.hint


@pytest.mark.parametrize("source", ["debian:6.12", "debian-image:6.12"])
def test_options_of_a_build_are_for_each_kernel_that_is_built(source: str) -> None:
    asked = Overrides(source=source, variant=["freezer-skip-exited on debian:7.3"], config=["disk"])
    assert "disk" in apply(load_experiment("freezer"), asked).config
    other = Overrides(source="debian:6.12", variant=["debian-image:7.3"], compiler="gcc-14")
    assert apply(load_experiment("freezer"), other).compiler == "gcc-14"


def test_quick_has_the_values_of_the_file_and_set_overrides_them() -> None:
    freezer = load_experiment("freezer")
    quick = apply(freezer, Overrides(quick=True))
    assert quick.design.seeds == freezer.quick.seeds
    assert quick.workloads[0].params == dict(freezer.quick.params)
    chosen = apply(freezer, Overrides(quick=True, assignments=["zombies=7"]))
    assert chosen.workloads[0].params["zombies"] == (7,)


def test_the_machine_is_swept_like_a_parameter() -> None:
    experiment = apply(
        load_experiment("freezer"), Overrides(assignments=["possible_cpus=2,32", "zombies=9"])
    )
    assert experiment.machine.swept == {"possible_cpus": (2, 32)}
    assert experiment.machine.points() == [{"possible_cpus": 2}, {"possible_cpus": 32}]
    assert experiment.workloads[0].params["zombies"] == (9,)


def test_one_of_several_workloads_can_be_selected() -> None:
    experiment = apply(load_experiment("freezer"), Overrides(workload=["zombies_cgroup"]))
    assert [sweep.workload for sweep in experiment.workloads] == ["zombies_cgroup"]


@pytest.mark.parametrize("name", experiment_names())
def test_each_workload_of_a_shipped_experiment_runs_alone(name: str) -> None:
    experiment = load_experiment(name)
    for sweep in experiment.workloads:
        alone = apply(experiment, Overrides(workload=[sweep.workload]))
        assert [left.workload for left in alone.workloads] == [sweep.workload]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (Overrides(assignments=["zombis=1"]), "did you mean 'zombies'"),
        (Overrides(workload=["zombie"]), "did you mean 'zombies'"),
        (Overrides(assignments=["zombies=many"]), "^--set zombies=many: must be an integer"),
        (Overrides(assignments=["zombies=3,-1"]), "^--set zombies=-1: must be 0 to 4,000,000"),
        (Overrides(assignments=["make=magic"]), "^--set make=magic: must be one of "),
        (Overrides(assignments=["possible_cpus=all"]), "--set possible_cpus: expected integers"),
        (Overrides(assignments=["possible_cpu=2"]), "did you mean 'possible_cpus'"),
    ],
)
def test_a_wrong_option_is_an_error(overrides: Overrides, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        apply(load_experiment("freezer"), overrides)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5m", 90)]
)
def test_a_budget_is_a_time(text: str, seconds: float) -> None:
    assert parse_seconds(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "-1m", "0s", "1d", "1h30m"])
def test_a_budget_that_is_not_a_time_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="expected a time"):
        parse_seconds(text, "--budget")


def test_until_raises_the_maximum_number_of_boots_unless_it_is_given() -> None:
    freezer = load_experiment("freezer")
    design = apply(freezer, Overrides(until="verdict", quick=True, budget="60s")).design
    assert (design.boots, design.seeds, design.until, design.budget_s) == (40, 20, "verdict", 60)
    assert design.repetitions == freezer.quick.repetitions
    assert apply(freezer, Overrides(until="ci=2%", seeds=7)).design.seeds == 7


@pytest.mark.parametrize("until", ["", "sure", "ci=2", "ci=x%", "verdict "])
def test_an_invalid_stopping_rule_is_an_error(until: str) -> None:
    with pytest.raises(InputError, match="expected verdict, ci=WIDTH% or margin=WIDTH%"):
        apply(load_experiment("freezer"), Overrides(until=until))


def test_the_layout_twin_is_only_for_the_wall_clock() -> None:
    freezer = load_experiment("freezer")
    assert apply(freezer, Overrides(layout_twin=True, clock="wall")).design.layout_twin
    with pytest.raises(InputError, match="wall clock"):
        apply(freezer, Overrides(layout_twin=True))
