"""With which parameters executions are counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from kteardown.cli.terminal import TerminalReporter
from kteardown.coverage.maps import counted_points
from kteardown.errors import (
    GuestError,
)
from kteardown.flows.try_series import count
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides, apply
from kteardown.kernels.request import KernelImage
from kteardown.model.record_fields import ParamValue
from kteardown.report.try_page import MeasuredWorkload
from kteardown.run.resolve import experiment_for

IMAGE = KernelImage("s", Path("bzImage"), "debian:6.12", "s", "x86_64", "", "", "", "")


def test_what_the_user_has_set_is_counted_as_it_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[dict[str, ParamValue]] = []
    reporter = TerminalReporter(Console(), quiet=True)

    def counted(
        kernels: object, workload: object, params: dict[str, ParamValue], *_: object, **_k: object
    ) -> None:
        seen.append(params)
        raise GuestError("enough", hint="")

    monkeypatch.setattr(count, "executed", counted)
    usual = counted_points(load_workload("swapfree"))[0]
    choice = MeasuredWorkload("swapfree", "", params=usual)
    for assignments in ([], ["processes=4", "mb=64", "end=exit"]):
        asked = Overrides(assignments=assignments)
        experiment = apply(experiment_for("swapfree", "debian:6.12"), asked)
        count.count_executions(choice, (IMAGE, IMAGE), experiment, asked, (), reporter)
    # The size, by which the counts of two guests differ, stays small.
    assert seen == [usual, {**usual, "processes": 4, "end": "exit"}]
    assert usual["processes"] != 4 and usual["mb"] != 64
