"""Which symbol of a kernel an address belongs to, by the ``System.map`` of its folder, or by what
the kernel's image has itself."""

import bisect
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from kteardown.kernels.kallsyms import kernel_symbols
from kteardown.kernels.unpack import unpacked
from kteardown.vm.direct_boot import payload_of

_CODE = "tTwW"
_TEXT = 0xFFFF_FFFF_8100_0000
"""Where the text of an image begins without KASLR (CONFIG_PHYSICAL_START)."""
_MOST_BYTES = 256 << 20
_Symbols = Mapping[int, tuple[bool, str]]
"""By address: whether it is code, and the name."""
_FIRST_OF_IMAGE = 0xFFFF_FFFF_8000_0000
_LAST = 0xFFFF_FFFF_C000_0000
"""Where x86-64 maps the image of the kernel: Documentation/arch/x86/x86_64/mm.rst."""


class SymbolMap:
    """The symbols of a kernel. Without a file and without symbols in its image, no address has a
    name.

    ``folder`` may have a System.map; ``image`` is the bzImage.
    """

    def __init__(self, folder: Path, image: Path) -> None:
        self._symbols = _of_file(folder / "System.map") or _of_image(image)
        self._starts = sorted(self._symbols)

    def function(self, address: int) -> str:
        """Return the function of an instruction; empty if it is not known."""
        is_code, name = self._at(address)
        return name if is_code else ""

    def data(self, address: int) -> str:
        """Return the symbol of the data at an address; empty if unknown."""
        is_code, name = self._at(address) if address >= _FIRST_OF_IMAGE else (False, "")
        return "" if is_code else name

    def _at(self, address: int) -> tuple[bool, str]:
        at = bisect.bisect_right(self._starts, address) - 1
        return self._symbols[self._starts[at]] if at >= 0 else (False, "")


def _of_file(file: Path) -> _Symbols:
    text = file.read_text(encoding="ascii", errors="replace") if file.is_file() else ""
    fields = (line.split() for line in text.splitlines())
    symbols = {
        int(parts[0], 16): (parts[1] in _CODE, parts[2]) for parts in fields if len(parts) == 3
    }
    # Debian has a file with one line, which says where the real one is.
    return {at: symbol for at, symbol in symbols.items() if _FIRST_OF_IMAGE <= at < _LAST}


# A run boots each of its kernels many times.
@lru_cache(maxsize=4)
def _of_image(image: Path) -> _Symbols:
    """Return the symbols that an image has for itself; none if they cannot be read."""
    payload = payload_of(image.read_bytes()) if image.is_file() else b""
    with tempfile.NamedTemporaryFile(prefix="kteardown-kernel-") as file:
        file.write(payload)
        file.flush()
        try:
            symbols = kernel_symbols(unpacked(Path(file.name), _MOST_BYTES), _TEXT)
        except ValueError:
            return {}
    return {
        at: (kind in _CODE, name) for at, kind, name in symbols if _FIRST_OF_IMAGE <= at < _LAST
    }
