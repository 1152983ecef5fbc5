"""Which workloads are chosen for a series, and which of their metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.coverage import changed as changed_module
from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage, counted_points
from kteardown.errors import NotBuiltError, NotExercisedError
from kteardown.flows.try_series import choose
from kteardown.flows.try_series.choose import choose_by_code, no_workload
from kteardown.flows.try_series.experiments import needed_settings
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Designed
from kteardown.kernels.request import KernelImage
from kteardown.model.record_fields import ParamValue
from kteardown.patches.tried_source import Base
from kteardown.report.try_page import Chosen
from kteardown.run.resolve import experiment_for

SMALLEST = "kteardown.flows.try_series.smallest.smallest_changes"
SELDOM = {"zombies": 300}
IMAGE = KernelImage("s", Path("bzImage"), "debian:6.12", "s", "x86_64", "", "", "", "")


def test_the_code_of_both_kernels_chooses_the_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    class Info:
        def __init__(self, folder: Path) -> None: ...

        def named(self, names: set[str]) -> set[FunctionId]:
            return {FunctionId("kernel/freezer.c", name) for name in names}

    monkeypatch.setattr(changed_module, "DebugInfo", Info)
    functions = {"kernel/freezer.o": ["freeze_task"]}
    monkeypatch.setattr(
        "kteardown.flows.try_series.count.build.functions_of", lambda image: (functions, {})
    )
    macro = ChangedFunction("include/linux/freezer.h", "LIMIT", "macro")
    before = Chosen((macro,), after_build=True)
    base = Base("debian:6.12", "debian:6.12.117-1", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [choice.workload for choice in found.workloads] == ["zombies"]
    assert [str(one) for one in found.changed] == [str(macro), "kernel/freezer.c:freeze_task"]
    assert no_workload(before) is no_workload(found) is None
    functions.clear()
    assert isinstance(
        no_workload(choose_by_code(before, base, IMAGE, Designed(quick=True))), NotExercisedError
    )


@pytest.mark.parametrize(
    ("calls", "own", "params", "smallest", "chosen"),
    [
        (1, 100, SELDOM, 0.0, "run"),  # 1% of its stretch.
        (300, 10, SELDOM, 0.0, "run"),  # Once for each zombie.
        (299, 99, SELDOM, 0.0, "nothing"),
        (300, 10, SELDOM, 0.002, "count"),  # 0.1% of the stretch, and its metrics show 0.2%.
        (1, 1000, SELDOM, 0.1, "run"),
        (1, 1000, SELDOM, 0.2, "count"),
    ],
)
def test_a_workload_is_run_if_its_metrics_can_show_the_change(
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
    own: int,
    params: dict[str, ParamValue],
    smallest: float,
    chosen: str,
) -> None:
    function = FunctionId("kernel/sched/core.c", "wake_up_process")
    point = PointCoverage(params, 10_000, {function: Counts(calls, own)})
    coverage = CoverageMap(
        "debian:6.12", {"zombies": WorkloadCoverage("zombies", (point,), frozenset())}
    )
    monkeypatch.setattr(choose, "shipped_map", lambda source: coverage)
    monkeypatch.setattr(
        "kteardown.flows.try_series.smallest.smallest_changes",
        lambda experiment, each_object: {"freeze_user_ns": smallest},
    )
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True, assignments=["other=1"]))
    assert [one.only_counted for one in found.workloads] == {
        "run": [False],
        "count": [True],
        "nothing": [],
    }[chosen]
    error = no_workload(found)
    if chosen == "nothing":
        assert isinstance(error, NotExercisedError)
        assert error.message.startswith(
            "workloads execute the change, but none of them can measure it: what the patch changes"
        )
        assert "1.0% of what a workload executes in its stretch (zombies)" in error.message
        assert "--script" in error.hint
    else:
        assert error is None
    whys = [one.why for one in found.workloads if one.only_counted]
    assert all("show a change from" in why and "can show it" not in why for why in whys)


def test_a_change_that_no_metric_shows_is_counted_in_two_workloads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the one that executes most of it, and in the quietest one."""
    function = FunctionId("kernel/task_work.c", "task_work_run")
    counted = {"pipechain": 10, "crowd": 8, "threadexit": 6, "reaper": 4}
    calls = {"crowd": 12}
    laws = {name: load_workload(name).law for name in counted}
    coverage = CoverageMap(
        "debian:6.12",
        {
            name: WorkloadCoverage(
                name,
                (
                    PointCoverage(
                        {laws[name]: 9}, 10_000, {function: Counts(calls.get(name, 9), own)}
                    ),
                ),
                frozenset(),
            )
            for name, own in counted.items()
        },
    )
    monkeypatch.setattr(choose, "shipped_map", lambda source: coverage)
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    smallest = {
        "compare-pipechain": 0.4,
        "compare-crowd": 0.2,
        "compare-threadexit": 0.01,
        "compare-reaper": 0.3,
    }
    monkeypatch.setattr(
        "kteardown.flows.try_series.smallest.smallest_changes",
        lambda one, each_object: {"x": smallest[one.name]},
    )
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [one.workload for one in found.workloads] == ["pipechain", "threadexit"]
    assert all(one.only_counted for one in found.workloads)
    # If these execute no changed line, one that calls the changed functions often is counted.
    assert [(one.workload, one.only_counted) for one in found.spare] == [("crowd", True)]
    assert found.spare[0].smallest == 0.2


