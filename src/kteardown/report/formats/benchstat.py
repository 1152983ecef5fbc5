"""The samples in Go's benchmark format, which ``benchstat`` reads: ``benchstat -col /kernel FILE``.

A line is one boot of a kernel at a point, with the median inside the boot, because only boots are
replications. The kernel is a key of the name, so that benchstat can put kernels next to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median

from kteardown.model.samples import Samples
from kteardown.report.material import Material
from kteardown.report.sections.fault_lines import broken_message
from kteardown.visible import on_one_line

_SUFFIX = re.compile(r"_(ns|us|kb|per_s|per_cycle|count|share)$")
_NOT_IN_A_NAME = re.compile(r"[^\w.@:+-]+")


def render(material: Material) -> str:
    """Return the units, then a line for each boot, point and metric, with a newline at the end.

    A broken variant is said first, as a key of the file, which benchstat prints above its tables.
    """
    broken = broken_message(material.result)
    lines = [*([broken.replace("BROKEN", "broken", 1)] if broken else []), *_lines(material)]
    return "".join(f"{on_one_line(line)}\n" for line in lines) or "# no samples\n"


def _lines(material: Material) -> Iterator[str]:
    units: dict[str, list[Samples]] = {}
    for samples in material.evidence.samples:
        units.setdefault(_unit(material, samples), []).append(samples)
    for unit, mine in units.items():
        exact = " assume=exact" if _exact(mine) else ""
        yield f"Unit {unit} better={mine[0].better}{exact}"
    base = material.result.kernels.get("base")
    if base:
        yield f"kernel-release: {base.release}"
    for unit, mine in units.items():
        for samples in mine:
            for values in samples.boots.values():
                yield f"Benchmark{_name(samples)} {len(values)} {median(values):g} {unit}" if values else ""


def _exact(every: Sequence[Samples]) -> bool:
    """Return whether each kernel has one value at each point."""
    return all(len({median(values) for values in one.boots.values() if values}) == 1 for one in every)


def _name(samples: Samples) -> str:
    keys = [*samples.point.items(), ("kernel", samples.kernel)]
    words = [f"{name}={_NOT_IN_A_NAME.sub('_', str(value))}" for name, value in keys]
    return "/".join((samples.workload.title().replace("_", ""), *words))


def _unit(material: Material, samples: Samples) -> str:
    """Return the metric with its unit: ``freeze_user-ns``, or ``freeze_user-instructions``."""
    name = _SUFFIX.sub("", samples.metric)
    if material.result.clock == "instructions" and samples.unit in ("ns", "us"):
        return f"{name}-{'k' if samples.unit == 'us' else ''}instructions"
    return f"{name}-{samples.unit}"
