"""The output of addr2line."""

from __future__ import annotations

from kteardown.kernels.source_lines import Frame, parse_addr2line


def test_addr2line_output() -> None:
    text = (
        "0x10\ninner\n./../include/a.h:3 (discriminator 2)\nouter\n./../mm/b.c:7\n"
        "0x20\n??\n??:0\n0x30\nmemcpy\nmemcpy_64.o:?\n"
    )
    assert parse_addr2line(text) == {
        0x10: (Frame("inner", "include/a.h", 3), Frame("outer", "mm/b.c", 7)),
        0x20: (),
        0x30: (),
    }
