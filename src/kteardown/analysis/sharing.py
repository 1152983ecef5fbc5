"""Which functions and which data cause the line moves, for one object, by kernel."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.analysis.transfers import TRANSFER
from kteardown.inputs.contention import object_of, objects_of
from kteardown.model.judged import tidy
from kteardown.model.point import Key, Point, key
from kteardown.model.record import TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import Sharing, SharingProfile, SharingRow
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords, trials

_Name = tuple[str, tuple[str, ...]]
_Sums = dict[_Name, dict[str, float]]


@dataclass
class _Sum:
    """The sums of one kernel at one point, over ``repetitions``."""

    repetitions: int = 0
    functions: _Sums = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    data: _Sums = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    source_lines: dict[str, str] = field(default_factory=dict)

    def add(self, record: Sharing) -> None:
        self.repetitions += 1
        for function in record.functions:
            of_function = self.functions[function.name, ()]
            for count in ("moves", "shared_reads", "locked"):
                of_function[count] += getattr(function, count)
            self.source_lines.setdefault(function.name, function.line)
        for data in record.data:
            of_data = self.data[data.name, data.movers if not data.name else ()]
            of_data["moves"] += data.moves
            of_data["lines"] += data.lines
            of_data["spins"] += data.spins


def sharing_profiles(
    workloads: Mapping[str, Workload], boots: Iterable[BootRecords], points: Sequence[Point]
) -> tuple[SharingProfile, ...]:
    """Return a profile for each point, over all costs of a moved line; none on other clocks."""
    sums: dict[tuple[str, Key], dict[str, _Sum]] = {}
    for boot in boots:
        usable = {trial.index for trial in trials(boot.records) if trial.usable}
        places: dict[int, tuple[str, Key]] = {}
        for record in boot.records:
            if isinstance(record, TrialStart):
                places[record.trial] = record.workload, key(_without_cost(record.params))
            elif isinstance(record, Sharing) and record.trial in usable:
                of_place = sums.setdefault(places[record.trial], {})
                of_place.setdefault(boot.start.kernel, _Sum()).add(record)
    profiles = []
    for point in points:
        at = point.workload, key(_without_cost(point.params))
        if of_kernels := sums.pop(at, None):
            profiles.append(_profile(workloads[point.workload], point, of_kernels))
    return tuple(profiles)


def _without_cost(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    return {name: value for name, value in params.items() if name != TRANSFER}


def _profile(workload: Workload, point: Point, sums: Mapping[str, _Sum]) -> SharingProfile:
    objects = objects_of(workload, point.params)
    per = {kernel: objects * of.repetitions for kernel, of in sums.items()}
    return SharingProfile(
        workload=workload.name,
        point=_without_cost(point.shown),
        object=object_of(workload),
        functions=_rows({kernel: of.functions for kernel, of in sums.items()}, sums, per),
        data=_rows({kernel: of.data for kernel, of in sums.items()}, sums, per),
    )


def _rows(
    by_kernel: Mapping[str, _Sums], sums: Mapping[str, _Sum], per: Mapping[str, int]
) -> tuple[SharingRow, ...]:
    names = dict.fromkeys(name for of_kernel in by_kernel.values() for name in of_kernel)
    rows = []
    for name, movers in names:
        counts = {
            count: {
                kernel: tidy(of_kernel[name, movers].get(count, 0.0) / per[kernel]) or 0.0
                for kernel, of_kernel in by_kernel.items()
                if (name, movers) in of_kernel
            }
            for count in ("moves", "shared_reads", "locked", "lines", "spins")
        }
        line = next((text for of in sums.values() if (text := of.source_lines.get(name, ""))), "")
        rows.append(SharingRow(name=name, movers=movers, line=line, **counts))
    rows.sort(key=lambda row: (-max(row.moves.values()), row.name, row.movers))
    return tuple(rows)
