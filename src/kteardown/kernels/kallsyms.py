"""The symbols that a kernel has in its own image (``CONFIG_KALLSYMS_ALL`` for those of data).

Finished kernels of a distribution come without a System.map. The kernel finds its symbols by tables
that ``scripts/kallsyms.c`` writes. They have no names in the image, so they are found by their
contents: a token table, in which each digit is a token of its own, and its index right behind it;
before it the markers, before these the names and their number; the offsets behind the index (since
6.4) or before the number of names.
"""

import re
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Symbol = tuple[int, str, str]
"""Address, the type as nm(1) has it, name."""
_DIGITS = b"".join(b"%d\0" % digit for digit in range(10))
_FIRST_DIGIT = ord("0")
_TOKENS = 256
_OF_MARKER = 256
"""Each marker is where the name with such a multiple as its number begins."""
_ALIGNMENTS = (4, 8)
_NOWHERE = -(1 << 40)
_LONGEST = 1024
"""Of a token or a name: KSYM_NAME_LEN is 512."""
_MOST_NAME = 64
"""Bytes of a name in tokens, on average: more than any kernel has."""


class NoSymbols(ValueError):
    """The image has no such tables, or they have another form."""


def kernel_symbols(kernel: bytes, first: int) -> list[Symbol]:
    """Return the symbols of an uncompressed kernel, in the order of its tables.

    ``first``: where its text begins (``_text``). Raises NoSymbols.
    """
    try:
        return _symbols(kernel, first)
    except (IndexError, ValueError, struct.error) as error:
        raise NoSymbols(str(error)) from error


def _symbols(kernel: bytes, first: int) -> list[Symbol]:
    for start, index_at in _token_tables(kernel):
        index = np.frombuffer(kernel, "<u2", _TOKENS, index_at)
        tokens = [_text(kernel, start + int(offset)) for offset in index]
        for markers_at, markers in _markers(kernel, start):
            found = _names(kernel, markers_at, markers, tokens)
            if found is not None:
                names, number_at = found
                places = [*_aligned(index_at + 2 * _TOKENS), _before(number_at, len(names))]
                return _placed(kernel, names, places, first)
    raise NoSymbols("no table of symbols was found")


def _text(kernel: bytes, at: int) -> bytes:
    return kernel[at : kernel.index(b"\0", at, at + _LONGEST)]


def _aligned(at: int) -> Iterator[int]:
    yield from dict.fromkeys(-(-at // alignment) * alignment for alignment in _ALIGNMENTS)


def _token_tables(kernel: bytes) -> Iterator[tuple[int, int]]:
    """Yield where a token table and its index begin."""
    for match in re.finditer(re.escape(_DIGITS), kernel):
        at = match.start()
        lengths = []
        for _ in range(_TOKENS - _FIRST_DIGIT):
            end = kernel.find(b"\0", at, at + _LONGEST)
            if end < 0:
                break
            lengths.append(end + 1 - at)
            at = end + 1
        for index_at in _aligned(at):
            if index_at + 2 * _TOKENS > len(kernel):
                continue
            index = np.frombuffer(kernel, "<u2", _TOKENS, index_at).astype(int)
            if index[0] == 0 and list(np.diff(index[_FIRST_DIGIT:])) == lengths[:-1]:
                yield match.start() - int(index[_FIRST_DIGIT]), index_at


def _markers(kernel: bytes, table_at: int) -> Iterator[tuple[int, list[int]]]:
    """Yield where the markers before a token table begin, and what they are."""
    at = table_at // 4 * 4 - 4
    if at > 4 and not _number(kernel, at):  # What aligns the table.
        at -= 4
    if at < 4:
        return
    markers = [_number(kernel, at)]
    while at >= 4 and markers[-1]:
        at -= 4
        marker = _number(kernel, at)
        if marker >= markers[-1]:
            return
        markers.append(marker)
    if len(markers) > 1 and not markers[-1]:
        yield at, markers[::-1]


def _number(kernel: bytes, at: int) -> int:
    number: int = struct.unpack_from("<I", kernel, at)[0]
    return number


def _names(
    kernel: bytes, markers_at: int, markers: Sequence[int], tokens: Sequence[bytes]
) -> tuple[list[str], int] | None:
    """Return the names, each after its type, and where their number is."""
    most = len(markers) * _OF_MARKER
    last = markers_at - markers[-1]
    for at in range(last // 4 * 4, max(last - _MOST_NAME * _OF_MARKER, 0), -4):
        if not most - _OF_MARKER < _number(kernel, at) <= most:
            continue
        for names_at in _aligned(at + 4):
            names, end = _read(kernel, names_at, min(_OF_MARKER, _number(kernel, at)), tokens)
            if end - names_at == markers[1]:
                names, end = _read(kernel, names_at, _number(kernel, at), tokens)
                return (names, at) if end <= markers_at else None
    return None


def _read(kernel: bytes, at: int, count: int, tokens: Sequence[bytes]) -> tuple[list[str], int]:
    names = []
    for _ in range(count):
        length = kernel[at]
        at += 1
        if length & 0x80:
            length = length & 0x7F | kernel[at] << 7
            at += 1
        name = b"".join(tokens[token] for token in kernel[at : at + length])
        names.append(name.decode("ascii", errors="replace"))
        at += length
    return names, at


def _before(number_at: int, count: int) -> int:
    # Between them is the address to which they are relative.
    return number_at - 8 - -(-4 * count // 8) * 8


def _placed(kernel: bytes, names: Sequence[str], places: Sequence[int], first: int) -> list[Symbol]:
    text = next((number for number, name in enumerate(names) if name[1:] == "_text"), None)
    for at in (place for place in places if 0 < place <= len(kernel) - 4 * len(names)):
        offsets = np.frombuffer(kernel, "<i4", len(names), at).astype(np.int64)
        for addresses in _distances(offsets):
            known = addresses[addresses != _NOWHERE]
            if text is not None and len(known) and bool(np.all(np.diff(known) >= 0)):
                base = first - int(addresses[text])
                return [
                    (base + int(address) if address != _NOWHERE else 0, name[:1], name[1:])
                    for name, address in zip(names, addresses, strict=True)
                ]
    raise NoSymbols("no table of offsets fits its names")


def _distances(offsets: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the forms of offsets as distances from one address.

    With CONFIG_KALLSYMS_ABSOLUTE_PERCPU (until 6.14), all but what is in the memory of each CPU is
    stored as -1 - distance. In 7.3, an offset is the distance from its own place in the table.
    """
    yield np.where(offsets < 0, -1 - offsets, _NOWHERE)
    yield offsets & 0xFFFFFFFF
    yield offsets + 4 * np.arange(len(offsets))
