"""Which code a workload is made to measure, as its ``about`` says."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from kteardown.coverage.attribute import FunctionId
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.model.workload import About

_BEFORE = r"_*+(?:do_|ksys_|kernel_|vm_|(?:\w*_)?sys_)?"
_AFTER = r"(?:at)?(?:_\w*)?"
"""Of the functions that do the work of a system call: ``__do_sys_execve``, ``do_execveat_common``,
``kernel_wait4``, ``mmap_region``."""


def relevance(about: About, function: FunctionId) -> int:
    """Return how clearly a workload with ``about`` is made to measure ``function``.

    2: its ``about`` names the function or its system call; 1: the file or the folder of it; 0: it
    is not made for it.
    """
    if any(_is_of_call(call, function.name) for call in about.system_calls):
        return 2
    relevances = [0]
    for entry in about.code:
        file, _, pattern = entry.partition(":")
        is_there = function.file.startswith(file) if file.endswith("/") else function.file == file
        if is_there and fnmatchcase(function.name, pattern or "*"):
            relevances.append(2 if pattern else 1)
    return max(relevances)


def _is_of_call(call: str, name: str) -> bool:
    return bool(re.fullmatch(f"{_BEFORE}{re.escape(call)}{_AFTER}", name))


@lru_cache
def about_of(workload: str) -> About:
    """Return what a shipped workload, or one of ``./workloads``, is about; nothing if there is no
    such workload now."""
    try:
        return load_workload(workload, str(Path.cwd())).about
    except InputError:
        return About()
