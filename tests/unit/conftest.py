"""What the unit tests share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from kteardown.model.result import Result
from unit.simulation import Noise, analysed, freezer, simulate

# No test may fail because the machine is slow.
settings.register_profile("kteardown", deadline=None)
settings.load_profile("kteardown")


@pytest.fixture(scope="session")
def freezer_result() -> Result:
    """The freezer on the instruction clock, five seeds, eleven points, two variants."""
    experiment = freezer(cgroup=True)
    return analysed(experiment, simulate(experiment, noise=Noise(boot=0.002, sample=0.001)))


@pytest.fixture(scope="session")
def wall_result() -> Result:
    """The same on the wall clock of a noisy machine, with the A/A twin."""
    experiment = freezer("wall", boots=10, zombies=(3000, 15000, 30000))
    noise = Noise(block=0.2, boot=0.05, sample=0.05)
    return analysed(experiment, simulate(experiment, noise=noise))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium, without a window."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox)
        yield browser
        browser.close()
