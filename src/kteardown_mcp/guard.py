"""The process between the server and the command of a job: the job ends when the server does.

``python -m kteardown_mcp.guard FOLDER COMMAND...`` runs the command and exits with its code. Its
standard input is the life line: when the other end is closed, it stops the command and removes
FOLDER, where the files of the job are. The kernel closes that end however the server ends, even by
SIGKILL, and the server closes it to cancel a job, so there is one way to stop.

To stop, it sends what Ctrl-C sends, after which kteardown cleans up. What is left some seconds
later is killed. As a subreaper it becomes the parent of what its command leaves behind, whatever
session or group that is in, and so it finds all of it. If the guard itself is killed, the kernel
sends SIGTERM to the command, which cleans up, too.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from kteardown import spawn

GRACE_S = 20.0
"""For kteardown to clean up after an interrupt. On a busy host the end of a guest takes seconds."""
_AGAIN_S = 10.0
"""Ten times what kteardown takes to clean up on a busy host, which a second interrupt would end."""
_SUBREAPER = 36
_STOPPED = 130
_HOST_FAILED = 5
_WITH_GUARD = ("setpriv", "--pdeathsig", "TERM", "--")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code, 128 and the signal if one ended it, or 130 if it
    was stopped."""
    folder, *command = arguments
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        process = spawn.start(
            [*_WITH_GUARD, *command], stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder
        )
    except OSError as error:
        from kteardown.visible import echo

        echo(f"the command could not be started: {error}", err=True)
        return _HOST_FAILED
    ended = os.pidfd_open(process.pid)
    ready, _, _ = select.select([sys.stdin.fileno(), ended], [], [])
    if ended in ready:
        code = process.wait()
        _kill_rest()
        return code if code >= 0 else 128 - code
    _stop(process, ended)
    _kill_rest()
    shutil.rmtree(folder, ignore_errors=True)
    return _STOPPED


def _stop(process: "subprocess.Popen[bytes]", ended: int) -> None:
    """Interrupt the command until it has ended or its time is over: Python loses a signal that it
    gets in a callback of its imports."""
    end = time.monotonic() + GRACE_S
    while (left := end - time.monotonic()) > 0:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        if select.select([ended], [], [], min(_AGAIN_S, left))[0]:
            return


def _kill_rest() -> None:
    """Kill all processes below this one, and wait for them, until there is none."""
    import psutil  # Its import takes longer than the rest of this program.

    while True:
        rest = psutil.Process().children(recursive=True)
        if not rest:
            return
        for process in rest:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
