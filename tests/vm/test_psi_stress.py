"""Cgroups are removed while their pressure is counted: the series is right, and wrong series are caught."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kteardown.paths import data_dir
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

WORKLOAD = "psi_stress"
SERIES = "psi-release-percpu"
WATCHED = "psi-watched"
"""Updates by exiting tasks and averages stop for some milliseconds in the middle, and report freed data.

A kernel that uses freed per-CPU data is not noticed otherwise: the data stays mapped, and is not poisoned.
"""
CAUGHT_BY = {
    "psi-broken-no-grace": {"states_right"},
    "psi-broken-no-lock": {"states_right"},
    "psi-broken-kept": {"states_right"},
    "psi-broken-parents": {"quiet", "states_right"},
}


def watched(folder: Path, *patches: str) -> str:
    """The path of a new series: the shipped one, these patches, and the patch that reports freed data."""
    made = folder / ("-".join(patches) or "right")
    made.mkdir()
    for origin in (data_dir("series") / SERIES, *(lab.BROKEN / name for name in (*patches, WATCHED))):
        for patch in origin.glob("*.patch"):
            shutil.copy(patch, made)
    return str(made)


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """On the wall clock: the two CPUs really run at once."""
    folder = tmp_path_factory.mktemp("series")
    variants = [SERIES, watched(folder), *(watched(folder, name) for name in CAUGHT_BY)]
    return lab.stress(tmp_path_factory.mktemp("psi"), WORKLOAD, "debian:6.12", variants, lab.WALL)


@pytest.mark.parametrize("kernel", ("base", SERIES, "right"))
def test_the_pressure_of_other_cgroups_is_right(boots: list[lab.Boot], kernel: str) -> None:
    lab.assert_right(boots, kernel, WORKLOAD)


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_series_that_is_wrong_is_caught(boots: list[lab.Boot], kernel: str) -> None:
    found = lab.failed(lab.checks(boots), kernel)
    assert found & CAUGHT_BY[kernel], found


def test_it_is_right_on_7_3(tmp_path: Path) -> None:
    boots = lab.stress(tmp_path, WORKLOAD, "debian:7.3", [SERIES], lab.WALL)
    for kernel in ("base", SERIES):
        lab.assert_right(boots, kernel, WORKLOAD)
