"""The coverage map of a kernel: which of its functions each workload executes, and the file that
keeps it.

A script that is described in ``workloads`` of the current folder has a map of its own, in the cache
under its contents. It is counted once, when it is first rehearsed. The points at which workloads
are counted are small ones, which together reach all that their parameters turn on.
"""

import gc
import json
import lzma
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.errors import InputError
from kteardown.inputs.load import (
    experiment_names,
    load_experiment,
    load_workload,
    readable,
    workload_names,
)
from kteardown.kernels import cache_folder
from kteardown.model.experiment import Sweep
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir, data_dir, shipped_table
from kteardown.script.describe import Described, content_id, with_files

_FORMAT = 2
_SUFFIX = ".json.xz"


@dataclass(frozen=True)
class PointCoverage:
    """What one point of a workload executes in its measured stretch."""

    params: dict[str, ParamValue]
    instructions: int
    """All instructions of the kernel in the stretch."""
    inside: dict[FunctionId, Counts]


@dataclass(frozen=True)
class WorkloadCoverage:
    """What a workload executes at all its points."""

    name: str
    points: tuple[PointCoverage, ...]
    outside: frozenset[FunctionId]
    """What is executed between the start and the end of a trial, but not in the stretch of any
    point."""
    seconds: float = 0.0
    """How long the boot took in which this was counted."""
    failed: tuple[str, ...] = ()
    """Points that could not run, and why."""


@dataclass(frozen=True)
class CoverageMap:
    """What the workloads execute on one kernel."""

    source: str
    """The exact source, such as ``debian:6.12.117-1~deb12u1``."""
    workloads: dict[str, WorkloadCoverage] = field(default_factory=dict)

    @cached_property
    def functions(self) -> frozenset[FunctionId]:
        """Every function that any workload executes."""
        counted = self.workloads.values()
        inside = (point.inside for workload in counted for point in workload.points)
        return frozenset[FunctionId]().union(*(workload.outside for workload in counted), *inside)


