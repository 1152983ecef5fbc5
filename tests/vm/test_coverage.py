"""What guests execute is counted without changing them; a patch is followed to what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.coverage.attribute import DebugInfo, FunctionId, attribute
from kteardown.coverage.changed import changed_functions
from kteardown.coverage.executed import coverage_of, executed
from kteardown.coverage.maps import CoverageMap
from kteardown.coverage.propose import propose
from kteardown.inputs.load import load_experiment, load_workload
from kteardown.kernels import build
from kteardown.kernels.source import Sources
from kteardown.model.record import Sample, TrialEnd
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.resolve import resolve
from kteardown.run.setting import Bootable

pytestmark = [pytest.mark.vm, pytest.mark.build]

SMALL: dict[str, int | str] = {"zombies": 200, "make": "shared", "until": "freezer"}
LARGE: dict[str, int | str] = {**SMALL, "zombies": 500}
FREEZE = FunctionId("kernel/freezer.c", "freeze_task")


def test_counting_changes_no_figure_and_finds_the_freezer(base_image: Path) -> None:
    workload, silent = load_workload("zombies"), SilentReporter()
    points = [SMALL, SMALL, LARGE]
    counted = boot_counted(Bootable(base_image), workload, points, silent)
    plain = boot_counted(Bootable(base_image), workload, points, silent, counted=False)
    # Every sample, on a clock that counts instructions, and all else that the agent reports.
    # The host's time of the end of a trial is no figure.
    first, second = (
        [
            one.model_copy(update={"at_s": None}) if isinstance(one, TrialEnd) else one
            for one in boot.records
        ]
        for boot in (plain, counted)
    )
    assert first == second
    assert any(isinstance(record, Sample) for record in counted.records)

    info = DebugInfo(base_image.parent)
    small, large = (attribute(trial.executed, info) for trial in counted.trials[1:])
    assert all(trial.status == "ok" and trial.executed.stretches == 1 for trial in counted.trials)
    # Each zombie is visited twice while user space is frozen and once for the remaining tasks.
    more = large[0].functions[FREEZE].calls - small[0].functions[FREEZE].calls
    assert more == 3 * (500 - 200)
    # The zombies are made and reaped outside of the stretch, the freezer runs nowhere else.
    assert large[1].functions[FunctionId("kernel/fork.c", "copy_process")].calls >= 500
    assert FREEZE not in large[1].functions
    # Static functions and those that are inlined from headers are counted.
    assert large[0].functions[FunctionId("include/linux/freezer.h", "freezing")].calls >= 3 * 500

    coverage = CoverageMap("test", {"zombies": coverage_of(workload, counted, info)})
    assert coverage.functions >= {FREEZE, FunctionId("kernel/fork.c", "copy_process")}


def test_a_series_is_proposed_its_workload_and_was_executed() -> None:
    silent, cache = SilentReporter(), cache_dir()
    experiment = load_experiment("freezer")
    wanted = [
        kernel
        for kernel in resolve(experiment).kernels
        if kernel.name in ("base", "freezer-skip-exited")
    ]
    built = build.ensure(wanted, cache_dir=cache, reporter=silent)
    sources = Sources(cache, silent)
    tree = sources.tree(sources.identify(experiment.source))
    changed = changed_functions(wanted[1].patches, tree)
    assert {one.name for one in changed} == {"try_to_freeze_tasks", "thaw_processes"}

    workload = load_workload("zombies")
    base = boot_counted(Bootable(built.images["base"].image), workload, [SMALL], silent)
    info = DebugInfo(built.images["base"].image.parent)
    found = propose(changed, CoverageMap("test", {"zombies": coverage_of(workload, base, info)}))
    assert [one.workload for one in found.measured] == ["zombies"]
    assert {function.name for function in found.measured[0].functions} == {
        one.name for one in changed
    }

    done = executed(
        [built.images[kernel.name] for kernel in wanted], workload, SMALL, changed, silent, seeds=2
    )
    assert done.exercised and done.objects == "zombies"
    # The series tests every zombie, at least once in each of the two functions.
    slopes = {one.function.name: one.executions_per_object or 0 for one in done.functions}
    assert slopes.keys() == {"try_to_freeze_tasks", "thaw_processes"}
    assert all(slope >= 1 for slope in slopes.values())
    assert 0 < done.share < 1
    # The laws measured without the plugin: 68, 136 and 53 instructions, with the series 21, 42 and
    # 23, if gcc 12 built the kernels. With gcc 14 they are 275, and 101.
    assert done.cost is not None and len(done.cost.base) == len(done.cost.changed) == 2
    for laws, known in ((done.cost.base, 257), (done.cost.changed, 86)):
        assert laws == pytest.approx((known, known), rel=0.25)
        assert laws[0] == pytest.approx(laws[1], abs=2)
    # They are saved, not done later: six seconds that a guest is idle differ by less.
    assert all(-200 < more < -140 for more in done.cost.inside)
    assert len(done.cost.later) == 2 and all(abs(more) < 60 for more in done.cost.later)
