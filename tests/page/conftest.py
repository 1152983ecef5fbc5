"""For the tests of the pages in a real browser: the pages, in every way in which they are looked
at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from kteardown import pipeline
from kteardown.inputs.load import load_workload
from kteardown.inputs.published import load_posting
from kteardown.report import result_file
from kteardown.report.formats.html import html_report
from kteardown.report.material import Material
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.vm.kernel_log import problems
from kteardown_history.site.folder import SiteFolder
from kteardown_history.site.results import compact
from kteardown_history.site.runs import indexed
from kteardown_history.site.verb import LINKS, write_index
from unit.cli.test_main import kteardown
from unit.conftest import browser
from unit.report.contexts import rich, wall, write_both, write_run
from unit.run import killable
from unit.simulation import freezer

__all__ = ["browser"]

ROOT = Path(__file__).parents[2]
Open = Callable[..., Page]


def published() -> Material:
    """Return the published result of the freezer."""
    result = result_file.loads((ROOT / "findings/results/freezer/result.json").read_bytes())
    names = {c.workload for c in result.comparisons}
    workloads = {name: load_workload(name) for name in names}
    evidence = replace(rich().evidence, stacks=())
    return Material("freezer", result, workloads, load_posting("freezer"), evidence)


def panicked(root: Path) -> RunDir:
    """Make a finished run of which one boot panicked, with the console of a real panic."""
    run = write_run(root)
    console = (ROOT / "tests/data/console/crash.txt").read_text(encoding="utf-8", errors="replace")
    lines = run.records_file.path.read_text().splitlines()
    at = max(n for n, line in enumerate(lines) if '"boot_end"' in line)
    end = json.loads(lines[at])
    reports = [problem.model_dump(mode="json") for problem in problems(console)]
    detail = "Kernel panic - not syncing"
    lines[at] = json.dumps({**end, "outcome": "panic", "detail": detail, "problems": reports})
    run.records_file.path.write_text("\n".join(lines) + "\n")
    run.console_file(end["boot"], end["attempt"]).path.write_text(console)
    pipeline.analyse_and_save(load(run))
    return run


def many_runs(home: Path) -> dict[str, str]:
    """Write the pages that name every run, of 500 runs."""
    site = SiteFolder.begin(home, LINKS)
    result = published().result
    row: dict[str, Any] = {
        "name": "",
        "state": "done",
        "variants": [*result.requested],
        "experiment": "freezer",
        "source": "debian:6.12",
        "clock": ["instructions"],
        "started": "2026-11-30 12:00",
        "result": result.sentence,
        "page": "",
        "written": True,
        "error": "",
    }
    names = [f"run-{number:03}" for number in range(500)]
    write_index(site, [indexed({**row, "name": name}, {name: result}) for name in names])
    shifted = [
        c.model_copy(update={"ci": (c.ci[0] + 0.5, c.ci[1] + 0.5)}) if c.ci else c
        for c in result.comparisons
    ]
    other = result.model_copy(update={"comparisons": tuple(shifted)})
    for name, of in zip(names[:3], (result, result, other), strict=True):
        workloads = published().workloads
        site.save_data(f"result-{name}", compact(name, "", row["started"], of, workloads))
    return {f"many {page}": (home / f"{page}.html").as_uri() for page in ("index", "compare")}


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Return the address of every page by a name."""
    home = tmp_path_factory.mktemp("home")
    found = {}
    for name, material in (("published", published()), ("rich", rich()), ("wall", wall())):
        file = home / f"{name}.html"
        file.write_text(html_report(material), encoding="utf-8")
        found[name] = file.as_uri()
    for experiment in (freezer(), freezer("wall", boots=6, zombies=(0, 3000, 15000))):
        pipeline.analyse_and_save(load(write_run(home / "runs", experiment)))
    for run in write_both(home / "runs").runs:
        pipeline.analyse_and_save(load(run))
    panicked(home / "runs")
    killable.make_run(home / "runs", "instructions")
    damaged = write_run(home / "runs")
    damaged.result_file.path.write_text("{")
    done = kteardown("site", "--to", str(home / "site"), home=home)
    assert done.returncode == 0, done.stderr
    pages = ("index", "compare", "problems", "history")
    found |= {name: (home / f"site/{name}.html").as_uri() for name in pages}
    found |= many_runs(home / "many")
    yield found
    shutil.rmtree(home)


@pytest.fixture
def open_page(browser: Browser, addresses: Mapping[str, str]) -> Iterator[Open]:
    """Return a function that opens a page by its name, ``width`` pixels wide; ``query`` is what
    follows its address."""
    contexts = []

    def opened(
        name: str, width: int = 1400, height: int = 900, query: str = "", **options: Any
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(addresses[name] + query)
        return page

    yield opened
    for context in contexts:
        context.close()