def executed(
    monkeypatch: pytest.MonkeyPatch,
    function: FunctionId,
    smallest: float,
    counted: dict[str, tuple[dict[str, ParamValue], Counts]],
) -> list[tuple[str, bool]]:
    """The workloads that are chosen, and whether they only count, if each has executed
    ``function`` so often."""
    workloads = {
        name: WorkloadCoverage(
            name, (PointCoverage(params, 10_000, {function: counts}),), frozenset()
        )
        for name, (params, counts) in counted.items()
    }
    monkeypatch.setattr(choose, "shipped_map", lambda s: CoverageMap("debian:6.12", workloads))
    monkeypatch.setattr(
        "kteardown.flows.try_series.smallest.smallest_changes",
        lambda one, each_object: {"x_ns": smallest},
    )
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    chosen = choose_by_code(Chosen(changed), base, IMAGE, Designed(quick=True))
    return [(choice.workload, choice.only_counted) for choice in chosen.workloads]


EXEC = FunctionId("fs/exec.c", "do_execveat_common")
MUCH: tuple[dict[str, ParamValue], Counts] = ({"threads": 100}, Counts(500, 2000))
LITTLE: tuple[dict[str, ParamValue], Counts] = ({"jobs": 40}, Counts(76, 20))


def test_the_workload_that_is_made_for_the_change_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However little it executes of it, and whatever executes more by the way."""
    both = {"threadexit": MUCH, "shortlived": LITTLE}
    assert executed(monkeypatch, EXEC, 0.001, both) == [("shortlived", False)]
    # A change that it cannot show is counted there, and shown by the other.
    counted_first = [("shortlived", True), ("threadexit", False)]
    assert executed(monkeypatch, EXEC, 0.01, both) == counted_first
    assert executed(monkeypatch, EXEC, 0.9, both)[0] == ("shortlived", True)


def test_a_workload_without_a_growth_law_is_run_for_each_of_its_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = FunctionId("kernel/task_work.c", "task_work_run")
    for calls, chosen in ((40, [("shortlived", False)]), (39, [])):
        counted: dict[str, tuple[dict[str, ParamValue], Counts]] = {
            "shortlived": ({"jobs": 40, "parallel": 4}, Counts(calls, 50))
        }
        assert executed(monkeypatch, function, 0.001, counted) == chosen


def test_what_is_executed_for_one_object_is_not_executed_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = FunctionId("fs/file.c", "ksys_dup3")
    counted: dict[str, tuple[dict[str, ParamValue], Counts]] = {
        "wakeups": ({"depth": 1}, Counts(1, 20))
    }
    assert executed(monkeypatch, function, 0.001, counted) == []


def test_metrics_and_choices_that_cannot_show_the_change_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function, usual = (
        FunctionId("kernel/exit.c", "do_exit"),
        counted_points(load_workload("threadexit"))[0],
    )
    points = (
        PointCoverage({**usual, "how": "exit"}, 10_000, {function: Counts(999, 1000)}),
        PointCoverage({**usual, "how": "kill"}, 10_000, {function: Counts(1, 1)}),
    )
    counted = WorkloadCoverage("threadexit", points, frozenset())
    monkeypatch.setattr(
        choose, "shipped_map", lambda s: CoverageMap("debian:6.12", {"threadexit": counted})
    )
    sizes = {"threadexit_ns": 0.02, "noisy_ns": 0.5}
    monkeypatch.setattr(
        "kteardown.flows.try_series.smallest.smallest_changes", lambda one, each_object: sizes
    )
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    (choice,) = choose_by_code(before, base, IMAGE, Designed(quick=True)).workloads
    assert (choice.metrics, choice.only_counted) == (("threadexit_ns",), False)
    assert needed_settings(choice, experiment_for("threadexit", "debian:6.12")) == ["how=exit"]


def test_what_only_a_choice_adds_has_a_metric_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    function, usual = (
        FunctionId("drivers/base/power/main.c", "device_resume"),
        counted_points(load_workload("zombies"))[0],
    )
    devices = PointCoverage({**usual, "until": "platform"}, 10_000, {function: Counts(9, 350)})
    counted = WorkloadCoverage("zombies", (PointCoverage(usual, 10_000, {}), devices), frozenset())
    monkeypatch.setattr(
        choose, "shipped_map", lambda s: CoverageMap("debian:6.12", {"zombies": counted})
    )
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    (choice,) = choose_by_code(before, base, IMAGE, Designed(quick=True)).workloads
    assert (choice.metrics, choice.only_counted) == (("suspend_call_ns",), False)
    assert needed_settings(choice, experiment_for("zombies", "debian:6.12")) == ["until=platform"]


def test_functions_that_only_a_stress_test_executes_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both, stress = FunctionId("mm/a.c", "both"), FunctionId("mm/a.c", "stress")

    def executing(workload: str, *functions: FunctionId) -> WorkloadCoverage:
        point = PointCoverage({}, 100, {function: Counts(1, 10) for function in functions})
        return WorkloadCoverage(workload, (point,), frozenset())

    counted = [executing("zsmalloc_stress", both, stress), executing("zombies", both)]
    coverage = CoverageMap("debian:6.12.117-1", {one.name: one for one in counted})
    monkeypatch.setattr(choose, "shipped_map", lambda source: coverage)
    changed = tuple(ChangedFunction(one.file, one.name) for one in (both, stress))
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [choice.workload for choice in found.workloads] == ["zombies"]
    assert found.not_executed == ("stress (only in stress tests, which have no figures)",)


@pytest.mark.parametrize(("calls", "each"), [(300, True), (299, False)])
def test_an_allocation_decides_memory_if_it_is_itself_executed_for_each_object(
    monkeypatch: pytest.MonkeyPatch, calls: int, each: bool
) -> None:
    functions = {
        FunctionId("mm/memcontrol.c", "mem_cgroup_css_alloc"): Counts(calls, 5),
        FunctionId("mm/memcontrol.c", "mem_cgroup_css_online"): Counts(300, 5),
    }
    point = PointCoverage({"cgroups": 300}, 10_000, functions)
    coverage = CoverageMap(
        "debian:6.12", {"dyingcg": WorkloadCoverage("dyingcg", (point,), frozenset())}
    )
    monkeypatch.setattr(choose, "shipped_map", lambda source: coverage)
    seen: list[bool] = []

    def smallest(experiment: object, *, each_object: bool) -> dict[str, float]:
        seen.append(each_object)
        return {}

    monkeypatch.setattr(SMALLEST, smallest)
    changed = tuple(ChangedFunction(one.file, one.name) for one in functions)
    monkeypatch.setattr(choose, "changed_for_certain", lambda changed, variant: changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    choose_by_code(Chosen(changed), base, IMAGE, Designed(quick=True))
    assert set(seen) == {each}


def test_a_series_of_comments_has_nothing_to_measure() -> None:
    assert isinstance(no_workload(Chosen(())), NotBuiltError)
    macro = ChangedFunction("fs/a.c", "LIMIT", "macro")
    assert isinstance(no_workload(Chosen((macro,))), NotExercisedError)
