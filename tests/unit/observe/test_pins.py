"""The program for drgn: its page. tests/vm/test_observe_pins.py runs it in a guest."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from kteardown_observe.bundle import PINS

NAMES = {
    "drgn": ("FaultError", "Object", "Program"),
    "drgn.helpers": (),
    "drgn.helpers.linux": (),
    "drgn.helpers.linux.list": ("list_for_each_entry",),
}


@pytest.fixture
def pins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The program as a module. What it imports of drgn has its names and does nothing."""
    for name, members in NAMES.items():
        module = ModuleType(name)
        for member in members:
            setattr(module, member, object)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("pins_program", PINS)
    assert spec and spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    yield program


def _row(by: str, below: str, cgroups: int, number: int) -> dict[str, str | int]:
    return {"by": by, "below": below, "cgroups": cgroups, "number": number}


def test_the_page_has_a_line_for_each_reason_with_its_unit(pins: Any) -> None:
    kept = [_row("page cache", "/a", 1200, 5000), _row("zombies", "/", 3, 7)]
    first, _, pages, zombies = pins.page({"removed": 1203, "went": False, "kept": kept}).split("\n")
    assert "1,203" in first
    assert pages.split() == ["page", "cache", "1,200", "5,000", "kB", "/a"]
    assert zombies.split() == ["zombies", "3", "7", "/"]


def test_names_of_cgroups_cannot_write_to_the_terminal(pins: Any) -> None:
    kept = [_row("swap", "/\x1b[2J\n\u202eevil", 1, 4)]
    text = pins.page({"removed": 1, "went": True, "kept": kept})
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text.split("\n")) == 4


def test_a_machine_without_removed_cgroups_has_one_line(pins: Any) -> None:
    assert pins.page({"removed": 0, "went": False, "kept": []}).endswith(": 0")
