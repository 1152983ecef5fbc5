"""By which calls a function of the kernel is reached, from the code of its vmlinux."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from kteardown import sandbox
from kteardown.coverage.attribute import DebugInfo, FunctionId

_CALL = re.compile(
    r"^[ \t]*+([0-9a-f]++):\s++(?:call|jmp)\s++([0-9a-f]++) <[^+>\n]++>", re.MULTILINE
)
_SYSTEM_CALL = re.compile(r"^__(?:do|se|x64)_(?:compat_)?sys_(\w+)$")

Callers = Mapping[FunctionId, Collection[FunctionId]]


def calls_of(vmlinux: Path) -> tuple[tuple[int, int], ...]:
    """Return each direct call of a kernel: the addresses of the instruction and of what it
    calls."""
    # Python takes longer to read millions of lines than grep.
    script = 'objdump --disassemble --no-show-raw-insn "$0" | grep -E "(call|jmp) "'
    code = sandbox.capture(["sh", "-c", script, str(vmlinux)], [vmlinux])
    return tuple((int(at, 16), int(to, 16)) for at, to in _CALL.findall(code))


@lru_cache(maxsize=2)
def callers_of(folder: Path) -> Callers:
    """Return the callers of each function of the kernel in ``folder``. It takes about 15 seconds.

    A function that is inlined is called by the one that it is inlined into.
    """
    calls = calls_of(folder / "vmlinux")
    info = DebugInfo(folder)
    chains = info.chains({address for call in calls for address in call})
    callers: dict[FunctionId, set[FunctionId]] = defaultdict(set)
    for at, to in calls:
        inner = chains[at]
        for callee, caller in pairwise(inner):
            callers[callee].add(caller)
        if inner and chains[to]:
            callers[chains[to][-1]].add(inner[0])
    return callers


def call_paths(functions: Iterable[FunctionId], folder: Path) -> dict[FunctionId, str]:
    """Return the shortest chain of calls to each function, the last in it: ``kill(2) -> worker ->
    leaf``.

    It begins at a system call, or else at a call through a pointer. Without functions that are only
    called through pointers.
    """
    callers = callers_of(folder)
    paths = {function: _call_path(function, callers) for function in functions}
    return {function: path for function, path in paths.items() if path}


def _call_path(function: FunctionId, callers: Callers) -> str:
    after: dict[FunctionId, FunctionId | None] = {function: None}
    reached = [function]
    for callee in reached:  # It grows while it is read: the nearest callers first.
        system_call = _SYSTEM_CALL.match(callee.name)
        if system_call:
            return _words(f"{system_call[1]}(2)", callee, after)
        for caller in sorted(callers.get(callee, ())):
            if caller not in after:
                after[caller] = callee
                reached.append(caller)
    roots = [callee for callee in reached if not callers.get(callee) and callee != function]
    return _words("a call through a pointer", roots[0], after) if roots else ""


def _words(start: str, first: FunctionId, after: Mapping[FunctionId, FunctionId | None]) -> str:
    names = [start]
    function: FunctionId | None = first
    while function is not None:
        names.append(function.name)
        function = after[function]
    return " -> ".join(names)
