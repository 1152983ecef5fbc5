"""The HTML report in headless Chromium.

It loads, its charts are drawn, its filters work, and it can be read on a phone, in the dark theme, on paper,
by keyboard and without JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from kteardown.report.charts import spread
from kteardown.report.formats.html import html_report
from unit.report.contexts import instructions, rich, wall

PHONE = {"width": 390, "height": 844}
Open = Callable[..., Page]

CONTRASTS = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a] = parts(getComputedStyle(e).backgroundColor);
      if (a === undefined || a > 0.9) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = [];
  const words = "h1,h2,h3,h4,p,li,td,th,a,dt,dd,label,button,summary,pre";
  for (const element of document.querySelectorAll(words)) {
    if (!element.checkVisibility() || !element.textContent.trim()) continue;
    const [ink, paper] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) low.push([element.tagName, element.textContent.trim().slice(0, 40), contrast]);
  }
  return low;
}"""
OVERFLOWS = """() => [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll, pre, .plot, .skip, .defs") && e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + "." + e.className)"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"rich": rich, "wall": wall}
    for name, material in made.items():
        (folder / f"{name}.html").write_text(html_report(material()), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture
def open_page(browser: Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Open a page; at the end of the test there must be no console errors and no requests."""
    contexts, wrong = [], []

    def opened(name: str = "rich", file: Path | None = None, script: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda r: wrong.append(r.url) if r.url[:5] not in ("file:", "data:", "blob:") else None
        )
        if script:
            page.add_init_script(script)
        page.goto((file or files[name]).as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def zoom_all(page: Page) -> list[str]:
    """Let plotly draw every chart; return the names of the drawn charts."""
    buttons = page.locator("button.zoom")
    for number in range(buttons.count()):
        buttons.nth(number).click()
    page.wait_for_function("!document.querySelector('figure.chart:not(.forest):not([data-drawn])')")
    figures = page.locator("figure.chart[data-drawn]")
    return [str(figures.nth(n).get_attribute("data-drawn")) for n in range(figures.count())]


def rows(page: Page) -> int:
    return page.locator("#changes tr[data-verdict]:not([hidden])").count()


@pytest.mark.parametrize("name", ["rich", pytest.param("wall", marks=pytest.mark.full)])
def test_the_page_loads_without_an_error_and_plotly_draws_every_chart(open_page: Open, name: str) -> None:
    drawn = zoom_all(open_page(name))
    kinds = {chart.split("-")[0] for chart in drawn}
    assert kinds >= {"growth", "posted", "samples"}
    assert (kinds >= {"patches", "flame"}) == (name == "rich")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_every_chart_is_a_picture_before_anything_is_scrolled(open_page: Open, scripts: bool) -> None:
    page = open_page(java_script_enabled=scripts)
    plots = page.locator("figure.chart:not(.forest) .plot")
    assert plots.count() > 5
    for plot in plots.all():
        box = plot.locator("svg.canvas").first.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] >= 50
    assert page.locator("[data-drawn], .main-svg").count() == 0


def test_zoom_is_left_again(open_page: Open) -> None:
    page = open_page()
    figure = page.locator("#growth figure").first
    picture = figure.locator(".plot").inner_html()
    for pressed in ("true", "false"):
        figure.locator("button.zoom").click()
        assert figure.locator("button.zoom").get_attribute("aria-pressed") == pressed
        if pressed == "true":
            figure.locator(".main-svg").first.wait_for()
    assert figure.locator(".plot").inner_html() == picture


def test_filters_by_verdict_metric_and_variant(open_page: Open) -> None:
    page = open_page()
    comparisons = rich().result.asked_for
    assert rows(page) == len(comparisons)
    plotted = page.locator("#changes .f[data-verdict]:not([hidden])")
    assert plotted.count() == len([c for c in comparisons if c.ratio])
    page.get_by_role("checkbox", name="better").uncheck()
    left = [c for c in comparisons if c.verdict != "better"]
    assert rows(page) == len(left) > 0
    assert f"{len(left)} of {len(comparisons)}" in page.locator("#count").inner_text()
    assert plotted.count() == len([c for c in left if c.ratio])
    page.get_by_role("button", name="all", exact=True).click()
    page.locator("#filters select").select_option("freeze_remaining_ns")
    assert rows(page) == sum(c.metric == "freeze_remaining_ns" for c in comparisons)
    page.wait_for_function(
        "document.querySelector('#samples .title').textContent.includes('freezing the remaining tasks')"
    )
    page.get_by_role("checkbox", name="freezer-skip-nofreeze").uncheck()
    for part in ("article", "figure.forest", "#growth .plot g", "#growth .legend li"):
        assert page.locator(f"{part}[data-variant='freezer-skip-nofreeze']").first.is_hidden()
    assert page.locator("article[data-variant='freezer-skip-exited']").is_visible()


