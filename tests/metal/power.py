"""The power switch of the emulated machine: power.py SOCKET."""

import json
import socket
import sys


def execute(path: str, command: str, **arguments: object) -> None:
    """Let QEMU execute a command of its machine protocol."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(path)
        stream = monitor.makefile("rw")
        stream.readline()
        for each in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            stream.write(json.dumps(each) + "\n")
            stream.flush()
            stream.readline()


if __name__ == "__main__":
    execute(sys.argv[1], "system_reset")
