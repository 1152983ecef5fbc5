"""Fixtures of the unit tests. A slow or busy host must not change an outcome."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from kteardown.model.result import Result
from unit.simulation import Noise, analysed, freezer, simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

slow_host = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", slow_host, derandomize=True)
"""The same examples each time: `make test` fails for what a change does, not for what one run
draws."""
settings.register_profile("search", slow_host, max_examples=1000)
"""Other examples each time, and more of them, for `make test-all`: it has hours."""
settings.load_profile("same")

PACKAGES = ("cluster", "history", "hunt", "mcp", "metal", "observe", "replicate", "watch")
"""The optional packages of kteardown; the tests of each are in its folder."""
OF_SEVERAL = {
    "cli/test_both_clocks.py": {"history"},
    "cli/test_damaged_runs.py": {"history"},
    "cli/test_exit_codes.py": {"history"},
    "cli/test_foreign_links.py": {"cluster", "history", "hunt"},
    "cli/test_hostile_run.py": {"history"},
    "cli/test_main.py": {"history"},
    "report/test_extreme_numbers.py": {"history"},
    "report/test_unconfirmed.py": {"replicate"},
    "run/test_guest_records.py": {"hunt"},
    "run/test_named.py": {"cluster", "hunt"},
    "rundir/test_snapshot.py": {"history"},
    "scripts": {*PACKAGES},
    "test_docs.py": {*PACKAGES},
    "test_extras.py": {"history", "mcp"},
    "test_mirror.py": {*PACKAGES},
    "test_packages.py": {*PACKAGES},
    "vm/test_agent_of_own.py": {"hunt"},
}
"""Tests of what several packages have in common, with the optional ones that they need."""
MISSING = {name for name in PACKAGES if find_spec(f"kteardown_{name}") is None}
collect_ignore = [*MISSING, *(file for file, needed in OF_SEVERAL.items() if needed & MISSING)]

PATIENCE_MS = 120_000
"""For what a browser does in a second on an idle host."""


@pytest.fixture(scope="session")
def freezer_result() -> Result:
    """The freezer on the instruction clock, five seeds, eleven points, two variants."""
    experiment = freezer(cgroup=True)
    return analysed(experiment, simulate(experiment, noise=Noise(boot=0.002, sample=0.001)))


@pytest.fixture(scope="session")
def wall_result() -> Result:
    """The same on the wall clock of a noisy host, with the A/A twin."""
    experiment = freezer("wall", boots=10, zombies=(3000, 15000, 30000))
    noise = Noise(block=0.2, boot=0.05, sample=0.05)
    return analysed(experiment, simulate(experiment, noise=noise))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium, without a window.

    For one module only: while Playwright runs, other tests cannot start an event loop of their own.
    """
    # Imported here: tests without a browser need no package of one.
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=sandbox, timeout=PATIENCE_MS
        )
        new_context = browser.new_context

        def patient_context(*arguments: Any, **options: Any) -> BrowserContext:
            context = new_context(*arguments, **options)
            context.set_default_timeout(PATIENCE_MS)
            return context

        browser.new_context = patient_context  # type: ignore[method-assign]
        yield browser
        browser.close()
