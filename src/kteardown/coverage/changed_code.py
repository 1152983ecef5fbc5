"""Which functions a patch changes for certain: those whose compiled code differs from that of base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from kteardown.coverage.attribute import DebugInfo, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap
from kteardown.kernels.object_changes import Functions


def may_change_users(changed: Sequence[ChangedFunction]) -> bool:
    """Return whether functions that the diffs do not touch may change: those that use a macro or a struct."""
    return any(map(_has_users, changed))


def may_change_executed(changed: Sequence[ChangedFunction], coverage: CoverageMap) -> bool:
    """Return whether these may be functions of ``coverage``; what a C file defines is used only there."""
    files = {function.file for function in coverage.functions}
    return any(_has_users(one) and (one.file.endswith(".h") or one.file in files) for one in changed)


def _has_users(one: ChangedFunction) -> bool:
    kind = one.kind == "macro" or one.name.startswith(("struct ", "union ", "enum "))
    return kind and one.exists_before


def by_code(
    changed: Sequence[ChangedFunction], functions: Functions, info: DebugInfo
) -> tuple[ChangedFunction, ...]:
    """Return ``changed``, what the diffs change, as the code of the kernels says.

    A function whose code is that of base is left out. If the diffs change a macro or a struct, the other
    functions whose code differs are added: they use it. ``functions`` differ, by their objects; ``info`` is
    of the variant.
    """
    every = {name for names in functions.values() for name in names}
    differing = {
        function
        for function in info.named(every)
        if any(function.name in names and _may_be_in(function, name) for name, names in functions.items())
    }
    own = {FunctionId(one.file, one.name): one for one in changed if one.kind == "function"}
    unchanged = info.named({function.name for function in own}) - differing
    kept = [one for one in changed if FunctionId(one.file, one.name) not in unchanged]
    if not may_change_users(changed):
        return tuple(kept)
    users = sorted(differing - own.keys())
    return (*kept, *(ChangedFunction(user.file, user.name, (), ()) for user in users))


def _may_be_in(function: FunctionId, name: str) -> bool:
    """Return whether an object may contain a function: sources of a folder may be compiled as one."""
    return function.file.endswith(".h") or PurePosixPath(function.file).parent == PurePosixPath(name).parent
