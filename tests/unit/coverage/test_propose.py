"""Workloads are proposed by what their stretch executes of a change."""

from __future__ import annotations

from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage
from kteardown.coverage.propose import matching, not_covered, propose

FREE = FunctionId("mm/z.c", "free")
MALLOC = FunctionId("mm/z.c", "malloc")
EXIT = FunctionId("e.c", "exit")


def point(how: str, instructions: int, **inside: tuple[int, int]) -> PointCoverage:
    known = {"free": FREE, "malloc": MALLOC, "exit": EXIT}
    return PointCoverage(
        {"how": how},
        instructions,
        {known[name]: Counts(*counts) for name, counts in inside.items()},
    )


MAP = CoverageMap(
    "debian:6.12",
    {
        "crowd": WorkloadCoverage("crowd", (point("a", 1000, exit=(9, 900)),), frozenset([FREE])),
        "swap": WorkloadCoverage(
            "swap",
            (
                point("a", 1000, free=(1, 10)),
                point("b", 1000, free=(5, 100)),
                point("c", 1000, malloc=(1, 5)),
            ),
            frozenset(),
        ),
    },
)


def change(function: FunctionId) -> ChangedFunction:
    return ChangedFunction(function.file, function.name)


def test_the_largest_share_of_the_stretch_comes_first() -> None:
    found = propose([change(FREE)], MAP)
    assert [(one.workload, one.params["how"], one.share) for one in found.measured] == [
        ("swap", "b", 0.1)
    ]
    assert found.measured[0].calls == 5
    assert [(one.workload, one.outside) for one in found.proposals[1:]] == [("crowd", (FREE,))]
    assert found.measured and not found.not_executed


def test_a_function_that_few_execute_says_more_than_one_that_all_execute() -> None:
    workloads = {
        "busy": WorkloadCoverage("busy", (point("a", 1000, exit=(9, 500)),), frozenset()),
        "special": WorkloadCoverage(
            "special", (point("a", 1000, exit=(1, 100), free=(1, 10)),), frozenset()
        ),
    }
    found = propose([change(EXIT), change(FREE)], CoverageMap("debian:6.12", workloads)).proposals
    assert [(one.workload, one.score) for one in found] == [("special", 1.2), ("busy", 1.0)]


def test_the_defaults_are_preferred_to_a_slightly_larger_share() -> None:
    points = (point("a", 1000, free=(1, 60)), point("b", 1000, free=(5, 100)))
    close = CoverageMap("debian:6.12", {"swap": WorkloadCoverage("swap", points, frozenset())})
    assert [one.params["how"] for one in propose([change(FREE)], close).proposals] == ["a"]


def test_stress_tests_come_after_workloads_with_figures() -> None:
    found = propose([change(EXIT), change(FREE)], MAP, stress_tests=["crowd"]).proposals
    assert [one.workload for one in found] == ["swap", "crowd"]
    assert [one.workload for one in propose([change(EXIT), change(FREE)], MAP).proposals] == [
        "crowd",
        "swap",
    ]


def test_another_point_is_proposed_for_functions_that_the_best_does_not_reach() -> None:
    found = propose([change(FREE), change(MALLOC)], MAP)
    assert [(one.workload, one.params["how"]) for one in found.measured] == [
        ("swap", "b"),
        ("swap", "c"),
    ]


def test_functions_that_nothing_executes_are_named() -> None:
    other = ChangedFunction("mm/z.c", "never")
    macro = ChangedFunction("mm/z.c", "LIMIT", "macro")
    added = ChangedFunction("mm/z.c", "new", exists_before=False)
    found = propose([other, macro, added], MAP)
    assert found.not_executed == (other,)
    assert not found.measured and not found.proposals


def test_a_function_outside_of_all_stretches() -> None:
    only = CoverageMap("debian:6.12", {"crowd": MAP.workloads["crowd"]})
    found = propose([change(FREE)], only)
    assert found.not_inside == (change(FREE),)
    assert not found.measured and [one.workload for one in found.proposals] == ["crowd"]


def test_a_file_means_all_its_functions() -> None:
    assert [one.name for one in matching("mm/z.c", MAP)] == ["free", "malloc"]
    assert [one.name for one in matching("mm/z.c:never", MAP)] == ["never"]


EXECUTED = {
    "debian:6.12": MAP.functions,
    "debian:7.2": {FREE, FunctionId("mm/z.c", "moved"), FunctionId("kernel/late.c", "late")},
}


def uncovered(text: str) -> str:
    return not_covered(text, "debian:6.12.117", EXECUTED)


def test_a_file_that_no_map_has_may_be_mistyped_or_not_executed() -> None:
    text = uncovered("nope/x.c:foo")
    assert text.startswith("no coverage map has a file nope/x.c: ")
    assert "the path is wrong or no workload executes this file" in text
    assert "similar" not in text and "debian:6.12" not in text


def test_names_that_are_similar_to_an_unknown_file_are_listed() -> None:
    for mistyped in ("kernel/lat.c", "late.c/late.c", "kernel/lte.c:none"):
        assert "; similar names: kernel/late.c" in uncovered(mistyped)
    # The function is found, so its file comes first.
    assert "; similar names: mm/z.c:free" in uncovered("kernel/late.cc/x.c:free")


def test_of_a_file_that_a_map_has_the_functions_that_are_executed_are_listed() -> None:
    text = uncovered("mm/z.c:mallok")
    assert text == (
        "no workload executes mm/z.c:mallok of debian:6.12.117, if such a function exists; "
        "workloads execute: mm/z.c:malloc, mm/z.c:free, mm/z.c:moved"
    )


def test_what_is_executed_on_another_kernel_only_names_that_kernel() -> None:
    for text in ("kernel/late.c", "kernel/late.c:late", "mm/z.c:moved"):
        assert uncovered(text).endswith("on another kernel: add --source debian:7.2")


def test_what_is_not_a_path_is_refused_with_the_form() -> None:
    end = "is not a file's path in the kernel's tree: write FILE or FILE:FUNCTION"
    assert uncovered("malloc") == f"malloc {end}, such as mm/z.c:malloc"
    assert uncovered("z.c") == f"z.c {end}, such as mm/z.c"
    assert uncovered("nonsense") == f"nonsense {end}"
