"""Whether a lab is at work is seen without taking its lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kteardown.rundir.directory import RunDir
from kteardown.rundir.lock import at_work

_HOLD = """
import sys
from pathlib import Path
from kteardown.rundir.directory import RunDir
with RunDir(Path(sys.argv[1])).writer():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_is_at_work_while_another_process_writes_it(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "x")
    assert not at_work(run)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout is not None and lab.stdin is not None
        assert lab.stdout.readline() == "held\n"
        assert at_work(run)
        lab.stdin.close()
    assert not at_work(run)
    with run.writer():
        assert at_work(run)
