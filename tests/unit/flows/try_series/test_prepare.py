"""What is known of a series before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.coverage import call_paths
from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.flows.try_series.prepare import with_call_paths
from kteardown.report.try_page import Chosen


def test_the_call_path_of_what_no_workload_executes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, inlined = FunctionId("kernel/a.c", "reached"), FunctionId("kernel/a.c", "inlined")
    exit_call = FunctionId("kernel/exit.c", "__do_sys_exit")
    monkeypatch.setattr(
        call_paths, "callers_of", lambda folder: {reached: [inlined], inlined: [exit_call]}
    )
    changed = (
        ChangedFunction("kernel/a.c", "reached"),
        ChangedFunction("kernel/a.c", "added", exists_before=False),
        ChangedFunction("kernel/a.c", "by_pointer"),
    )
    found = with_call_paths(Chosen(changed, notes=("a note",)), tmp_path)
    path = "reached is reached by exit(2) -> __do_sys_exit -> inlined -> reached."
    assert found.notes == ("a note", path)
