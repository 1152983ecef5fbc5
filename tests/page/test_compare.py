"""The page that compares two results or two kernels, by the names in its address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from page.conftest import Open
from page.test_axe import findings
from page.test_looks import OVERFLOWS

BOTH = "?a=run-000&b=run-001"
KERNELS = "?a=run-000:base&b=run-001:freezer-skip-exited"


def rows(page: Page, title: str) -> list[list[str]]:
    """Return the cells of the table below a title."""
    table = page.get_by_role("region", name=title, exact=True)
    return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("query", [BOTH, KERNELS])
def test_a_comparison_fits_and_axe_finds_nothing(
    query: str, scheme: str, width: int, open_page: Open
) -> None:
    page = open_page("many compare", width, query=query, color_scheme=scheme)
    expect(page.locator("#answer table").last).to_be_visible()
    assert page.evaluate(OVERFLOWS) == []
    assert findings(page) == []


def test_two_equal_results_agree_everywhere(open_page: Open) -> None:
    page = open_page("many compare", query=BOTH)
    expect(page.locator(".answer")).to_contain_text("0 are apart, and 0 have different verdicts")
    title = "zombies: freezing user space, freezer-skip-exited against base"
    cells = rows(page, title)
    assert len(cells) > 2
    for _, ours, verdict, theirs, other, intervals, _ in cells:
        assert (ours, verdict) == (theirs, other)
        assert intervals == "overlap"
        assert re.match(r"[+-][0-9.]+% \[", ours)


def test_intervals_that_are_apart_are_named(open_page: Open) -> None:
    page = open_page("many compare", query="?a=run-000&b=run-002")
    expect(page.locator(".answer")).not_to_contain_text("intervals of 0 are apart")
    title = "zombies: freezing user space, freezer-skip-exited against base"
    assert {cells[5] for cells in rows(page, title)} == {"apart"}


def test_two_kernels_have_their_values_and_what_one_more_costs(open_page: Open) -> None:
    page = open_page("many compare", query=KERNELS)
    expect(page.locator(".answer")).to_contain_text("no verdict here")
    (law,) = [row for row in rows(page, "What one more costs") if "freezing user" in row[0]]
    base, changed = (float(re.sub(r" .*|,", "", text)) for text in (law[2], law[4]))
    assert changed < base / 2
    for _, before, after, change in rows(page, "zombies: freezing user space, in instructions"):
        ratio = float(after.replace(",", "")) / float(before.replace(",", ""))
        assert abs(float(change.rstrip("%")) - 100 * (ratio - 1)) < 0.1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?a=nothing&b=run-001", 'no result with the name "nothing"'),
        ("?a=../../etc/passwd&b=run-001", "no result with the name"),
        ("?a=run-000:base&b=run-001", "Choose a kernel on both sides"),
        ("?a=run-000:bse&b=run-001:base", 'no kernel "bse"'),
        ("?a=run-000:constructor&b=run-001:base", 'no kernel "constructor"'),
        ("?a=<img src=x onerror=alert(1)>&b=run-001", "<img src=x onerror=alert(1)>"),
    ],
)
def test_a_wrong_address_is_a_sentence(query: str, words: str, open_page: Open) -> None:
    page = open_page("many compare", query=query)
    expect(page.get_by_role("alert")).to_contain_text(words)
    assert page.locator("#answer *").count() == 0
    assert page.locator("main img").count() == 0


def test_the_form_leads_to_an_address_that_can_be_sent(open_page: Open) -> None:
    page = open_page("many compare", query="?a=run-000")
    expect(page.locator("datalist option")).to_have_count(500)
    page.locator("[name=b]").fill("run-001")
    page.locator("[name=kernel_a]").select_option("base")
    page.locator("[name=kernel_b]").select_option("freezer-skip-exited")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**?a=run-000%3Abase&b=run-001%3Afreezer-skip-exited")
    page.get_by_role("button", name="Swap A and B").click()
    page.wait_for_url("**?a=run-001%3Afreezer-skip-exited&b=run-000%3Abase")
    expect(page.locator(".answer")).to_be_visible()


def test_the_index_of_500_runs_is_searched(open_page: Open) -> None:
    page = open_page("many index", 390)
    expect(page.locator(".run")).to_have_count(500)
    page.get_by_role("searchbox").fill("run-49")
    expect(page.locator(".run").filter(visible=True)).to_have_count(10)
    page.locator(".run a").filter(visible=True).first.click()
    page.wait_for_url("**compare.html?a=run-490")
    expect(page.locator("[name=a]")).to_have_value("run-490")


def test_problems_are_searched_and_empty_groups_go(open_page: Open) -> None:
    page = open_page("problems")
    cards = page.locator(".problem")
    assert cards.count() > 60
    page.get_by_role("searchbox").fill("zombies")
    assert 0 < cards.filter(visible=True).count() < 10
    for group in page.locator(".group").filter(visible=True).all():
        assert group.locator(".problem").filter(visible=True).count() > 0
