"""Which kernel functions the user's own scripts execute: a map of each, in the cache under its contents.

A script that is described in ``workloads`` of the current folder is counted once, when it is first rehearsed.
"""

from contextlib import suppress
from pathlib import Path

from kteardown.coverage.maps import CoverageMap, read_map
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload, readable, workload_names
from kteardown.paths import cache_dir
from kteardown.script.describe import Described, content_id, known


def own_scripts(folder: Path) -> list[str]:
    """Return the names of the scripts that are described in ``folder``/workloads and can be read."""
    names = sorted({*workload_names(folder)}.difference(workload_names()))
    found = readable(lambda name: load_workload(name, str(folder)), names)
    return [workload.name for workload in found if workload.script is not None]


def map_of(described: Described) -> Path:
    """Return the file of its map, which may not be there yet. Raises InputError if a file cannot be read."""
    return cache_dir() / "coverage" / f"{content_id(described)}.json.xz"


def with_own(coverage: CoverageMap, folder: Path) -> tuple[CoverageMap, list[str]]:
    """Return ``coverage`` with the scripts of ``folder``, and the names of those that have no map.

    A script has the counts of the kernel on which it was first rehearsed: few functions have other names.
    """
    found, names = dict(coverage.workloads), own_scripts(folder)
    for name in names:
        with suppress(InputError):
            if (path := map_of(known(load_workload(name, str(folder)), folder))).is_file():
                found |= read_map(path).workloads
    return CoverageMap(coverage.source, found), [name for name in names if name not in found]
