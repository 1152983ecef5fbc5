"""How a function is reached from a system call, by the calls in the kernel's code.

Calls through pointers are not in it, and most system calls reach most functions through one: the path then
begins at the function that is called through a pointer.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from kteardown import sandbox
from kteardown.coverage.attribute import DebugInfo, FunctionId

_CALL = re.compile(r"^\s*([0-9a-f]+):\s+(?:call|jmp)\s+([0-9a-f]+) <[^+>]+>", re.MULTILINE)
_SYSTEM_CALL = re.compile(r"^__(?:do|se|x64)_(?:compat_)?sys_(\w+)$")

Callers = Mapping[FunctionId, Collection[FunctionId]]


@dataclass(frozen=True)
class CallPath:
    """The shortest chain of calls to a function, which is the last."""

    functions: tuple[FunctionId, ...]
    system_call: str
    """The one that it begins at; empty if it begins at a function that is called through a pointer."""

    def __str__(self) -> str:
        start = f"{self.system_call}(2)" if self.system_call else "a call through a pointer"
        return " -> ".join((start, *(function.name for function in self.functions)))


@lru_cache(maxsize=2)
def callers_of(folder: Path) -> Callers:
    """Return the callers of each function of the kernel in ``folder``. It takes about 15 seconds.

    A function that is inlined is called by the one that it is inlined into.
    """
    vmlinux = folder / "vmlinux"
    code = sandbox.capture(["objdump", "--disassemble", "--no-show-raw-insn", str(vmlinux)], [vmlinux])
    calls = [(int(at, 16), int(to, 16)) for at, to in _CALL.findall(code)]
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


def call_path(function: FunctionId, callers: Callers) -> CallPath | None:
    """Return how ``function`` is reached; None if it is called only through pointers."""
    after: dict[FunctionId, FunctionId | None] = {function: None}
    reached = [function]
    for one in reached:  # It grows while it is read: the nearest callers first.
        system_call = _SYSTEM_CALL.match(one.name)
        if system_call:
            return CallPath(_back(one, after), system_call[1])
        for caller in sorted(callers.get(one, ())):
            if caller not in after:
                after[caller] = one
                reached.append(caller)
    roots = [one for one in reached if not callers.get(one) and one != function]
    return CallPath(_back(roots[0], after), "") if roots else None


def call_paths(functions: Iterable[FunctionId], folder: Path) -> dict[FunctionId, CallPath]:
    """Return the call paths of those of ``functions`` for which one is known."""
    callers = callers_of(folder)
    found = {function: call_path(function, callers) for function in functions}
    return {function: path for function, path in found.items() if path is not None}


def _back(start: FunctionId, after: Mapping[FunctionId, FunctionId | None]) -> tuple[FunctionId, ...]:
    path = [start]
    while (following := after[path[-1]]) is not None:
        path.append(following)
    return tuple(path)
