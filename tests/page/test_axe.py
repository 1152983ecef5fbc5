"""axe finds nothing in any page: at the width of a telephone and of a screen, in both themes."""

from __future__ import annotations

from importlib.resources import files

import pytest
from playwright.sync_api import Page

from page.conftest import Open

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
REPORTS = ("published", "rich", "wall")
FOLDER = ("index", "history", "compare", "problems")
WIDTHS = (390, 1400)


def findings(page: Page) -> list[str]:
    """Return each violation with its first element."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:200]}" for v in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*REPORTS, *FOLDER])
def test_axe_finds_nothing(name: str, width: int, scheme: str, open_page: Open) -> None:
    page = open_page(name, width, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert findings(page) == []


def test_axe_finds_nothing_in_a_chart_that_was_chosen(open_page: Open) -> None:
    page = open_page("rich")
    page.locator("#growth select").first.select_option("logarithmic")
    page.locator("#samples select").last.select_option("zombies=3,000")
    assert findings(page) == []


def test_axe_finds_what_is_wrong(open_page: Open) -> None:
    page = open_page("index")
    page.evaluate("document.body.append(document.createElement('img'))")
    assert any(found.startswith("image-alt") for found in findings(page))
