"""Closing a userfaultfd detaches it from every mapping: the contender does, wrong series are
caught."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "uffd_close"
SERIES = "userfaultfd-close-walk"
CONTENDER = lab.BROKEN / SERIES
WRONG = {
    "uffd-broken-forked": "released: forked: ",
    "uffd-broken-grown": "released: grown: ",
    "uffd-broken-moved": "released: moved: ",
    "uffd-broken-unmerged": "merged: a part of a mapping: ",
}
"""By wrong series, how a message about it begins."""


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    folder = tmp_path_factory.mktemp("series")
    wrong = [lab.on_top(folder, CONTENDER / "fs", name) for name in WRONG]
    variants = [str(CONTENDER), *wrong]
    return lab.stress(tmp_path_factory.mktemp("uffd"), WORKLOAD, "debian:6.12", variants)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_every_mapping_is_detached(boots: list[lab.Boot], kernel: str) -> None:
    lab.assert_right(boots, kernel, WORKLOAD)


@pytest.mark.parametrize("kernel", WRONG)
def test_a_series_that_is_wrong_is_caught(boots: list[lab.Boot], kernel: str) -> None:
    wrong = lab.wrong(boots, kernel)
    assert any(line.startswith(WRONG[kernel]) for line in wrong), wrong


@pytest.mark.parametrize("source", ("debian:7.2", "debian:7.3"))
def test_the_other_backport_detaches_every_mapping(
    tmp_path_factory: pytest.TempPathFactory, source: str
) -> None:
    boots = lab.stress(tmp_path_factory.mktemp("uffd"), WORKLOAD, source, [str(CONTENDER)])
    lab.assert_right(boots, SERIES, WORKLOAD)
