"""What is counted and run of the workloads that were chosen."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kteardown.coverage.executed import PathCost
from kteardown.flows.runner import Runner
from kteardown.flows.try_series.measure import SeriesMeasurement
from kteardown.inputs.options import Designed, Kernels, Scripted
from kteardown.patches.config_of_series import SeriesConfig
from kteardown.patches.posted import PostedSeries
from kteardown.patches.tried_source import Base
from kteardown.progress import SilentReporter
from kteardown.report.try_page import Chosen, Exercise, MeasuredWorkload, Tried

POSTED = PostedSeries("change", "a change", "", "a@b", "", "", "", (), (), "")
BASE = Base("debian:7.2", "debian:7.2", "exactly", (), ())


def counted(name: str) -> MeasuredWorkload:
    return MeasuredWorkload(name, "executes f", only_counted=True, smallest=0.01)


def measured(
    monkeypatch: pytest.MonkeyPatch, exercises: Mapping[str, bool | None], spare: tuple[str, ...]
) -> Tried:
    """Measure with one workload that is only counted; ``exercises``: what each one turns out to
    execute."""

    def count(
        self: SeriesMeasurement, choice: MeasuredWorkload, tried: Tried
    ) -> tuple[Tried, Exercise]:
        cost = PathCost("", (1.0,), (1.0,))
        return tried, Exercise((choice.workload,), exercises[choice.workload], 0.0, cost)

    monkeypatch.setattr(SeriesMeasurement, "_counted", count)
    chosen = Chosen((), (counted("shortlived"),), tuple(map(counted, spare)))
    tried = Tried(POSTED, BASE, SeriesConfig(()), chosen, "kteardown try")
    runner = Runner(SilentReporter(), "kteardown try")
    return SeriesMeasurement(Kernels(), Designed(), Scripted(), runner).measure(tried)


def test_another_workload_is_counted_if_the_first_executes_no_changed_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exercises = {"shortlived": False, "crowd": False, "pipechain": True, "forkexit": True}
    tried = measured(monkeypatch, exercises, ("crowd", "pipechain", "forkexit"))
    assert {choice.workload for choice in tried.measured} == {"shortlived", "crowd", "pipechain"}
    assert tried.error is not None
    assert "none of them can measure it" in tried.error.message


@pytest.mark.parametrize("first", [True, None])
def test_no_other_workload_is_counted_if_the_first_executes_it_or_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, *, first: bool | None
) -> None:
    tried = measured(monkeypatch, {"shortlived": first}, ("crowd",))
    assert [choice.workload for choice in tried.measured] == ["shortlived"]


def test_it_is_said_if_no_workload_executes_a_changed_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = measured(monkeypatch, {"shortlived": False, "crowd": False}, ("crowd",))
    assert tried.error is not None
    assert "executed a line" in tried.error.message
