"""A process that writes to a run is detected without taking the lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import is_locked, open_writer

_HOLD = """
import sys
from pathlib import Path
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
with open_writer(RunDir(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_is_locked_while_another_process_writes_it(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "x")
    assert not is_locked(run)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _HOLD, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout is not None and lab.stdin is not None
        assert lab.stdout.readline() == "held\n"
        assert is_locked(run)
        lab.stdin.close()
    assert not is_locked(run)
    with open_writer(run):
        assert is_locked(run)
