"""``--clock contention``: the metrics, the number of objects, and what cannot be counted."""

from __future__ import annotations

import pytest

from kteardown.errors import InputError
from kteardown.inputs.contention import METRICS, TRANSFER_TICKS, objects_of, with_contention
from kteardown.inputs.load import (
    load_experiment,
    load_workload,
    load_workloads,
    stress_names,
    workload_names,
)
from kteardown.inputs.options import Overrides, apply
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Contention


def counted(name: str, **options: object) -> Experiment:
    return apply(load_experiment(name), Overrides(**{"clock": "contention", **options}))  # type: ignore[arg-type]


def test_the_metrics_replace_those_of_the_workload() -> None:
    experiment = counted("swapfree")
    (workload,) = load_workloads(experiment).values()
    assert workload.metrics.keys() == METRICS.keys()
    assert set(workload.unused) >= load_workload("swapfree").metrics.keys()
    assert workload.metrics["line_moves_count"].name == "cache lines moved, for one freed page"
    assert experiment.machine.transfer_ticks == TRANSFER_TICKS
    assert experiment.design.repetitions == 1


def test_another_clock_has_no_cost_of_a_moved_line() -> None:
    experiment = apply(counted("swapfree"), Overrides(clock="instructions"))
    assert experiment.machine.transfer_ticks is None
    with pytest.raises(InputError, match="only for the contention clock"):
        apply(load_experiment("swapfree"), Overrides(assignments=["transfer_ticks=100"]))


def test_the_number_of_objects_is_a_product() -> None:
    workload = load_workload("swapfree")
    assert objects_of(workload, {"processes": 4, "mb": 2}) == 4 * 2 * 256
    plain = workload.model_copy(update={"contention": Contention()})
    assert objects_of(plain, {"processes": 4, "mb": 3}) == 3
    alone = plain.model_copy(update={"law": ""})
    assert objects_of(alone, {"processes": 4}) == 1
    assert "for one repetition" in with_contention(alone).metrics["locked_count"].name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "arm64"}, "only x86_64 is counted"),
        ({"profile": True}, "--profile measures on another clock"),
        ({"cpus": 65}, "more than 64 CPUs"),
    ],
)
def test_what_cannot_be_counted(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        counted("swapfree", **options)


def test_each_workload_says_what_is_counted_or_why_not() -> None:
    for name in {*workload_names()} - {*stress_names()}:
        workload = load_workload(name)
        of = workload.contention
        assert bool(of.refused) != bool(of.object), name
        factors = {factor for factor in of.objects if isinstance(factor, str)}
        assert factors <= workload.parameters.keys(), name


def test_a_refused_workload_is_named_with_the_reason() -> None:
    with pytest.raises(InputError, match="quota cannot be counted: it runs for a time"):
        counted("throttle-quota")
