"""The symbols in a kernel's image, in tables as scripts/kallsyms.c writes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.kernels.kallsyms import NoSymbols, kernel_symbols

FIRST = 0xFFFFFFFF81000000
NAMES = [
    ("_text", 0),
    ("startup", 0),
    ("do_exit", 0x500),
    *((f"function_{n}", 0x1000 + 16 * n) for n in range(600)),
    ("tasklist_lock", 0x9000),
]


def aligned(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def image(*, form: str, align: int = 8, names: Sequence[tuple[str, int]] = NAMES) -> bytes:
    """An image whose tokens are the characters and ``function_``, with offsets of one form."""
    tokens = [bytes([n]) if n and chr(n).isprintable() else b"x" for n in range(256)]
    tokens[1] = b"function_"
    encoded = []
    for name, _ in names:
        text = b"T" + name.encode().replace(b"function_", b"\1")
        encoded.append(bytes([len(text)]) + text)
    starts = [sum(map(len, encoded[:n])) for n in range(0, len(encoded), 256)]
    table = b"".join(token + b"\0" for token in tokens)
    index = [sum(len(token) + 1 for token in tokens[:n]) for n in range(256)]
    distances = [at for _, at in names]
    if form == "absolute percpu":
        distances = [-1 - at for at in distances]
    elif form == "own place":
        distances = [at - 4 * n - 0x700000 for n, at in enumerate(distances)]
    offsets = struct.pack(f"<{len(names)}i", *distances)
    number = aligned(struct.pack("<I", len(names)), align)
    before = aligned(bytes(64), align)
    if form == "before":
        before += aligned(offsets, 8) + struct.pack("<Q", FIRST)
    markers = struct.pack(f"<{len(starts)}I", *starts)
    parts = [number, aligned(b"".join(encoded), align), aligned(markers, align)]
    parts += [aligned(table, align), aligned(struct.pack("<256H", *index), align)]
    return before + b"".join(parts) + aligned(offsets, 8) + struct.pack("<Q", FIRST) + bytes(64)


@pytest.mark.parametrize("align", [4, 8])
@pytest.mark.parametrize("form", ["plain", "absolute percpu", "own place", "before"])
def test_the_forms_of_offsets(form: str, align: int) -> None:
    symbols = kernel_symbols(image(form=form, align=align), FIRST)
    assert symbols == [(FIRST + at, "T", name) for name, at in NAMES]


def test_an_image_without_tables() -> None:
    with pytest.raises(NoSymbols):
        kernel_symbols(bytes(4096), FIRST)
    with pytest.raises(NoSymbols):
        kernel_symbols(b"", FIRST)


def test_offsets_that_do_not_ascend_are_none() -> None:
    with pytest.raises(NoSymbols, match="no table of offsets"):
        kernel_symbols(image(form="plain", names=[*NAMES[:-1], ("last", 0x10)]), FIRST)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9000), st.binary(min_size=1, max_size=64))
def test_a_damaged_image_gives_symbols_or_none(at: int, junk: bytes) -> None:
    whole = image(form="plain")
    damaged = whole[:at] + junk + whole[at + len(junk) :]
    try:
        symbols = kernel_symbols(damaged, FIRST)
    except NoSymbols:
        return
    assert all(kind and isinstance(address, int) for address, kind, _ in symbols)
