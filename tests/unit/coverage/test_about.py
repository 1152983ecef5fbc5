"""Which code a workload is made to measure."""

from __future__ import annotations

import pytest

import coverage_maps
from kteardown.coverage.about import about_of, relevance
from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.maps import read_map, shipped_path, shipped_sources, stress_tests
from kteardown.inputs.load import load_workload, workload_names
from kteardown.model.workload import About

ABOUT = About(
    code=("kernel/freezer.c", "kernel/power/", "mm/memcontrol.c:*charge*"),
    system_calls=("execve", "clone"),
)


@pytest.mark.parametrize(
    ("function", "clear"),
    [
        ("kernel/freezer.c:freeze_task", 1),
        ("kernel/power/process.c:freeze_processes", 1),
        ("kernel/power.c:f", 0),
        ("mm/memcontrol.c:try_charge_memcg", 2),
        ("mm/memcontrol.c:mem_cgroup_css_free", 0),
        ("fs/exec.c:do_execveat_common", 2),
        ("fs/exec.c:__do_sys_execve", 2),
        ("kernel/fork.c:kernel_clone", 2),
        ("kernel/fork.c:__do_sys_clone3", 0),
        ("net/core/skbuff.c:skb_clone", 0),
        ("arch/x86/entry/syscall_64.c:x64_sys_clone", 2),
    ],
)
def test_functions_are_named_by_file_folder_pattern_or_system_call(
    function: str, clear: int
) -> None:
    file, _, name = function.partition(":")
    assert relevance(ABOUT, FunctionId(file, name)) == clear


def test_every_workload_with_figures_says_what_it_is_about() -> None:
    """And it executes some of each entry, on a kernel whose map is shipped.

    The maps have the base configuration, so a workload that asks for more of it is in none.
    """
    maps = [read_map(shipped_path(source)) for source in shipped_sources()]
    for name in sorted(set(workload_names()) - stress_tests()):
        about = about_of(name)
        assert about.code, name
        if load_workload(name).config or name in coverage_maps.LEFT_OUT:
            continue
        executed = {
            function
            for coverage in maps
            if (workload := coverage.workloads.get(name))
            for function in (
                *workload.outside,
                *(inside for point in workload.points for inside in point.inside),
            )
        }
        entries = [About(code=(entry,)) for entry in about.code]
        entries += [About(system_calls=(call,)) for call in about.system_calls]
        idle = [entry for entry in entries if not any(relevance(entry, one) for one in executed)]
        assert not idle, (name, idle)


def test_a_workload_that_does_not_exist_is_about_nothing() -> None:
    assert about_of("no-such-workload") == About()
    assert about_of("zombies") == load_workload("zombies").about
