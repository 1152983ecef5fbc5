"""Addresses of a kernel and the symbols that they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.kernels.symbol_map import SymbolMap

MAP = """\
0000000000000000 D per_cpu_start
ffffffff81000000 T startup
ffffffff81000100 t do_exit
ffffffff82000000 D tasklist_lock
ffffffff82000010 d pidmap_lock
ffffffff82000080 B jiffies
ffffffff83000000 T init_text
"""


@pytest.fixture
def symbols(tmp_path: Path) -> SymbolMap:
    (tmp_path / "System.map").write_text(MAP)
    return SymbolMap(tmp_path, tmp_path / "bzImage")


def test_the_function_of_an_instruction(symbols: SymbolMap) -> None:
    assert symbols.function(0xFFFFFFFF81000000) == "startup"
    assert symbols.function(0xFFFFFFFF81000123) == "do_exit"
    assert symbols.function(0xFFFFFFFF82000000) == ""
    assert symbols.function(0x401000) == ""


def test_the_data_at_an_address(symbols: SymbolMap) -> None:
    assert symbols.data(0xFFFFFFFF8200000C) == "tasklist_lock"
    assert symbols.data(0xFFFFFFFF82000040) == "pidmap_lock"
    assert symbols.data(0xFFFFFFFF81000100) == ""
    # Memory that is allocated, by its physical address.
    assert symbols.data(0x1234000) == ""


def test_without_a_file_nothing_has_a_name(tmp_path: Path) -> None:
    symbols = SymbolMap(tmp_path, tmp_path / "bzImage")
    assert symbols.function(0xFFFFFFFF81000000) == ""
    assert symbols.data(0xFFFFFFFF82000000) == ""


def test_a_map_that_only_says_where_the_real_one_is(tmp_path: Path) -> None:
    (tmp_path / "System.map").write_text(
        "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n"
    )
    assert SymbolMap(tmp_path, tmp_path / "bzImage").data(0xFFFFFFFF82000000) == ""
