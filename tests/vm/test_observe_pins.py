"""What keeps removed memory cgroups, by drgn in a guest whose kernel has types."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kteardown.inputs.options import Scripted
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.resolve import base_of, experiment_of_script
from kteardown.script.describe import describe, write
from kteardown_observe.bundle import PINS
from vm.planted.guest import HOST_PYTHON, boot_script

DATA = Path(__file__).parents[1] / "data"
LIVE_MEMORY = ("userland", "CONFIG_PROC_KCORE=y", "CONFIG_KEXEC=y", "CONFIG_CRASH_DUMP=y")
COUNTS = (30, 20, 5, 4)
"""Cgroups that files, zombies, a removed cgroup below, and sockets keep."""
SCRIPT = """\
#!/bin/sh -e
cd /tmp
/usr/bin/python3 -S -m tarfile -e /files/drgn.tar /tmp
export PYTHONPATH=/tmp LD_LIBRARY_PATH=/tmp/libraries
exec /usr/bin/python3 -S /files/pinned_cgroups.py {counts} \\
    /usr/bin/python3 -S -m drgn -s /files/vmlinux /files/pins.py --json
"""


def _drgn() -> Path | None:
    """Return the extension of the host's drgn; None if it has none."""
    code = "import _drgn; print(_drgn.__file__)"
    done = subprocess.run(
        [HOST_PYTHON, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    return Path(done.stdout.strip()) if done.returncode == 0 else None


pytestmark = [
    pytest.mark.vm,
    pytest.mark.build,
    pytest.mark.full,
    pytest.mark.skipif(_drgn() is None, reason="this host's Python has no drgn"),
]


def _pack_drgn(target: Path) -> None:
    extension = _drgn()
    assert extension
    loaded = subprocess.run(["ldd", extension], capture_output=True, text=True, check=True)
    with tarfile.open(target, "w") as archive:
        archive.add(extension, extension.name)
        archive.add(extension.parent / "drgn", "drgn")
        for library in re.findall(r"=> (/\S+)", loaded.stdout):
            path = Path(library)
            archive.add(path.resolve(), f"libraries/{path.name}")


def _kernel(source: str, folder: Path) -> KernelImage:
    """Build ``source`` with types and with what drgn reads on a live machine."""
    (folder / "empty.sh").write_text("#!/bin/sh\n")
    described = describe(str(folder / "empty.sh"), Scripted(), {})
    write(described, folder)
    base = base_of(experiment_of_script(described.workload.name, source, folder))
    patches = tuple(sorted((DATA / "series/types-for-drgn").glob("*.patch")))
    request = replace(base, patches=patches, fragments=LIVE_MEMORY)
    built = build.ensure([request], cache_dir=cache_dir(), reporter=SilentReporter())
    return built.images[request.name]


def _kept(source: str, folder: Path) -> dict[str, Any]:
    kernel = _kernel(source, folder)
    _pack_drgn(folder / "drgn.tar")
    (folder / "pins.py").write_text(PINS.read_text())
    lines = boot_script(
        source,
        SCRIPT.format(counts=" ".join(map(str, COUNTS))),
        {},
        paths=[
            folder / "drgn.tar",
            folder / "pins.py",
            kernel.image.parent / "vmlinux",
            Path(__file__).with_name("pinned_cgroups.py"),
        ],
        memory_mb=2048,
        kernel=kernel,
    )
    answers = [line[1:] for line in lines if line.startswith("={")]
    assert answers, "\n".join(lines)
    answer: dict[str, Any] = json.loads(answers[0])
    return answer


def _rows(answer: dict[str, Any]) -> dict[tuple[str, str], tuple[int, int]]:
    return {(row["by"], row["below"]): (row["cgroups"], row["number"]) for row in answer["kept"]}


def test_pages_zombies_cgroups_below_and_sockets_are_told_apart(tmp_path: Path) -> None:
    answer = _kept("debian:6.12", tmp_path)
    rows = _rows(answer)
    assert not answer["went"]
    assert rows["zombies", "/zombies"] == (20, 20)
    assert rows["removed cgroups below it", "/nested"] == (5, 5)
    assert rows["sockets", "/sockets"][0] == 4
    assert rows["page cache", "/files"][0] == 30
    assert rows["page cache", "/nested"][0] == 5
    assert rows["page cache", "/files"][1] >= 30 * 8
    assert answer["removed"] == 30 + 20 + 2 * 5 + 4


def test_pages_keep_none_where_they_are_given_to_the_parent(tmp_path: Path) -> None:
    answer = _kept("debian:7.3", tmp_path)
    rows = _rows(answer)
    assert rows["zombies", "/zombies"] == (20, 20)
    assert {by for by, _ in rows} <= {"zombies", "sockets"}
