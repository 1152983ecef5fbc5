"""Standard output and standard error that a closed pipe or a full disk cannot turn into a failed command.

A command ends with its own exit code, and writes all of its files, whatever becomes of what it prints.
"""

import errno
import io
import os
import sys


class Lossy(io.FileIO):
    """A file that loses what cannot be written to it.

    ``lost`` is the reason; None if it is that the other end of a pipe was closed.
    """

    lost: OSError | None = None
    _open = True

    def write(self, data: object) -> int:
        """Write ``data``, of which all counts as written once the file takes no more."""
        if self._open:
            try:
                return super().write(data)  # type: ignore[arg-type]
            except OSError as error:
                self._open = False
                if error.errno != errno.EPIPE:
                    self.lost = OSError(error.errno, error.strerror, "standard output")
        return memoryview(data).nbytes  # type: ignore[arg-type]


def tolerate_loss() -> Lossy:
    """Make the standard streams lose what cannot be written to them. Return the file of the output."""
    sys.stdout, output = _tolerant(sys.stdout, 1)
    sys.stderr, _ = _tolerant(sys.stderr, 2)
    return output


def _tolerant(stream: io.TextIOWrapper | object, number: int) -> tuple[io.TextIOWrapper, Lossy]:
    encoding, errors = getattr(stream, "encoding", "utf-8"), getattr(stream, "errors", "strict")
    if stream is None:
        # Closed: no file that is opened later may have its number.
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    raw = Lossy(number, "w", closefd=False)
    lines = number == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=lines), raw