def test_filters_without_matches_show_a_message(open_page: Open) -> None:
    page = open_page("wall")
    for box in page.locator("input[name=verdict]").all():
        box.uncheck()
    assert page.locator("#changes .empty").first.is_visible()
    assert page.locator("#changes .rows").first.is_hidden()
    assert rows(page) == 0


def test_another_point_and_logarithmic_axes_can_be_chosen(open_page: Open) -> None:
    page = open_page()
    page.locator("#samples select").nth(1).select_option("zombies=3,000")
    page.wait_for_selector("#samples figure[data-drawn$='zombies-3000']")
    page.locator("#growth figure").first.scroll_into_view_if_needed()
    button = page.locator("#growth button.log").first
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    page.wait_for_function("document.querySelector('#growth .plot').layout?.yaxis.type === 'log'")
    assert "logarithmic" in page.evaluate("document.querySelector('#growth .plot').layout.yaxis.title.text")


@pytest.mark.full
@pytest.mark.parametrize("zoomed", [False, True], ids=["pictures", "zoomed"])
def test_on_a_phone_nothing_is_wider_than_the_screen(open_page: Open, zoomed: bool) -> None:
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    if zoomed:
        zoom_all(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOWS) == []
    widths = page.evaluate(
        "[...document.querySelectorAll('.plot .main-svg, .canvas, .picture')]"
        ".map((e) => e.getBoundingClientRect().width)"
    )
    assert max(widths) <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_theme(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate(CONTRASTS) == []


@pytest.mark.full
def test_the_theme_follows_the_system_or_the_reader_and_charts_follow_it(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    zoom_all(page)
    paper = "document.querySelector('#growth .plot').layout.paper_bgcolor"
    assert page.evaluate(paper) == "#171b21"
    button = page.get_by_role("button", name="theme")
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() == "theme: light"
    page.wait_for_function(f"{paper} === '#ffffff'")


@pytest.mark.full
def test_in_print_every_table_is_open_and_the_theme_is_light(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    page.locator("#samples select").nth(1).select_option("zombies=3,000")
    page.wait_for_selector("#samples figure[data-drawn$='zombies-3000']")
    closed = "document.querySelectorAll('details:not([open])').length"
    paper = "document.querySelector('#samples .plot').layout.paper_bgcolor"
    page.evaluate(
        f"addEventListener('beforeprint', () => {{ window.printed = [{closed}, {paper}]; }});"
        f"addEventListener('afterprint', () => {{ window.after = {closed}; }});"
    )
    before = page.evaluate(closed)
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.evaluate("window.printed") == [0, "#ffffff"]
    assert page.evaluate("window.after") == before
    assert page.locator("#growth svg.canvas").first.is_visible()


def test_the_page_can_be_used_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_url("**#verdict")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert reached >= {"INPUT", "SELECT", "BUTTON", "SUMMARY"}


def test_the_name_of_a_metric_leads_to_what_it_is(open_page: Open) -> None:
    page = open_page()
    page.locator(".strip .name a").first.click()
    page.wait_for_url("**#metric-zombies-freeze_user_ns")
    assert page.locator("#metric-zombies-freeze_user_ns").is_visible()


def test_without_javascript_text_pictures_and_tables_are_shown(open_page: Open) -> None:
    page = open_page(java_script_enabled=False)
    assert page.locator("article.card").count() == 3
    assert page.locator("svg.picture").first.is_visible()
    assert page.locator(".off").is_visible()
    assert page.locator(".choices").first.is_hidden()
    assert page.locator("#filters").is_hidden()
    others = page.locator("#samples .others .plot")
    assert others.count() > 10
    assert others.last.is_visible()
    page.locator("#changes summary").first.click()
    assert page.locator("#changes td").first.is_visible()


def test_without_webgl_many_samples_are_drawn(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spread, "_GL_FROM", 10)
    file = tmp_path / "many.html"
    file.write_text(html_report(instructions()), encoding="utf-8")
    page = open_page(file=file, script="HTMLCanvasElement.prototype.getContext = () => null;")
    page.locator("#samples button.zoom").click()
    page.wait_for_selector("#samples figure[data-drawn]")
    types = page.evaluate("document.querySelector('#samples .plot').data.map((t) => t.type)")
    assert set(types) == {"scatter"}
    assert page.locator("#samples .points path").count() == 3 * 5 * 3 + 3 * 5
