"""The local pages in headless Chromium: no errors; scripts are needed only to follow a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from unit.run import killable
from unit.serve.test_serve import Site, serving

PATIENCE_MS = 60_000
PHONE = {"width": 390, "height": 844}
PAGES = (
    "/",
    "/runs/{0}",
    "/runs/{0}/boots",
    "/runs/{0}/boots/0",
    "/runs/{1}",
    "/compare",
    "/compare?a={0}&b={0}",
    "/history",
    "/nowhere",
)
POINT = "/history?metric=freeze_user_ns&point=zombies%3D300"
Open = Callable[..., Page]

OVERFLOWS = """() => [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".wide, pre, .skip, select") && e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + "." + e.className)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve one finished run and one without boots."""
    home = tmp_path_factory.mktemp("home")
    killable.measure(killable.make_run(home / "runs", "instructions").path)
    killable.make_run(home / "runs", "instructions")
    with serving(home) as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """Return a function that opens a path, in which ``{0}`` and ``{1}`` are replaced by runs.

    At the end of the test the browser may have reported no error and sent no request to another host.
    """
    complaints: list[str] = []
    contexts = []

    def opened(path: str, **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None,
        )
        here = f"http://127.0.0.1:{site.port}"
        page.on("request", lambda asked: None if asked.url.startswith(here) else complaints.append(asked.url))
        page.goto(here + path.format(*site.names()))
        return page

    yield opened
    for context in contexts:
        context.close()
    # For /nowhere the browser itself reports the status 404.
    assert [text for text in complaints if "404" not in text] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", [*PAGES, POINT])
def test_every_page_fits_a_phone_in_both_themes(path: str, theme: str, open_page: Open) -> None:
    page = open_page(path, viewport=PHONE, color_scheme=theme)
    assert page.locator("h1").is_visible()
    assert page.evaluate(OVERFLOWS) == []
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (ground == "rgb(15, 18, 22)") == (theme == "dark")


def test_runs_are_filtered_and_compared_without_a_script(open_page: Open) -> None:
    page = open_page("/", java_script_enabled=False)
    page.get_by_label("State").select_option("done")
    page.get_by_role("button", name="Show").click()
    rows = page.locator("table.runs tbody tr")
    expect(rows).to_have_count(1)
    for side in ("A", "B"):
        rows.get_by_label(f"{side}: ").check()
    page.get_by_role("button", name="Compare A and B").click()
    expect(page.locator(".summary")).to_contain_text("comparisons in both")


def test_the_history_leads_to_one_line_without_a_script(open_page: Open) -> None:
    page = open_page("/history", java_script_enabled=False)
    page.locator("table a").first.click()
    expect(page.locator("svg.line .figure")).to_have_count(2)
    page.locator("tbody a").first.click()
    expect(page.locator(".question")).to_have_text("Is anything lost?")


def test_a_run_is_followed_until_its_writer_exits(open_page: Open, site: Site) -> None:
    whole, growing = (RunDir(site.runs / name) for name in site.names())
    lines = whole.records_file.read_bytes().splitlines(keepends=True)
    with open_writer(growing):
        page = open_page("/runs/{1}")
        assert page.get_by_role("heading", name="Running").is_visible()
        boots = page.locator("#live dd").first
        assert boots.inner_text() == "0 of 6"
        growing.records_file.write_bytes(b"".join(lines))
        expect(boots).to_have_text("6 of 6", timeout=PATIENCE_MS)
        assert page.locator("#live table").count() == 2
    expect(page.get_by_role("heading", name="Unfinished")).to_be_visible(timeout=PATIENCE_MS)


def test_the_list_is_updated_and_keeps_the_selection(open_page: Open, site: Site) -> None:
    running = RunDir(site.runs / site.names()[1])
    with open_writer(running):
        page = open_page("/")
        page.get_by_label(f"A: {site.names()[0]}", exact=True).check()
        page.evaluate("document.querySelector('.state').textContent = 'stale'")
        expect(page.locator(".state").first).to_have_text("running", timeout=PATIENCE_MS)
        assert page.get_by_label(f"A: {site.names()[0]}", exact=True).is_checked()


def test_the_charts_of_a_report_are_drawn_in_the_sandbox(open_page: Open) -> None:
    page = open_page("/runs/{0}")
    page.get_by_role("link", name="Report with charts").click()
    # The script of the page marks what it shows.
    drawn = page.locator(".scripted .on .plot svg.canvas").first
    expect(drawn).to_be_visible(timeout=PATIENCE_MS)


def test_the_keyboard_reaches_the_content(open_page: Open) -> None:
    page = open_page("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")
