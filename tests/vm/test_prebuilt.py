"""A ready image, built elsewhere, boots and gives the figures of the same kernel built from its
source."""

from __future__ import annotations

from pathlib import Path

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]


def samples(folder: Path, source: str) -> list[dict[str, list[float]]]:
    """The samples of every trial of one boot of ``source`` on the instruction clock."""
    (boot,) = lab.run(
        folder,
        f'name = "prebuilt"\nquestion = "Does it boot?"\nsource = "{source}"\n'
        '[[workloads]]\nworkload = "zombies"\nparams.zombies = [0, 300]\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    assert [trial.status for trial in boot.trials] == ["ok", "ok"]
    return [dict(trial.samples) for trial in boot.trials]


def test_a_ready_image_gives_the_figures_of_the_kernel_built_from_source(
    base_image: Path, tmp_path: Path
) -> None:
    ready = samples(tmp_path / "ready", f"image:{base_image}")
    assert ready == samples(tmp_path / "source", "debian:6.12")
    assert ready[1]["freeze_user_ns"] > ready[0]["freeze_user_ns"]


@pytest.mark.full
@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2", "7.3"])
def test_a_kernel_of_the_distribution_runs_a_workload(version: str, tmp_path: Path) -> None:
    # One CPU: under QEMU 7.2 Linux 6.1 does not bring up a second one on the instruction clock.
    (boot,) = lab.run(
        tmp_path,
        f'name = "prebuilt"\nquestion = "Does it boot?"\nsource = "debian-image:{version}"\n'
        '[[workloads]]\nworkload = "zombies"\nparams.zombies = [0, 300]\n'
        f"[machine]\ncpus = 1\n[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    few, many = (trial.samples["freeze_user_ns"] for trial in boot.trials)
    assert many > few
