"""The figures under KVM: which number of a result each one is, and what the lab is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kvm_figures
from kteardown.inputs.load import load_experiment, load_workloads
from kvm_figures import FIGURES, Figure


def row(variant: str, metric: str, base: float, changed: float, **point: int) -> dict[str, object]:
    sides = {"base": {"median": base}, "changed": {"median": changed}}
    return {"variant": variant, "metric": metric, "point": point, **sides}


def result(folder: Path, *rows: dict[str, object]) -> None:
    run = folder / "20260101-000000-freezer"
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps({"comparisons": rows}))


def test_a_figure_is_the_difference_of_two_points_for_each_object(tmp_path: Path) -> None:
    figure = Figure("", "", "freeze_ns", {"zombies": 30}, {"zombies": 10}, 20)
    result(
        tmp_path,
        row("series", "freeze_ns", 1000, 500, zombies=10, cpus=1),
        row("series", "freeze_ns", 3000, 700, zombies=30, cpus=1),
        row("base-layout", "freeze_ns", 9, 9, zombies=30, cpus=1),
        row("series", "thaw_ns", 9, 9, zombies=30, cpus=1),
    )
    assert kvm_figures._values(figure, tmp_path) == (100, 10)


def test_the_newest_run_counts(tmp_path: Path) -> None:
    result(tmp_path, row("series", "freeze_ns", 1, 2, zombies=1))
    newer = tmp_path / "20260102-000000-freezer"
    newer.mkdir()
    rows = [row("series", "freeze_ns", 3, 4, zombies=1)]
    (newer / "result.json").write_text(json.dumps({"comparisons": rows}))
    assert kvm_figures._values(Figure("", "", "freeze_ns", {"zombies": 1}), tmp_path) == (3, 4)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.title)
def test_each_figure_is_a_metric_at_a_point_that_its_experiment_has(figure: Figure) -> None:
    experiment = load_experiment(figure.experiment)
    workload = load_workloads(experiment)[figure.arguments.split("--workload ")[1].split()[0]]
    assert figure.metric in workload.metrics
    assert {*figure.at, *figure.minus} <= {*workload.parameters}
