"""Which symbol of a kernel an address belongs to, by the ``System.map`` of its folder."""

import bisect
from pathlib import Path

_CODE = "tTwW"
_FIRST_OF_IMAGE = 0xFFFF_FFFF_8000_0000
"""Where x86-64 maps the image of the kernel: Documentation/arch/x86/x86_64/mm.rst."""


class SymbolMap:
    """The symbols of a kernel. Without a file, no address has a name."""

    def __init__(self, folder: Path) -> None:
        file = folder / "System.map"
        text = file.read_text(encoding="ascii", errors="replace") if file.is_file() else ""
        fields = (line.split() for line in text.splitlines())
        symbols = {
            int(parts[0], 16): (parts[1] in _CODE, parts[2]) for parts in fields if len(parts) == 3
        }
        self._starts = sorted(start for start in symbols if start >= _FIRST_OF_IMAGE)
        self._symbols = symbols

    def function(self, address: int) -> str:
        """Return the function of an instruction; empty if it is not known."""
        is_code, name = self._at(address)
        return name if is_code else ""

    def data(self, address: int, size: int) -> str:
        """Return the symbols of the data in ``size`` bytes, joined by commas; empty if unknown."""
        first = bisect.bisect_right(self._starts, address) - 1
        last = bisect.bisect_left(self._starts, address + size)
        found = [self._symbols[start] for start in self._starts[max(first, 0) : last]]
        if first < 0 or address < _FIRST_OF_IMAGE:
            return ""
        return ", ".join(dict.fromkeys(name for is_code, name in found if not is_code))

    def _at(self, address: int) -> tuple[bool, str]:
        at = bisect.bisect_right(self._starts, address) - 1
        return self._symbols[self._starts[at]] if at >= 0 else (False, "")
