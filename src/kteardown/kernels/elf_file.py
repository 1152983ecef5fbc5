"""ELF files that a stranger may have made, read by pyelftools up to a limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_MOST_READ = 1 << 20
_STEP = 16


class DamagedElf(ValueError):
    """The file is no ELF file, or headers in it are damaged."""


class _Limited:
    """A stream that ends with an error when much was read of it, or often.

    The library follows what the headers say, as often as they say it: names without an end,
    sections that are described thousands of times. It does nothing without reading.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = _MOST_READ
        self.seek = stream.seek
        self.tell = stream.tell  # words: quote

    def read(self, size: int) -> bytes:
        self._left -= size + _STEP
        if size < 0 or self._left < 0:
            raise ValueError("its headers are too large")
        return self._stream.read(size)


@contextmanager
def elf_headers(stream: IO[bytes]) -> Iterator["ELFFile"]:
    """Give the headers of an ELF file. Whatever fails in the block is a DamagedElf.

    The contents of sections are not for this: read them from where the headers say.
    """
    # It takes a tenth of a second, and most commands read no ELF file.
    from elftools.elf.elffile import ELFFile

    try:
        yield ELFFile(cast(IO[bytes], _Limited(stream)))
    # Besides its own, the library raises errors of ten kinds, also of assertions and recursion.
    except Exception as error:
        raise DamagedElf(str(error) or "its headers are damaged") from error
