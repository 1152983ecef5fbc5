"""The published results as pages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import public_site

ROOT = Path(__file__).parents[2]


def test_a_published_result_is_a_page_under_its_name(tmp_path: Path) -> None:
    for name in ("versions-freezer", "clocks-freezer", "hunt-6.12-all"):
        folder = f"findings/results/{name}"
        shutil.copytree(ROOT / folder, tmp_path / folder)
    site = tmp_path / "site"
    public_site.main(site, tmp_path)
    pages = {file.stem for file in site.glob("*.html")}
    assert pages == {"run-clocks-freezer", "run-versions-freezer", "index", "compare", "problems"}
    entries = {entry["name"]: entry for entry in json.loads((site / "results.json").read_text())}
    assert "debian:7.3" in entries["versions-freezer"]["kernels"]
    assert entries["clocks-freezer~wall"]["clock"] == "wall"
    # No page of it leads to one that is not there, but for the documentation.
    index = (site / "index.html").read_text()
    assert "history.html" not in index
    assert 'href="../index.html"' in index
