"""Which measured releases stand for that of a machine."""

from __future__ import annotations

import pytest

from kteardown.catalogue.releases import nearest, newer_than, version_of

MEASURED = ("7.3", "6.1", "6.12", "7.2")


@pytest.mark.parametrize(
    ("release", "stand"),
    [
        ("6.12.117+deb12-amd64", ("6.12",)),
        ("6.18.1", ("6.12", "7.2")),
        ("6.2.0", ("6.1", "6.12")),
        ("4.18.0-553.el8.x86_64", ("6.1",)),
        ("7.10.0", ("7.3",)),
        ("unknown", ("6.1", "6.12", "7.2", "7.3")),
    ],
)
def test_the_same_or_both_neighbours(release: str, stand: tuple[str, ...]) -> None:
    assert nearest(release, MEASURED) == stand


def test_without_measured_releases_none_stands_for_it() -> None:
    assert nearest("6.12", ()) == ()


def test_newer_releases_come_in_their_order() -> None:
    assert newer_than("6.5.0", MEASURED) == ("6.12", "7.2", "7.3")
    assert newer_than("strange", MEASURED) == ()


def test_numbers_are_compared_as_numbers() -> None:
    assert version_of("6.2.1") < version_of("6.12.0")  # type: ignore[operator]
    assert version_of("") is None
