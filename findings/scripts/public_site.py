"""The published results as pages: ``public_site.py FOLDER``, which ``make docs`` runs.

The pages are those of ``kteardown site``. A result keeps its name, so that a link to it stays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from claims import RESULTS
from kteardown.cli.rows import Fields
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.inputs.published import Posting, load_posting
from kteardown.model.clock import BOTH
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.material import Material, side_by_side
from kteardown.report.result_file import result_of
from kteardown.report.sentence import sentence
from kteardown_history.site.folder import SiteFolder
from kteardown_history.site.runs import IndexedRun, indexed, write_result
from kteardown_history.site.verb import LINKS, write_index

ROOT = Path(__file__).parents[2]


def main(to: Path, root: Path = ROOT) -> None:
    """Write the pages of every published result that is one of an experiment."""
    site = SiteFolder.begin(to, (*LINKS, ("Documentation", "../index.html")))
    folders = sorted((root / RESULTS).iterdir())
    runs = [_indexed(folder, site) for folder in folders if _files(folder)]
    runs.sort(key=lambda run: (run.row["started"], run.row["name"]), reverse=True)
    pages = {folder.name: f"../{RESULTS}/{folder.name}/index.html" for folder in folders}
    write_index(site, runs, published=pages)
    print(f"{to / 'index.html'}: {len(runs)} published results")


def _files(folder: Path) -> list[Path]:
    """Return the result of a folder, or that of each clock; nothing for a hunt and the like."""
    alone = [folder / "result.json"]
    files = alone if alone[0].is_file() else [folder / clock / "result.json" for clock in BOTH]
    return [file for file in files if file.is_file()]


def _indexed(folder: Path, site: SiteFolder) -> IndexedRun:
    name = folder.name
    files = _files(folder)
    clocks = [_material(name, result_of(file.read_bytes(), str(file))) for file in files]
    material = clocks[0] if len(clocks) == 1 else side_by_side(name, *clocks)
    names = [name] if len(clocks) == 1 else [f"{name}~{clock}" for clock in BOTH]
    measured = json.loads((folder / "measured.json").read_text(encoding="utf-8"))
    write_result(name, names, measured["date"], material, site)
    result = clocks[0].result
    row: Fields = {
        "name": name,
        "state": f"measured with {measured['commit']}",
        "variants": [key for key in result.requested if key != "base"],
        "experiment": result.experiment,
        "source": result.kernels["base"].source if "base" in result.kernels else "",
        "clock": [clock.result.clock for clock in clocks],
        "started": measured["date"],
        "result": sentence(material.whole, material.workloads),
        "page": f"run-{name}.html",
        "written": True,
        "error": "",
    }
    results = [clock.result for clock in clocks]
    return indexed(row, dict(zip(names, results, strict=True)))


def _material(name: str, result: Result) -> Material:
    return Material(name, result, _workloads(result), _posting(result))


def _workloads(result: Result) -> dict[str, Workload]:
    """Return the workloads of today; one that is gone is named by its key."""
    valued = (*result.comparisons, *result.laws, *result.levels)
    workloads = {}
    for name in dict.fromkeys(row.workload for row in valued):
        try:
            workloads[name] = load_workload(name)
        except InputError:
            continue
    return workloads


def _posting(result: Result) -> Posting | None:
    try:
        return load_posting(result.experiment)
    except InputError:
        return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
