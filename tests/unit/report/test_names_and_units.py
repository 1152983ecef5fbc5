"""Metrics have names where people read, their keys in one place, and the unit that the clock
gives."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser

import pytest
from rich.console import Console

from kteardown.judge.metrics import metric_name, name_of
from kteardown.report.chart_model import Plot
from kteardown.report.formats import text
from kteardown.report.formats.html import all_charts
from kteardown.report.material import Material
from outputs import result_in
from unit.report.contexts import rich, wall
from unit.report.rendered import TEXTS
from unit.simulation import WORKLOADS

_KEY = re.compile(r"\b[a-z0-9_]+_(?:ns|us|kb|count|share)\b(?! p\d)")
_UNIT_OF_TIME = re.compile(r"(?<![a-z_])(?:ns|us|ms)\b")


class _Words(HTMLParser):
    """Collects what a page shows, without scripts and styles, and its labels for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")
        self.words += [value or "" for name, value in attrs if name in ("aria-label", "title")]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def _html(material: Material) -> str:
    page = _Words()
    page.feed(TEXTS["html"](material))
    return "\n".join(page.words)


def _text(material: Material) -> str:
    out = io.StringIO()
    console = Console(file=out, width=400, force_terminal=False)
    text.report(material, console)
    return out.getvalue()


READ: Mapping[str, Callable[[Material], str]] = {
    "text": _text,
    "html": _html,
    **{name: TEXTS[name] for name in ("markdown", "comment", "cover", "reply")},
}


@pytest.mark.parametrize("make", [rich, wall], ids=["instructions", "wall"])
def test_a_mail_to_others_has_no_keys(make: Callable[[], Material]) -> None:
    assert not _KEY.findall(READ["reply"](make()))


@pytest.mark.parametrize("form", sorted(READ.keys() - {"reply"}))
@pytest.mark.parametrize("make", [rich, wall], ids=["instructions", "wall"])
def test_a_key_is_only_in_parentheses_after_the_name(
    form: str, make: Callable[[], Material]
) -> None:
    # The lines that begin a report have keys only.
    shown = re.sub(r"worse: .*?; \d+ points(?: \(\w+\))?", "", " ".join(READ[form](make()).split()))
    found = set(_KEY.findall(shown))
    assert {"freeze_user_ns", "freeze_remaining_ns"} <= found
    for key in found:
        name = metric_name(WORKLOADS, "zombies", key)
        if key == "freeze_cgroup_ns":
            name = "freezing the cgroup"
        assert shown.count(f"{name} ({key})") == len(re.findall(rf"\b{key}\b", shown)), key


@pytest.mark.parametrize("form", READ)
def test_on_the_instruction_clock_nothing_is_a_time(form: str) -> None:
    material = rich()
    shown = READ[form](Material(material.name, material.result, material.workloads))
    assert _UNIT_OF_TIME.findall(shown) == []
    assert "instructions" in shown


@pytest.mark.parametrize(("make", "unit"), [(rich, "instructions"), (wall, "ns")])
def test_the_json_has_the_unit_of_each_value(make: Callable[[], Material], unit: str) -> None:
    fields = result_in(TEXTS["json"](make()))
    for part in ("comparisons", "metric_verdicts", "laws"):
        assert fields[part]
        assert {row["value_unit"] for row in fields[part] if row["unit"] == "ns"} == {unit}, part


@pytest.mark.parametrize("make", [rich, wall], ids=["instructions", "wall"])
def test_charts_have_names_and_the_unit_of_the_clock(make: Callable[[], Material]) -> None:
    material = make()
    ours = Material(material.name, material.result, material.workloads, None, material.evidence)
    for chart in all_charts(ours):
        axis = chart.drawn.y.title if isinstance(chart.drawn, Plot) else ""
        words = " ".join((chart.title, chart.about, axis, *chart.notes))
        assert not _KEY.findall(words), chart.name
        if material.result.clock == "instructions" and not chart.name.startswith("flame"):
            assert not _UNIT_OF_TIME.findall(words), chart.name


def test_a_metric_without_a_name_has_its_key_in_words() -> None:
    assert name_of("freeze_user_ns", None) == "freeze user time"
    assert name_of("pool_kb", None) == "pool"
    assert metric_name({}, "mine", "wakeup_ns", "p99") == "wakeup time (p99)"
