"""The HTML report in headless Chromium.

It loads, its charts are drawn, its filters work, and it can be read on a phone, in the dark theme,
on paper, by keyboard and without JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from kteardown.report.formats.html import html_report
from unit.report.contexts import rich, wall

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
    if (contrast < 4.5)
      low.push([element.tagName, element.textContent.trim().slice(0, 40), contrast]);
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

    def opened(
        name: str = "rich", file: Path | None = None, script: str = "", **options: Any
    ) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda r: wrong.append(r.url) if r.url[:5] not in ("file:", "data:", "blob:") else None,
        )
        if script:
            page.add_init_script(script)
        page.goto((file or files[name]).as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def rows(page: Page) -> int:
    return page.locator("#changes tr[data-verdict]:not([hidden])").count()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_every_chart_is_a_picture_before_anything_is_scrolled(
    open_page: Open, scripts: bool
) -> None:
    page = open_page(java_script_enabled=scripts)
    plots = page.locator(f"figure.chart:not(.forest) {'.on ' if scripts else ''}.plot")
    assert plots.count() > 5
    for plot in plots.all():
        box = plot.locator("svg.canvas").first.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] >= 50


def test_one_chart_of_a_kind_is_shown_with_scripts_and_all_without(open_page: Open) -> None:
    with_scripts, without = open_page(), open_page(java_script_enabled=False)
    every = with_scripts.locator("#samples .view").count()
    assert every > 10
    assert with_scripts.locator("#samples .view:visible").count() == 1
    assert without.locator("#samples .view:visible").count() == every
    assert without.locator("#samples .title:visible").count() == every


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
        "document.querySelector('#samples .title').textContent.includes('freezing the remaining "
        "tasks')"
    )
    page.get_by_role("checkbox", name="freezer-skip-nofreeze").uncheck()
    for part in ("article", "figure.forest", "#growth .on .plot g", "#growth .on .legend li"):
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
    shown = page.locator("#samples .view:visible")
    assert shown.count() == 1
    assert "zombies=3,000" in str(shown.locator(".plot").get_attribute("aria-label"))
    assert page.locator("#samples .title:visible").inner_text().endswith("at zombies=3,000")
    growth = page.locator("#growth figure").first
    assert "logarithmic" not in growth.locator(".axis-title:visible").first.inner_text()
    growth.locator("select").last.select_option("logarithmic")
    assert "logarithmic" in growth.locator(".axis-title:visible").first.inner_text()


def test_a_choice_that_has_no_chart_with_the_others_changes_them(open_page: Open) -> None:
    page = open_page()
    metric, at = page.locator("#samples select").nth(0), page.locator("#samples select").nth(1)
    at.select_option("zombies=3,000")
    metric.select_option(label="freezing the cgroup (zombies_cgroup)")
    assert page.locator("#samples .view:visible").count() == 1
    title = page.locator("#samples .title:visible").inner_text()
    assert "freezing the cgroup" in title
    assert title.endswith(at.input_value())
    assert at.input_value() != "zombies=3,000"


def test_a_mark_and_the_column_of_a_boot_have_their_values_as_tooltips(open_page: Open) -> None:
    page = open_page()
    for place in (
        "#growth .on [data-variant=freezer-skip-nofreeze] use",
        "#samples .on .hits rect",
    ):
        mark = page.locator(place).first
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        assert box is not None
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        found = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).querySelector('title')?.textContent",
            middle,
        )
        assert found == mark.locator("title").text_content()


@pytest.mark.full
def test_on_a_phone_nothing_is_wider_than_the_screen(open_page: Open) -> None:
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOWS) == []
    widths = page.evaluate(
        "[...document.querySelectorAll('.canvas, .picture')].map((e) => "
        "e.getBoundingClientRect().width)"
    )
    assert max(widths) <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_theme(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate(CONTRASTS) == []


def test_the_theme_follows_the_system_or_the_reader_and_charts_follow_it(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    grid = "getComputedStyle(document.querySelector('#growth .paths .grid')).stroke"
    dark = page.evaluate(grid)
    assert dark == "rgb(39, 46, 55)"
    button = page.get_by_role("button", name="theme")
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() == "theme: light"
    assert page.evaluate(grid) == "rgb(233, 236, 240)"


@pytest.mark.full
def test_in_print_every_table_is_open_and_the_theme_is_light(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    closed = "document.querySelectorAll('details:not([open])').length"
    page.evaluate(
        f"addEventListener('beforeprint', () => {{ window.printed = {closed}; }});"
        f"addEventListener('afterprint', () => {{ window.after = {closed}; }});"
    )
    before = page.evaluate(closed)
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.evaluate("window.printed") == 0
    assert page.evaluate("window.after") == before
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(
        "getComputedStyle(document.querySelector('#growth .paths .grid')).stroke"
    ) == ("rgb(233, 236, 240)")
    assert page.locator("#samples .view:visible").count() == 1


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
    others = page.locator("#samples .view .plot")
    assert others.count() > 10
    assert others.last.is_visible()
    page.locator("#changes summary").first.click()
    assert page.locator("#changes td").first.is_visible()
