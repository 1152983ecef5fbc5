"""Run in L1: boot jobs one after the other, and print a line of JSON for each.

boot_in_l1.py FILE    a list of jobs as JSON, each the fields of a BootJob
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from kteardown.door import Entry
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine

PATHS = ("image", "initramfs")


def main(file: Path) -> None:
    for job in json.loads(file.read_text()):
        fields = {**job, **{name: Path(job[name]) for name in PATHS}}
        fields["console"] = Entry.of(Path(job["console"]))
        fields["kernel_args"] = tuple(job["kernel_args"])
        lines: list[bytes] = []
        begun = time.monotonic()
        result = QemuMachine().boot(BootJob(**fields), lines.append)
        found = {**result.model_dump(mode="json"), "lines": [line.decode() for line in lines]}
        found["seconds"] = time.monotonic() - begun
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
