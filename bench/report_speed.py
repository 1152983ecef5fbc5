#!/usr/bin/env python3
"""Measure how long the HTML report of 10,000 trials takes to be made, and to be opened in headless
Chromium.

The run is that of ``stats_speed.py``. Making: the records are read, analysed and read again for the
samples, and the page is written; the limit is 10 seconds of processor time. Opening: until the page
is loaded, and until another chart is shown for which the reader asked; the limit is 2 seconds each.
Exits with 1 if a limit is exceeded. ``--open FILE`` only opens an existing report.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from stats_speed import EXPERIMENT, WORKLOAD, write

from kteardown.analysis.conclude import analyse
from kteardown.analysis.evidence import gather
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of
from kteardown.report.formats.html import html_report
from kteardown.report.material import Material
from kteardown.rundir.directory import RunDir

MAKE_LIMIT_S = 10.0
OPEN_LIMIT_S = 2.0
_FACTS = KernelFacts(
    release="", source="", arch="x86_64", compiler="", config_hash="", image_hash=""
)


def make(page: Path) -> float:
    """Write the report of the simulated run to ``page``; return the seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir.create(Path(folder), "speed")
        trials = write(run)
        started = time.process_time()
        kernels = dict.fromkeys(("base", "faster", "alike"), _FACTS)
        workloads = {"load": WORKLOAD}
        result = analyse(
            EXPERIMENT,
            workloads,
            run.boots(),
            kernels,
            {},
            "",
            points=points_of(EXPERIMENT, workloads),
        )
        concluded = time.process_time()
        evidence = gather(
            EXPERIMENT,
            workloads,
            points_of(EXPERIMENT, workloads),
            run.boots(),
            (),
            EXPERIMENT.variants,
        )
        gathered = time.process_time()
        page.write_text(
            html_report(Material(run.name, result, workloads, None, evidence)), encoding="utf-8"
        )
        done = time.process_time()
    samples = sum(s.count for s in evidence.samples)
    print(f"{trials:,} trials, {samples:,} samples; page of {page.stat().st_size / 1e6:.1f} MB")
    print(
        f"analysed {concluded - started:.2f} s, samples {gathered - concluded:.2f} s, "
        f"page {done - gathered:.2f} s"
    )
    return done - started


def opened(file: Path) -> tuple[float, float]:
    """Return the seconds until the page is loaded with its charts, and until another one is
    shown."""
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        started = time.monotonic()
        page.goto(file.as_uri())
        loaded = time.monotonic()
        _another_chart(page)
        drawn = time.monotonic()
        browser.close()
    return loaded - started, drawn - loaded


def _another_chart(page: Page) -> None:
    page.locator("figure.chart select").first.select_option(index=1)
    page.wait_for_selector("figure.chart .view:not(.on) + .view.on")


def main(arguments: list[str]) -> int:
    """Print the seconds of each part; return 1 if a limit is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        made = 0.0
        if arguments[:1] == ["--open"]:
            file = Path(arguments[1]).absolute()
        else:
            made = make(file)
        loaded, drawn = opened(file)
    print(f"made in {made:.2f} s of processor time, limit {MAKE_LIMIT_S:.0f} s")
    print(
        f"opened in {loaded:.2f} s, another chart {drawn:.2f} s after; limit {OPEN_LIMIT_S:.0f} s "
        "each"
    )
    ok = made <= MAKE_LIMIT_S and max(loaded, drawn) <= OPEN_LIMIT_S
    print("ok" if ok else "too slow")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
