"""Boots a kernel with planted problems, and returns the record of the guest.

    python -m vm.planted.guest --source debian-image:6.12 --cpus 1 --scale 1 --json FILE

from the folder ``tests``. A record has ``release`` and ``cpus`` of the guest, ``source``,
``possible_cpus``, ``scale``; ``problems`` by name, with ``n``, ``expected`` (what the collector
must count), ``released`` and ``empty`` (what the release of n and of no objects cost) and memory
in kB; ``collected``: what the collector printed before and after the problems were made, and with
the fragment lockstat how long each class of locks was held meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kteardown.inputs.options import Scripted
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.model.experiment import MachineSpec
from kteardown.model.record import Record, TrialEnd
from kteardown.model.script_records import OutputLine, ScriptEnd
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.resolve import base_of, experiment_of_script
from kteardown.run.setting import Bootable
from kteardown.script.describe import describe, write
from vm.planted.plant import PROBLEMS

COLLECTOR_LIMITS = ("--cpu-limit", "120", "--memory-limit", "200")
"""A guest of the instruction clock is a slow machine, and a count must be complete here."""

HOST_PYTHON = Path("/usr/bin/python3")
"""The guest runs it, with its library."""

_START = """\
#!/bin/sh -e
mkdir -p /tmp/program/vm/planted
cp /files/*.py /tmp/program/vm/planted
chmod 755 /tmp /files
export PYTHONPATH=/tmp/program
exec /usr/bin/python3 -S -m vm.planted.plant /files/plan.json
"""
_MEMORY_MB = 1024
_LIMIT = "30m"
_NO_CALIBRATION = ("noapictimer",)
"""A guest with many possible CPUs boots in a fraction of the time."""


def sizes(names: Sequence[str], scale: float = 1) -> dict[str, int]:
    """Return the number of objects of each problem."""
    return {name: max(int(PROBLEMS[name].objects * scale), 1) for name in names}


def boot_planted(
    source: str,
    problems: dict[str, int],
    *,
    cpus: int = 1,
    possible_cpus: int | None = None,
    memory_mb: int = _MEMORY_MB,
    collector: str = "",
    arguments: Sequence[str] = COLLECTOR_LIMITS,
    measure: bool = True,
    user: bool = True,
    fragments: Sequence[str] = (),
) -> dict[str, Any]:
    """Boot ``source`` once with so many objects of each of ``problems``, and return the record.

    ``source``: a prebuilt kernel, such as debian-image:6.12; with ``fragments``, such as lockstat,
    one that is built. ``collector``: the text of the program, with its ``arguments``; empty: none.
    ``user``: run it as an ordinary user, too.
    Raises AssertionError with the last lines of the guest if the program failed.
    """
    plan = {
        "problems": problems,
        "measure": measure,
        "user": user,
        "collector": "/files/observe.py" if collector else "",
        "arguments": arguments,
    }
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        workload = _workload(folder, plan, collector, memory_mb)
        experiment = experiment_of_script(workload.name, source, folder)
        base = base_of(experiment)
        base = replace(base, fragments=(*base.fragments, *fragments))
        kernel = build.ensure([base], cache_dir=cache_dir(), reporter=SilentReporter()).images[
            "base"
        ]
        booted = boot_counted(
            Bootable.of(kernel),
            workload,
            [{}],
            SilentReporter(),
            folder=experiment.folder,
            spec=MachineSpec(
                cpus=cpus,
                possible_cpus=possible_cpus,
                memory_mb=memory_mb,
                kernel_args=_NO_CALIBRATION if possible_cpus else (),
            ),
            counted=False,
        )
    return {
        "source": source,
        "possible_cpus": possible_cpus or cpus,
        **_unpacked(booted.records),
    }


def boot_script(
    source: str,
    text: str,
    files: dict[str, str],
    *,
    paths: Sequence[Path] = (),
    memory_mb: int = _MEMORY_MB,
    kernel: KernelImage | None = None,
) -> list[str]:
    """Boot ``source`` with a script that may use Python and the files in /files, and return what it
    prints.

    ``files``: names with their texts. ``paths``: more files, by their own names. ``kernel``: boot
    this one, which was built from ``source``.
    """
    with tempfile.TemporaryDirectory(prefix="script-") as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_text(content)
        script = folder / "script.sh"
        script.write_text(text)
        options = Scripted(
            file=[*(folder / file for file in files), *paths],
            programs=[HOST_PYTHON.name],
            limit=_LIMIT,
        )
        described = describe(str(script), options, {})
        write(described, folder)
        experiment = experiment_of_script(described.workload.name, source, folder)
        if kernel is None:
            base = base_of(experiment)
            kernel = build.ensure([base], cache_dir=cache_dir(), reporter=SilentReporter()).images[
                "base"
            ]
        booted = boot_counted(
            Bootable.of(kernel),
            described.workload,
            [{}],
            SilentReporter(),
            folder=experiment.folder,
            spec=MachineSpec(cpus=1, memory_mb=memory_mb, kernel_args=()),
            counted=False,
        )
    output = [record for record in booted.records if isinstance(record, OutputLine)]
    return [line.text for line in output if line.source == "script"]


def _workload(folder: Path, plan: dict[str, Any], collector: str, memory_mb: int) -> Workload:
    """Write the script with its files into ``folder``, and return its description."""
    script = folder / "plant.sh"
    script.write_text(_START)
    options = Scripted(
        file=_files(folder, plan, collector), programs=[HOST_PYTHON.name], limit=_LIMIT
    )
    described = describe(str(script), options, {})
    wanted = described.workload.script
    assert wanted
    modules = {module for name in plan["problems"] for module in PROBLEMS[name].modules}
    update = {
        "script": wanted.model_copy(update={"modules": tuple(sorted(modules))}),
        "memory_mb": memory_mb,
    }
    described = replace(described, workload=described.workload.model_copy(update=update))
    write(described, folder)
    return described.workload


def _unpacked(records: Sequence[Record]) -> dict[str, Any]:
    output = [record for record in records if isinstance(record, OutputLine)]
    lines = [line.text for line in output if line.source == "script"]
    packed = "".join(line[1:] for line in lines if line.startswith("="))
    ends = [str(record) for record in records if isinstance(record, ScriptEnd | TrialEnd)]
    assert packed, "\n".join((*lines[-40:], *[line.text for line in output][-10:], *ends))
    record: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return record


def _files(folder: Path, plan: dict[str, Any], collector: str) -> list[Path]:
    """Return the files that the guest has beside the script."""
    contents = {"plan.json": json.dumps(plan)}
    if collector:
        contents["observe.py"] = collector
    for name, text in contents.items():
        (folder / name).write_text(text)
    modules = sorted(Path(__file__).parent.glob("*.py"))
    own = [path for path in modules if path.name != Path(__file__).name]
    return [*own, *(folder / name for name in contents)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", default="debian-image:6.12")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--possible-cpus", type=int)
    parser.add_argument("--memory-mb", type=int, default=_MEMORY_MB)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--problems", help="names with commas; default: all")
    parser.add_argument("--collector", type=Path, help="the program; default: none")
    parser.add_argument("--limits", help="of the collector, such as '--cpu-limit 2'")
    parser.add_argument("--fragment", action="append", default=[], help="of the kernel to build")
    parser.add_argument("--no-user", action="store_true")
    parser.add_argument("--no-measure", action="store_true", help="do not release the objects")
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    names = given.problems.split(",") if given.problems else list(PROBLEMS)
    record = boot_planted(
        given.source,
        sizes(names, given.scale),
        cpus=given.cpus,
        possible_cpus=given.possible_cpus,
        memory_mb=given.memory_mb,
        collector=given.collector.read_text() if given.collector else "",
        arguments=given.limits.split() if given.limits is not None else COLLECTOR_LIMITS,
        measure=not given.no_measure,
        user=not given.no_user,
        fragments=given.fragment,
    )
    record["scale"] = given.scale
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(record, indent=1) + os.linesep)


if __name__ == "__main__":
    main()