def write_map(path: Path, coverage: CoverageMap) -> None:
    """Write ``coverage`` in its compact form: equal maps give equal bytes."""
    functions = sorted(coverage.functions)
    number = {function: n for n, function in enumerate(functions)}
    files = sorted({function.file for function in functions})
    file_number = {file: n for n, file in enumerate(files)}
    content = {
        "format": _FORMAT,
        "source": coverage.source,
        "files": files,
        "functions": [[file_number[function.file], function.name] for function in functions],
        "workloads": [
            _workload_fields(workload, number) for _, workload in sorted(coverage.workloads.items())
        ],
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    # The tables of the compressor are as large as its dictionary, which need not be larger than the
    # text.
    form = {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "dict_size": max(len(text), 4096),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(lzma.compress(text, filters=[form]))
    new.replace(path)


def read_map(path: Path, *, but: Collection[str] = ()) -> CoverageMap:
    """Read a map, without the workloads ``but``.

    Raises InputError if it is not there, damaged, or of another format.
    """
    with _reading(path):
        content = _content(path)
        functions = _functions(content)
        wanted = [fields for fields in content["workloads"] if fields["name"] not in but]
        workloads = [_workload(fields, functions) for fields in wanted]
        return CoverageMap(content["source"], {workload.name: workload for workload in workloads})


def shipped_functions(source: str) -> frozenset[FunctionId]:
    """Return every function in the shipped map of ``source``, without reading which workload
    executes it."""
    path = shipped_path(source)
    with _reading(path):
        return frozenset(_functions(_content(path)))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise InputError with the name of the map if it cannot be read. No garbage is collected
    meanwhile.

    Among so many new objects, to look for it takes longer than to read them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    except (OSError, lzma.LZMAError, ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"cannot read the coverage map {path}: {error}",
            hint="make it again with `make coverage`.",
        ) from error
    finally:
        if collects:
            gc.enable()


def _content(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']}")
    return content


def _functions(content: Mapping[str, Any]) -> list[FunctionId]:
    return [FunctionId(content["files"][file], name) for file, name in content["functions"]]


def shipped_sources() -> list[str]:
    """Return the sources that have a shipped map, such as ``debian:6.12``, in the order of their
    versions."""
    names = [path.name.removesuffix(_SUFFIX) for path in data_dir("coverage").glob(f"*{_SUFFIX}")]
    return sorted((name.replace("-", ":", 1) for name in names), key=_version)


def shipped_path(source: str) -> Path:
    """Return the file of the shipped map of ``source`` (``debian:6.12``)."""
    return data_dir("coverage") / f"{source.replace(':', '-', 1)}{_SUFFIX}"


def shipped_map(source: str) -> CoverageMap:
    """Return the shipped map of ``source``, or of the nearest version. Raises InputError without
    any.

    Workloads that were not counted there, or could not run, are taken from the next nearest map:
    few functions have other names.
    """
    wanted = _version(source)
    there = sorted(
        shipped_sources(), key=lambda name: (name != source, _distance(_version(name), wanted))
    )
    if not there:
        raise InputError("no coverage map is shipped", hint="make the maps with `make coverage`.")
    return _merged(tuple(map(shipped_path, there)))


@lru_cache
def _merged(paths: tuple[Path, ...]) -> CoverageMap:
    """Return the map of the first path, with the workloads that it lacks from the first that has
    them."""
    merged = read_map(paths[0])
    for path in paths[1:]:
        complete = {name for name, counted in merged.workloads.items() if counted.points}
        further = read_map(path, but=complete)
        missing = {
            name: counted
            for name, counted in further.workloads.items()
            if counted.points or name not in merged.workloads
        }
        merged = CoverageMap(merged.source, {**merged.workloads, **missing})
    return merged


def _version(source: str) -> tuple[int, int]:
    """Return major and minor version of a source; (0, 0) if its name has none."""
    words = source.rpartition(":")[2].replace("-", ".").split(".")
    numbers = [int(word) for word in words if word.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (0, 0)


def _distance(version: tuple[int, int], wanted: tuple[int, int]) -> int:
    # 6.19 was followed by 7.0.
    return (
        abs(version[0] * 20 + version[1] - wanted[0] * 20 - wanted[1])
        if all((version[0], wanted[0]))
        else -version[0]
    )


def _workload_fields(
    workload: WorkloadCoverage, number: Mapping[FunctionId, int]
) -> dict[str, Any]:
    inside = sorted({function for point in workload.points for function in point.inside})
    # By function, not by point: the points have similar counts, which then are side by side and
    # compress.
    counts = [[point.inside.get(function) for point in workload.points] for function in inside]
    return {
        "name": workload.name,
        "seconds": round(workload.seconds, 1),
        "failed": list(workload.failed),
        "outside": _gaps(number[function] for function in workload.outside),
        "points": [[point.params, point.instructions] for point in workload.points],
        "inside": _gaps(number[function] for function in inside),
        "calls": [[-1 if count is None else count.calls for count in row] for row in counts],
        "own": [[-1 if count is None else count.instructions for count in row] for row in counts],
    }


def _workload(fields: dict[str, Any], functions: list[FunctionId]) -> WorkloadCoverage:
    rows = zip(accumulate(fields["inside"]), fields["calls"], fields["own"], strict=True)
    counted: list[dict[FunctionId, Counts]] = [{} for _ in fields["points"]]
    for number, calls, own_instructions in rows:
        for point, inside in enumerate(counted):
            if calls[point] >= 0:
                inside[functions[number]] = Counts(calls[point], own_instructions[point])
    return WorkloadCoverage(
        fields["name"],
        tuple(
            PointCoverage(params, instructions, inside)
            for (params, instructions), inside in zip(fields["points"], counted, strict=True)
        ),
        frozenset(functions[n] for n in accumulate(fields["outside"])),
        fields["seconds"],
        tuple(fields["failed"]),
    )


def _gaps(numbers: Iterable[int]) -> list[int]:
    """Return the differences between numbers in their order: they compress better."""
    return [number - last for last, number in pairwise((0, *sorted(numbers)))]


def own_scripts(folder: Path) -> list[str]:
    """Return the names of the scripts that are described in ``folder``/workloads and can be
    read."""
    names = sorted({*workload_names(folder)}.difference(workload_names()))
    workloads = readable(lambda name: load_workload(name, str(folder)), names)
    return [workload.name for workload in workloads if workload.script is not None]


def map_of(described: Described) -> Path:
    """Return the file of its map, which may not be there yet. Raises InputError if a file cannot be
    read."""
    return cache_dir() / "coverage" / f"{content_id(described)}.json.xz"


def with_own(coverage: CoverageMap, folder: Path) -> tuple[CoverageMap, list[str]]:
    """Return ``coverage`` with the scripts of ``folder``, and the names of those that have no map.

    A script has the counts of the kernel on which it was first rehearsed: few functions have other
    names.
    """
    workloads = dict(coverage.workloads)
    names = own_scripts(folder)
    for name in names:
        with suppress(InputError):
            if (path := map_of(with_files(load_workload(name, str(folder)), folder))).is_file():
                workloads |= read_map(cache_folder.hold(path)).workloads
    return CoverageMap(coverage.source, workloads), [
        name for name in names if name not in workloads
    ]


_REDUCED = 10
_SHORT: Mapping[str, int] = shipped_table("coverage/points")


def counted_points(workload: Workload) -> list[dict[str, ParamValue]]:
    """Return the points at which ``workload`` is counted, the first with all defaults but for its
    size.

    Each other point differs from it in one parameter: in every other of its choices, or, where 0
    means without, in the smallest other value that a shipped experiment uses.
    """
    plain = {
        name: small(name, parameter.default, workload)
        for name, parameter in workload.parameters.items()
    }
    points = [plain]
    for name, parameter in workload.parameters.items():
        # A parameter whose default is "all" selects parts of what is executed with the default.
        others = parameter.choices if parameter.default != "all" else ()
        points += [{**plain, name: choice} for choice in others if choice != parameter.default]
    parameters = workload.parameters
    for name in (name for name, parameter in parameters.items() if parameter.default == 0):
        values = {
            v for s in _sweeps() if s.workload == workload.name for v in s.params.get(name, ())
        }
        used = [value for value in values if isinstance(value, int) and value]
        points += [{**plain, name: min(used)}] if used else []
    # Without those that need a program in the guest.
    return [
        p
        for p in points
        if not any(parameters[name].programs.get(str(value)) for name, value in p.items())
    ]


def two_sizes(workload: Workload, point: Mapping[str, ParamValue]) -> list[dict[str, ParamValue]]:
    """Return ``point`` at two sizes of the parameter of the growth law; without one, only
    ``point``."""
    law = workload.law
    size = point.get(law)
    if not law or not isinstance(size, int):
        return [dict(point)]
    larger = min(max(2 * size, 2), workload.parameters[law].max)
    return [{**point, law: size}, {**point, law: larger}]


def repeated(workload: Workload) -> list[str]:
    """Return the parameters that only say how often ``workload`` does the same, but not for how
    long."""
    times = ("_ms", "seconds")
    return [name for name in workload.parameters if name in _SHORT and not name.endswith(times)]


def stress_tests() -> frozenset[str]:
    """Return the shipped workloads that have invariants and no headline metric."""
    workloads = map(load_workload, workload_names())
    return frozenset(
        workload.name
        for workload in workloads
        if not any(metric.headline for metric in workload.metrics.values())
    )


def words(params: Mapping[str, ParamValue], workload: Workload) -> str:
    """Return the parameters in which a point differs from the first one; ``-`` if in none."""
    plain = counted_points(workload)[0]
    return (
        " ".join(f"{name}={value}" for name, value in params.items() if plain.get(name) != value)
        or "-"
    )


def small(name: str, value: ParamValue, workload: Workload) -> ParamValue:
    """Return the value of the parameter ``name`` that is enough to count what is executed with
    ``value``."""
    if not isinstance(value, int):
        return value
    if name == workload.law:
        value //= _REDUCED
    return max(workload.parameters[name].min, min(value, _SHORT.get(name, value)))


@lru_cache
def _sweeps() -> tuple[Sweep, ...]:
    """Return how the shipped experiments use workloads."""
    return tuple(sweep for name in experiment_names() for sweep in load_experiment(name).workloads)
