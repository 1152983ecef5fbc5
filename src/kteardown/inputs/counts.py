"""Hardware counters: which workloads mark a stretch, and the metrics that counting adds."""

import re
from collections.abc import Mapping
from pathlib import Path

from kteardown.errors import InputError
from kteardown.model.arch import ARCHITECTURES
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Metric, Workload
from kteardown.paths import data_dir, shipped_table

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_BEGINS = re.compile(r"\bwl_profile_begin\s*\(")
_COUNTS = shipped_table("inputs/counts")
METRICS = {key: Metric(**fields) for key, fields in _COUNTS["metrics"].items()}
"""Those of the hardware counts. A processor may lack some."""
INVARIANTS: Mapping[str, str] = _COUNTS["invariants"]


def marks_stretch(workload: str, folder: str = "") -> bool:
    """Return whether a workload marks the part that its metrics measure.

    Its C files say so: they call ``wl_profile_begin()``. They are the shipped ones, or else in
    ``folder``.
    """
    shipped = data_dir("agent")
    user_roots = [Path(folder) / "agent" / "workloads"] if folder else []
    for root in (shipped / "workloads", shipped / "stress", *user_roots):
        place = root / workload
        files = sorted(place.glob("*.c")) if place.is_dir() else [place.with_suffix(".c")]
        texts = [
            file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()
        ]
        if texts:
            return any(_BEGINS.search(_COMMENT.sub(" ", text)) for text in texts)
    return False


def uncounted(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[str]:
    """Return the workloads of ``experiment`` that mark no stretch. Of a script, all is measured."""
    names = [
        sweep.workload for sweep in experiment.workloads if workloads[sweep.workload].script is None
    ]
    return [name for name in names if not marks_stretch(name, experiment.folder)]


def with_counts(experiment: Experiment, workloads: Mapping[str, Workload]) -> dict[str, Workload]:
    """Return ``workloads`` with the metrics and the invariant of the counters, where they mark a
    stretch.

    Raises InputError if a workload uses the name of one of them.
    """
    bare = uncounted(experiment, workloads)
    result = dict(workloads)
    for name, workload in workloads.items():
        if name in bare:
            continue
        metrics = workload.metrics
        invariants = workload.invariants
        clashing = (METRICS.keys() & metrics.keys()) | (INVARIANTS.keys() & invariants.keys())
        if clashing:
            raise InputError(
                f"workload {name!r} declares {min(clashing)}, which is also the name of a metric "
                "or an invariant of design.counts (--counts)",
                hint=f"rename {min(clashing)} in the workload, or leave out --counts.",
            )
        counted = {"metrics": {**metrics, **METRICS}, "invariants": {**invariants, **INVARIANTS}}
        result[name] = workload.model_copy(update=counted)
    return result


def check_counts(experiment: Experiment, workloads: Mapping[str, Workload], where: str) -> None:
    """Check that ``counts``, if the design has it, is possible at all. Raises InputError."""
    if not experiment.design.counts:
        return
    place = f"{where}: design.counts (--counts)"
    bare = uncounted(experiment, workloads)
    if len(bare) == len(experiment.workloads):
        raise InputError(
            f"{place}: no workload of the experiment marks a stretch in which to count: "
            f"{', '.join(bare)}",
            hint="leave out --counts, or call wl_profile_begin() and wl_profile_end() in the "
            "workload.",
        )
    if experiment.design.clock != "instructions":
        return
    arch = experiment.machine.arch
    if not ARCHITECTURES[arch].emulated_counters:
        raise InputError(
            f"{place}: {arch} guests have no counters on the instruction clock: QEMU emulates none",
            hint=(
                "choose the wall clock on a host with KVM (--clock wall), or leave out --counts: "
                "times on this clock are counts of instructions already."
            ),
        )
    cpus = experiment.machine.largest("cpus") or max(
        workload.cpus for workload in workloads.values()
    )
    if cpus > 1:
        raise InputError(
            f"{place}: on the instruction clock, each of the {cpus} CPUs would count the "
            "instructions of all CPUs: QEMU has only one counter",
            hint="choose one CPU (--cpus 1), or the wall clock (--clock wall).",
        )
