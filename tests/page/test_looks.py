"""What is to be seen: on paper, without JavaScript, on a telephone; and the pictures of the
documentation.

`make screenshots` writes the pictures to docs/images; without it they are only made.
"""

from __future__ import annotations

import io
import os

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from page.conftest import ROOT, Open

TARGET = os.environ.get("KTEARDOWN_SCREENSHOTS")
LARGEST = 100_000
"""Bytes of a picture."""
BLANK = """() => [...document.querySelectorAll(".on .plot, .forest .rows")].filter((plot) => {
  const drawn = [...plot.querySelectorAll("svg.canvas, svg.picture")]
    .map((e) => e.getBoundingClientRect());
  return !drawn.some(({ width, height }) => width > 100 && height > 15);
}).length"""
OVERLAPS = """() => {
  const found = [];
  for (const axis of document.querySelectorAll("svg.numbers, svg.ticks, .strip.axis svg")) {
    const every = [...axis.querySelectorAll("text")].map((e) => e.getBoundingClientRect());
    const boxes = every.filter((box) => box.width);
    boxes.sort((a, b) => a.left - b.left);
    boxes.forEach((box, n) => {
      if (n && box.left < boxes[n - 1].right) found.push(axis.textContent);
    });
  }
  return found;
}"""


OVERFLOWS = """() => [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll, .skip") && e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + "." + e.className)"""


def save(page: Page, name: str, **options: object) -> Image.Image:
    """Take a picture with few colours; write it where `make screenshots` asks for it."""
    picture = Image.open(io.BytesIO(page.screenshot(**options)))  # type: ignore[arg-type]
    small = io.BytesIO()
    picture.convert("RGB").quantize(128).save(small, "png", optimize=True)
    assert len(small.getvalue()) < LARGEST
    if TARGET:
        (ROOT / TARGET / f"{name}.png").write_bytes(small.getvalue())
    return picture


def colours(picture: Image.Image) -> int:
    """Return how many colours a picture has, which are few if it is blank."""
    return len(picture.convert("RGB").getcolors(2**24) or [])


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("media", ["screen", "print"])
@pytest.mark.parametrize("name", ["published", "rich", "wall"])
def test_no_chart_is_blank(name: str, media: str, scripts: bool, open_page: Open) -> None:
    page = open_page(name, java_script_enabled=scripts)
    page.emulate_media(media=media)  # type: ignore[arg-type]
    assert page.locator(".plot, .forest .rows").count() > 5
    for plot in page.locator(".on .plot" if scripts else ".plot").all():
        box = plot.locator("svg.canvas").first.bounding_box()
        assert box is not None
        assert box["width"] > 100
    if scripts:
        assert page.evaluate(BLANK) == 0


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["published", "rich", "wall"])
def test_the_labels_of_an_axis_do_not_overlap(name: str, width: int, open_page: Open) -> None:
    assert open_page(name, width).evaluate(OVERLAPS) == []


@pytest.mark.parametrize("name", ["rich", "index"])
def test_paper_has_light_colours_and_no_controls(name: str, open_page: Open) -> None:
    page = open_page(name, color_scheme="dark")
    assert page.locator("#filters").is_visible()
    page.emulate_media(media="print")
    assert (
        page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert page.locator("#filters").is_hidden()
    assert page.locator("#theme, nav").filter(visible=True).count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "history", "compare", "problems", "many index"])
def test_the_folder_fits_a_phone_in_both_themes(name: str, theme: str, open_page: Open) -> None:
    page = open_page(name, 390, color_scheme=theme)
    assert page.locator("h1").is_visible()
    assert page.evaluate(OVERFLOWS) == []
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (ground == "rgb(15, 18, 22)") == (theme == "dark")


def test_the_index_is_filtered_by_words(open_page: Open) -> None:
    page = open_page("index")
    runs, box = page.locator(".run"), page.get_by_role("searchbox")
    expect(runs.filter(visible=True)).to_have_count(6)
    box.fill("Wall DONE")
    expect(runs.filter(visible=True)).to_have_count(2)
    expect(page.get_by_role("status")).to_have_text("2 of 6")
    box.press("Enter")
    expect(runs.filter(visible=True)).to_have_count(2)
    box.fill("")
    expect(runs.filter(visible=True)).to_have_count(6)


def test_without_a_script_the_index_is_a_plain_list_that_leads_to_the_reports(
    open_page: Open,
) -> None:
    page = open_page("index", java_script_enabled=False)
    assert page.locator(".run").filter(visible=True).count() == 6
    assert page.locator("#filters").is_hidden()
    page.locator(".run a").first.click()
    expect(page.locator("#verdict h2")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="History").click()
    expect(page.locator(".plot svg.canvas").first).to_be_visible()
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("h1")).to_have_text("Runs")


def test_the_keyboard_reaches_the_content_of_the_index(open_page: Open) -> None:
    page = open_page("index")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")


def test_the_pictures_of_a_report(open_page: Open) -> None:
    page = open_page("published", 1100, 860)
    assert colours(save(page, "report")) > 30
    page.evaluate("document.querySelector('#filters').remove()")
    assert colours(save(page, "forest", **_from(page, ".forest", 620))) > 30
    phone = open_page("published", 390, 780, color_scheme="dark")
    assert colours(save(phone, "phone", **_from(phone, ".card", 1100))) > 30


def test_the_pictures_of_a_site(open_page: Open) -> None:
    page = open_page("many compare", 1100, 760, query="?a=run-000&b=run-001")
    page.locator("#answer table").first.wait_for()
    assert colours(save(page, "compare")) > 30
    page = open_page("problems", 1100, 760)
    assert colours(save(page, "problems")) > 30


def _from(page: Page, selector: str, height: int) -> dict[str, object]:
    """Return the options of a picture that begins a little above an element."""
    top = page.evaluate(
        f"document.querySelector('{selector}').getBoundingClientRect().top + scrollY"
    )
    width = page.viewport_size["width"] if page.viewport_size else 0
    return {"full_page": True, "clip": {"x": 0, "y": top - 12, "width": width, "height": height}}


def test_the_documentation_has_every_picture() -> None:
    named = {"report", "forest", "phone", "script", "compare", "problems"}
    assert {path.stem for path in (ROOT / "docs/images").glob("*.png")} == named
    every = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    pages = "".join(path.read_text(encoding="utf-8") for path in every)
    assert [name for name in named if f"images/{name}.png" not in pages] == []
