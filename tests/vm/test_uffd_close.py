"""Closing a userfaultfd detaches it from every mapping: the shipped series does, wrong series are caught."""

from __future__ import annotations

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "userfaultfd-close-walk"
WRONG = {
    "uffd-broken-forked": "forked",
    "uffd-broken-grown": "grown",
    "uffd-broken-moved": "moved",
}


def run(folder: pytest.TempPathFactory, source: str, variants: list[str]) -> list[lab.Boot]:
    """One boot of each kernel. A wrong one may end in any way."""
    return lab.run(
        folder.mktemp("uffd"),
        f'name = "uffd"\nquestion = "Is every mapping detached?"\nsource = "{source}"\n'
        f"variants = {variants!r}\n"
        '[[workloads]]\nworkload = "uffd_close"\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


def assert_right(boots: list[lab.Boot], kernel: str) -> None:
    (boot,) = (boot for boot in boots if boot.kernel == kernel)
    assert boot.outcome == "ok", boot.detail
    (trial,) = boot.trials
    assert not trial.wrong
    assert set(trial.checks) == set(load_workload("uffd_close").invariants)


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    folder = tmp_path_factory.mktemp("series")
    wrong = [lab.on_top(folder, f"{SERIES}/fs", name) for name in WRONG]
    return run(tmp_path_factory, "debian:6.12", [SERIES, *wrong])


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_every_mapping_is_detached(boots: list[lab.Boot], kernel: str) -> None:
    assert_right(boots, kernel)


@pytest.mark.parametrize("kernel", WRONG)
def test_a_series_that_is_wrong_is_caught(boots: list[lab.Boot], kernel: str) -> None:
    wrong = lab.wrong(boots, kernel)
    assert any(line.startswith(f"released: {WRONG[kernel]}: ") for line in wrong), wrong


def test_the_backport_for_7_2_detaches_every_mapping(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert_right(run(tmp_path_factory, "debian:7.2", [SERIES]), SERIES)
