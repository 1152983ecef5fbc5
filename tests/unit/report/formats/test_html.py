"""The HTML report as text: complete without JavaScript, self-contained, and with escaped
content."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from kteardown.analysis.timing import disturbance_notes
from kteardown.model.clock import Clock
from kteardown.report.formats.html import all_charts, html_report
from kteardown.report.material import Material
from unit.analysis.test_timing import shares, timing
from unit.report.contexts import instructions, rich, simulated, wall
from unit.simulation import Noise, freezer


class Page(HTMLParser):
    """Every element with its attributes, ids, the text outside of scripts, and whether tags
    close."""

    VOID = frozenset(("meta", "link", "input", "br"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.code: list[str] = []
        self.prose: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if not {"script", "style"}.intersection(self.open):
            (self.code if "code" in self.open else self.prose).append(data)
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def values(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(name)) is not None]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html_report(rich()))


def test_tags_close_and_ids_are_unique(page: Page) -> None:
    assert (page.wrong, page.open) == ([], [])
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    anchors = [href.removeprefix("#") for href in page.values("href") if href.startswith("#")]
    assert set(anchors) <= set(ids)


def test_the_name_of_a_metric_is_a_link_to_what_it_is(page: Page) -> None:
    links = [str(attrs["href"]) for tag, attrs in page.elements if tag == "a"]
    assert links.count("#metric-zombies-freeze_user_ns") == 4, "two cards and two forest plots"
    assert "metric-zombies-freeze_user_ns" in page.values("id")
    assert "freezing user space (freeze_user_ns) user-space tasks; lower is better" in page.text


def test_the_page_loads_nothing_from_elsewhere(page: Page) -> None:
    assert page.values("src") == []
    elsewhere = [
        (tag, attrs["href"])
        for tag, attrs in page.elements
        if str(attrs.get("href", "#"))[0] != "#"
    ]
    assert {(tag, str(href).split(":")[0]) for tag, href in elsewhere} == {
        ("link", "data"),
        ("a", "https"),
    }
    style = re.findall(r"<style>.*?</style>", html_report(instructions()), re.DOTALL)
    assert not re.search(r"url\(|@import", "".join(style))


def test_the_verdict_is_first_and_every_comparison_is_in_a_table(page: Page) -> None:
    text = page.text
    assert text.index("Limits") < text.index("One row is one point")
    assert "With freezer-skip-exited, freezing user space takes " in text
    rows = [attrs for tag, attrs in page.elements if tag == "tr" and attrs.get("data-verdict")]
    expected = [(c.variant, c.metric, c.verdict) for c in rich().result.asked_for]
    assert [(row["data-variant"], row["data-verdict"]) for row in rows] == [
        one[::2] for one in expected
    ]
    bodies = [attrs["data-metric"] for tag, attrs in page.elements if tag == "tbody" and attrs]
    metrics = dict.fromkeys(metric for _, metric, _ in expected)
    assert bodies[: len(metrics)] == list(metrics)


def test_every_ratio_is_a_row_of_the_forest_plot_in_words(page: Page) -> None:
    # The plot of a variant has its rows by metric.
    found, variant, metric = [], "", ""
    for _, attrs in page.elements:
        if "forest" in str(attrs.get("class")):
            variant = str(attrs["data-variant"])
        elif attrs.get("class") == "rows":
            metric = str(attrs["data-metric"])
        elif attrs.get("class") == "f":
            found.append((variant, metric, attrs["data-verdict"]))
    expected = [
        (variant, c.metric, c.verdict)
        for variant in ("freezer-skip-exited", "freezer-skip-nofreeze")
        for c in rich().result.asked_for
        if c.variant == variant and c.ratio
    ]
    assert found == expected


def test_every_chart_is_in_the_page_as_a_picture(page: Page) -> None:
    plots = [attrs for _, attrs in page.elements if attrs.get("class") == "plot"]
    drawn = [
        attrs for _, attrs in page.elements if str(attrs.get("class", "")).startswith("canvas")
    ]
    # The forest plots are elements of the page. Those of which a script shows one are all there
    # without it.
    charts = [chart for chart in all_charts(rich()) if not chart.name.startswith("forest")]
    assert sorted(str(plot["aria-label"]) for plot in plots) == sorted(
        chart.about for chart in charts
    )
    assert len(plots) > len([g for g in page.values("id") if g.startswith("chart-")])
    assert len(drawn) >= len(plots)
    used = {href for href in page.values("href") if href.startswith("#m-")}
    assert used <= {f"#{name}" for name in page.values("id")}


def test_the_posting_leads_to_its_thread(page: Page) -> None:
    reference = rich().reference
    assert reference is not None
    assert f"https://lore.kernel.org/all/{reference.source.message_id}/" in page.values("href")


def test_every_section_is_present_with_its_tables_and_the_command(page: Page) -> None:
    titles = (
        "Growth",
        "Published figures",
        "Every sample",
        "Effect of each patch",
        "Where the time goes",
        "How it was measured",
        "Repeat it",
        rich().result.command,
        "growth of freezing user space with zombies",
        "effect of each patch on freezing user space",
        "gcc (Debian 12.2.0-14+deb12u1)",
    )
    assert [title for title in titles if title not in page.text] == []


@pytest.mark.parametrize("make", [rich, wall], ids=["rich", "wall"])
def test_the_page_is_small(make: Callable[[], Material]) -> None:
    assert len(html_report(make()).encode()) < 300_000


def test_pictures_and_tables_have_labels_for_screen_readers(page: Page) -> None:
    pictures = [attrs for _, attrs in page.elements if attrs.get("role") in ("img", "region")]
    assert len(pictures) > 10
    assert all(attrs.get("aria-label") for attrs in pictures)
    assert ("html", {"lang": "en"}) in page.elements
    assert all(
        attrs.get("scope") in ("col", "rowgroup") for tag, attrs in page.elements if tag == "th"
    )
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 2 for before, after in pairwise(levels))


def test_equal_material_gives_an_equal_page() -> None:
    assert html_report(wall()) == html_report(wall())


def test_markup_in_a_result_is_escaped() -> None:
    plain = instructions()
    bad = '</script><script>alert("x")</script><img src=x>'
    result = plain.result.model_copy(update={"question": bad, "command": bad, "notes": (bad,)})
    found = Page(html_report(replace(plain, result=result)))
    assert not [tag for tag, _ in found.elements if tag == "img"]
    assert "alert" in found.text
    assert found.wrong == []


def test_a_run_without_comparisons_has_a_page() -> None:
    plain = instructions()
    empty = plain.result.model_copy(update={"comparisons": (), "laws": ()})
    found = Page(html_report(Material(plain.name, empty, plain.workloads)))
    assert "nothing was compared" in found.text
    assert found.wrong == []


def test_the_wall_clock_shows_the_a_a_twin() -> None:
    text = Page(html_report(wall())).text
    assert "base against itself" in text
    assert "A/A" in text


def one_boot(clock: Clock) -> Material:
    return simulated(freezer(clock, boots=1, zombies=(0, 3000)), Noise(boot=0.002))


def disturbed() -> Material:
    lost = (shares("base", 2, 40, 2), shares("freezer-skip-exited", 30, 40, 30))
    notes = disturbance_notes(timing(*lost))
    assert len(notes) == 2
    return replace(wall(), result=wall().result.model_copy(update={"notes": tuple(notes)}))


@pytest.mark.parametrize(
    ("material", "further"),
    [
        (instructions(), ["--clock both"]),
        (one_boot("instructions"), ["--clock instructions --seeds 2", "--clock both"]),
        (one_boot("wall"), ["--clock wall --boots 2", "--clock both"]),
        (disturbed(), ["--clock wall --lost-limit 100%", "--clock both"]),
    ],
    ids=["many boots", "one seed", "one boot", "disturbed"],
)
def test_options_are_in_whole_commands_and_not_in_sentences(
    material: Material, further: list[str]
) -> None:
    page = Page(html_report(material))
    assert [
        text for text in (*page.prose, *page.values("title")) if re.search(r"(?<!\S)\(?--\w", text)
    ] == []
    command = material.result.command
    assert page.code[-2 - len(further) : -1] == [
        command,
        *(f"kteardown run freezer {one}" for one in further),
    ]
    assert "`" not in page.text
