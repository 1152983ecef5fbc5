from __future__ import annotations

import pytest

from kteardown.patches.config_of_series import TouchedFile, reasons

BUILT = TouchedFile("mm/a.c", True)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "it has documentation, tests or tools only"),
        ([TouchedFile("mm/Kconfig", False)], "it has documentation, tests or tools only"),
        ([BUILT], "its files are compiled, but it changes only comments"),
        ([BUILT, TouchedFile("mm/b.c", False, ("B",))], "mm/b.c needs CONFIG_B"),
        ([TouchedFile(f"{n}.c", False, ("B",)) for n in range(5)], "0.c needs CONFIG_B; 1.c"),
    ],
)
def test_why_nothing_is_compiled(files: list[TouchedFile], said: str) -> None:
    assert reasons(files).startswith(said)
    assert reasons(files).endswith(" and 2 more") == (len(files) == 5)
