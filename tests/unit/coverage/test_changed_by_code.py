"""What the diffs change, corrected by the code of both kernels."""

from __future__ import annotations

import pytest

from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.changed import (
    ChangedFunction,
    by_code,
    may_change_executed,
    may_change_users,
)
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage

USER, OTHER, SAME = (FunctionId("mm/z.c", name) for name in ("user", "other", "same"))
INLINE = FunctionId("include/linux/z.h", "inline_function")
MACRO = ChangedFunction("mm/z.h", "LIMIT", "macro")


class _Info:
    """A kernel with three functions of one file, which is compiled as a part of another one."""

    def named(self, names: set[str]) -> set[FunctionId]:
        known = {USER, OTHER, SAME, FunctionId("fs/a.c", "user")}
        return {function for function in known if function.name in names}


def function(one: FunctionId) -> ChangedFunction:
    return ChangedFunction(one.file, one.name, statements_after=((3, 3),))


def found(*changed: ChangedFunction, moved: tuple[str, ...] = ()) -> list[str]:
    functions = {"mm/all.o": ("user", "other")}
    return [str(one) for one in by_code(changed, functions, {"mm/all.o": moved}, _Info())]  # type: ignore[arg-type]


def test_the_users_of_a_macro_are_changed_functions() -> None:
    assert found(MACRO) == ["mm/z.h:LIMIT", "mm/z.c:other", "mm/z.c:user"]
    assert found(MACRO, function(USER)) == ["mm/z.h:LIMIT", "mm/z.c:user", "mm/z.c:other"]


def test_functions_for_which_only_fields_moved_are_no_users() -> None:
    struct = ChangedFunction("mm/z.h", "struct place", "declaration")
    assert found(struct) == ["mm/z.h:struct place", "mm/z.c:other", "mm/z.c:user"]
    assert found(struct, moved=("user",)) == ["mm/z.h:struct place", "mm/z.c:other"]
    # What the diffs change is changed, if only by the field that it reads.
    both = found(struct, function(USER), moved=("user",))
    assert both == ["mm/z.h:struct place", "mm/z.c:user", "mm/z.c:other"]
    # A constant of a macro may be a displacement; and a layout may be all that is changed.
    assert "mm/z.c:user" in found(MACRO, moved=("user",))
    assert "mm/z.c:user" in found(struct, moved=("user", "other"))


def test_without_a_macro_the_diffs_name_all_functions() -> None:
    assert found(function(USER)) == ["mm/z.c:user"]


def test_a_function_with_equal_code_is_not_changed_but_one_that_is_inlined_may_be() -> None:
    assert found(function(USER), function(SAME), function(INLINE)) == [
        "mm/z.c:user",
        "include/linux/z.h:inline_function",
    ]


@pytest.mark.parametrize(
    ("name", "kind", "before", "may"),
    [
        ("LIMIT", "macro", True, True),
        ("LIMIT", "macro", False, False),
        ("struct place", "declaration", True, True),
        ("struct place", "declaration", False, False),
        ("prototype", "declaration", True, False),
        ("f", "function", True, False),
    ],
)
def test_a_new_macro_is_used_only_by_functions_of_the_diffs(
    name: str, kind: str, before: bool, may: bool
) -> None:
    changed = ChangedFunction("mm/z.h", name, kind, before)  # type: ignore[arg-type]
    assert may_change_users([changed]) == may


@pytest.mark.parametrize(
    ("file", "may"), [("mm/a.h", True), ("mm/a.c", True), ("block/b.c", False)]
)
def test_what_a_c_file_defines_is_used_only_there(file: str, may: bool) -> None:
    point = PointCoverage({}, 1, {FunctionId("mm/a.c", "user"): Counts(1, 1)})
    coverage = CoverageMap("debian:6.12", {"w": WorkloadCoverage("w", (point,), frozenset())})
    assert may_change_executed([ChangedFunction(file, "LIMIT", "macro")], coverage, {}) == may


@pytest.mark.parametrize(
    ("users", "may"), [(["mm/a.c", "mm/b.c"], True), (["mm/b.c"], False), ([], False)]
)
def test_a_header_counts_if_an_executed_file_includes_it(users: list[str], may: bool) -> None:
    point = PointCoverage({}, 1, {FunctionId("mm/a.c", "user"): Counts(1, 1)})
    coverage = CoverageMap("debian:6.12", {"w": WorkloadCoverage("w", (point,), frozenset())})
    changed = [ChangedFunction("mm/z.h", "LIMIT", "macro")]
    assert may_change_executed(changed, coverage, {"mm/z.h": users}) == may
    assert may_change_executed(changed, coverage, {"mm/y.h": users})
