"""The experiments with which a series is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.coverage.maps import counted_points
from kteardown.errors import (
    InputError,
)
from kteardown.flows.try_series.experiments import needed_settings, scripts_in, with_fewer_sizes
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides, apply
from kteardown.report.try_page import MeasuredWorkload
from kteardown.run.resolve import experiment_for


def test_a_workload_is_run_where_it_executes_the_change() -> None:
    experiment = experiment_for("zombies", "debian:6.12")
    usual = counted_points(load_workload("zombies"))[0]
    other = {**usual, "make": "fork"}
    assert needed_settings(MeasuredWorkload("zombies", "", params=usual), experiment) == []
    assert needed_settings(MeasuredWorkload("zombies", "", params=other), experiment) == [
        "make=fork"
    ]


@pytest.mark.parametrize(
    ("workload", "law", "few"),
    [
        ("zombies", "zombies", (0, 6000, 15000)),
        ("dyingcg", "cgroups", (0, 500, 1000)),
        ("pipechain", "processes", (500, 1000, 4000)),
    ],
)
def test_the_quick_design_has_as_few_sizes_as_a_law_needs(
    workload: str, law: str, few: tuple[int, ...]
) -> None:
    experiment = with_fewer_sizes(experiment_for(workload, "debian:6.12"))
    assert apply(experiment, Overrides(quick=True)).workloads[0].params[law] == few
    mine = apply(experiment, Overrides(quick=True, assignments=[f"{law}=7"]))
    assert mine.workloads[0].params[law] == (7,)


def test_a_folder_is_its_scripts(tmp_path: Path) -> None:
    for name in ("b.sh", "a.c", "notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "d.sh").mkdir()
    one = str(tmp_path / "b.sh")
    assert scripts_in([str(tmp_path), "perf bench", one]) == [
        str(tmp_path / "a.c"),
        one,
        "perf bench",
        one,
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no script"):
        scripts_in([str(tmp_path / "empty")])
