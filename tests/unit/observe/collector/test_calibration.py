"""Objects that are made and freed while the time is taken."""

from __future__ import annotations

import os

import pytest

from kteardown_observe.collector import calibration
from kteardown_observe.collector.calibration import calibrate
from kteardown_observe.collector.files import Host
from kteardown_observe.collector.tally import CountTable
from unit.observe.children import in_a_child


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer objects than a user times."""
    monkeypatch.setattr(calibration, "CALIBRATED_DESCRIPTORS", (200, 400))
    monkeypatch.setattr(calibration, "CALIBRATED_MEMORY_MB", (1, 2))


def kinds_in_a_child(*, eventfds: bool = True) -> list[tuple[str, int, int]]:
    def timed() -> list[tuple[str, int, int]]:
        if not eventfds:
            calibration.eventfd_maker = lambda: None
        kept = os.open("/", os.O_RDONLY)
        found = calibrate(Host(), CountTable())
        os.fstat(kept)
        assert all(time_ns > 0 for entry in found for time_ns in entry["ns"])
        return [(entry["kind"], entry["objects"], len(entry["ns"])) for entry in found]

    return [(kind, objects, times) for kind, objects, times in in_a_child(timed)]


def test_each_kind_with_two_numbers() -> None:
    pages = (1 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert kinds_in_a_child() == [
        ("eventfds", 200, 5),
        ("eventfds", 400, 5),
        ("pipes", 200, 5),
        ("pipes", 400, 5),
        ("anonymous_pages", pages, 5),
        ("anonymous_pages", 2 * pages, 5),
    ]


def test_a_python_that_cannot_make_eventfds() -> None:
    assert kinds_in_a_child(eventfds=False)[0][0] == "pipes"
