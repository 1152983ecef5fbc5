"""A result whose texts are hostile, in every format: nothing of them acts on a terminal or a web
page."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kteardown.model.faults import Fault, VoidTrials
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result, Uncompared
from kteardown.report.console import TextConsole
from kteardown.report.formats import comment, markdown, text
from kteardown.report.material import Material
from outputs import result_in
from unit.report.contexts import rich
from unit.report.rendered import TEXTS, written

VARIANT = "freezer-skip-exited"
HARMLESS = "harmless"
FRAGMENTS = (
    *(
        "\x1b]0;title\x07",
        "\x1b[2J",
        "\x9b31m",
        "\x7f",
        "\x00",
        "\r",
        "\r\n",
        "\n",
        "\n\n",
        "\t",
        "\x85",
    ),
    *(
        "\u202ereversed",
        "\u2066",
        "\u2028",
        "[/bold]",
        "[red]",
        ":smile:",
        "\\",
        "`",
        "```",
        "````\n",
        "~~~",
    ),
    *(
        "@torvalds",
        "é@x",
        "-@x",
        "a@example.org",
        "#1",
        "x/y#2",
        "GH-3",
        "!4",
        "![x](https://evil/t.png)",
    ),
    *(
        "[the fix](https://evil)",
        "[a]: https://evil",
        "[a][b]",
        "[1](https://evil)",
        "https://evil.org/x",
    ),
    *(
        "www.evil.org",
        "<img src=x>",
        "</details>",
        "</summary>",
        "<!--",
        "<https://evil>",
        "&lt;",
        "&#64;x",
    ),
    *(
        "\n# FORGED\n",
        "# FORGED",
        "> ",
        "- ",
        "    ",
        "|",
        "*",
        "**",
        "_x_",
        "$x$",
        '"',
        "'",
        ",",
        ";",
    ),
    *("=1+1", "+1", "-1", "@SUM(1)", "`kteardown x` ", "x", "]]>", "\ufffe"),
)
HOSTILE = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), min_size=1, max_size=8).map(
    "".join
)
FREE = {
    *(
        "experiment",
        "question",
        "command",
        "notes",
        "reason",
        "message",
        "excerpt",
        "subject",
        "subjects",
    ),
    *("release", "source", "compiler", "detail", "refused", "machine"),
}
"""The keys of a result whose values are texts from outside."""
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")
LIVE = re.compile(
    r"(?<![A-Za-z0-9_])@[A-Za-z0-9]|[\w.]@[\w-]+\.\w|#\d|\bGH-\d|(?<!\w)!\d|://|www\.",
    re.ASCII | re.I,
)


@cache
def whole() -> Result:
    """A result with every part that a report shows: faults, lost trials, ablations,
    distributions."""
    fault = Fault(
        kernel=VARIANT,
        kind="panic",
        status="suspected",
        message="m",
        points=(),
        boots=(1,),
        of=2,
        base_boots=0,
        base_of=2,
        excerpt=("one", "two"),
    )
    point: dict[str, ParamValue] = {"zombies": 1}
    lost = Uncompared(variant=VARIANT, workload="zombies", point=point, reason="r")
    void = VoidTrials(
        kernel=VARIANT, workload="zombies", point=point, status="void", detail="d", count=1
    )
    parts = {"faults": (fault,), "uncompared": (lost,), "voids": (void,), "notes": ("n",)}
    return rich().result.model_copy(update={**parts, "machine": {"os": "o", "cpu": {"model": "m"}}})


def _with(value: Any, words: str, free: bool = False) -> Any:
    """Return ``value`` with ``words`` in each text from outside, and in the name of the variant."""
    if isinstance(value, dict):
        return {
            _with(key, words): _with(of, words, free or key in FREE) for key, of in value.items()
        }
    if isinstance(value, list | tuple):
        return [_with(of, words, free) for of in value]
    if isinstance(value, str):
        return words if free else value.replace(VARIANT, words)
    return value


def hostile(words: str) -> Material:
    """Return a material whose texts are ``words``."""
    result = Result.model_validate(_with(whole().model_dump(), words))
    plain = rich()
    workloads = {
        name: known.model_copy(
            update={
                "metrics": {
                    key: metric.model_copy(update={"help": words, "name": words})
                    for key, metric in known.metrics.items()
                }
            }
        )
        for name, known in plain.workloads.items()
    }
    samples = tuple(
        replace(s, kernel=s.kernel.replace(VARIANT, words)) for s in plain.evidence.samples
    )
    stacks = tuple(
        replace(s, kernel=s.kernel.replace(VARIANT, words)) for s in plain.evidence.stacks
    )
    evidence = replace(plain.evidence, samples=samples, stacks=stacks)
    return replace(plain, name=words, result=result, workloads=workloads, evidence=evidence)


def every_token(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from every_token(token.children or [])


def parsed(text: str) -> list[Token]:
    return list(
        every_token(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text))
    )


def _words(tokens: list[Token]) -> str:
    """Return the text of a paragraph, as a service looks for mentions in it: not in code."""
    return "".join("`" if token.type == "code_inline" else token.content for token in tokens)


@cache
def headings(form: str) -> int:
    return sum(token.type == "heading_open" for token in parsed(written(hostile(HARMLESS), form)))


def check_markdown(made: str, form: str) -> None:
    """Check that ``made`` has no link, picture or mention, and no HTML that the format does not
    write."""
    tokens = parsed(made)
    kinds = {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "fence_open", "s_open"}
    assert sum(token.type == "heading_open" for token in tokens) == headings(form)
    for token in tokens:
        if token.type == "html_block":
            assert re.fullmatch(
                r"<details><summary>[^<>]*</summary>\n?|</details>\n?", token.content
            )
        elif token.type == "html_inline":
            assert token.content in ("<sub>", "</sub>")
        shown = (
            html.unescape(token.content)
            if token.type == "html_block"
            else _words(token.children or [])
        )
        assert not LIVE.search(re.sub(r"https://lore\.kernel\.org/\S+", "", shown)), shown
    assert sum(
        "<details>" in token.content for token in tokens if token.type == "html_block"
    ) == sum("</details>" in token.content for token in tokens if token.type == "html_block")


@settings(max_examples=12, deadline=None)
@given(HOSTILE)
@example("".join(FRAGMENTS))
def test_no_format_has_a_text_that_acts(words: str) -> None:
    material = hostile(words)
    made = {form: written(material, form) for form in TEXTS if form != "html"}
    for form, content in made.items():
        assert not RAW.search(content), form
    assert result_in(made["json"])["notes"] == [words]
    Xml.fromstring(made["junit"])
    check_markdown(made["markdown"], "markdown")
    check_markdown(made["comment"], "comment")
    assert len(made["comment"]) <= comment.COMMENT_LIMIT
    out = TextConsole(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    text.report(material, out)
    assert isinstance(out.file, io.StringIO)
    assert not RAW.search(out.file.getvalue())


class Tags(HTMLParser):
    """Counts the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts = self.pictures = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.pictures += tag == "img"


def test_the_page_has_no_control_characters_and_no_further_script() -> None:
    page = written(hostile("".join((*FRAGMENTS, "<script>x</script>"))), "html")
    assert not RAW.search(page)
    tags = Tags(page)
    assert (tags.scripts, tags.pictures) == (Tags(written(hostile(HARMLESS), "html")).scripts, 0)


def test_a_console_cannot_end_its_block() -> None:
    fault = (
        whole()
        .faults[0]
        .model_copy(update={"excerpt": ("`````", "</details>", "# Merged by @x", "a\n# b")})
    )
    result = whole().model_copy(update={"faults": (fault,), "command": "kteardown run x\n# FORGED"})
    material = replace(rich(), result=result)
    assert "``````\n`````\n</details>\n# Merged by @x\na\n# b\n``````" in written(
        material, "comment"
    )
    assert "    kteardown run x\n    # FORGED\n" in written(material, "comment")
    assert "    # Merged by @x\n    a\n    # b\n" in written(material, "markdown")
    for form in ("comment", "markdown"):
        check_markdown(written(material, form), form)


@pytest.mark.parametrize(
    ("outside", "shown"),
    [
        ("-61.0% [-61.2, -60.8], freeze_user_ns", "-61.0% [-61.2, -60.8], freeze_user_ns"),
        ("use `kteardown show workload zombies`", "use `kteardown show workload zombies`"),
        (
            "https://lore.kernel.org/all/a-1@example.org/",
            "https://lore.kernel.org/all/a-1@example.org/",
        ),
        ("freezer@2 of git:~/x@v6 on CPU 0", "freezer@2 of git:\\~/x@v6 on CPU 0"),
        ("[zombies:123] `x` *y* _z_ a|b", "\\[zombies:123] \\`x\\` \\*y\\* \\_z\\_ a|b"),
        ("@x, #1, https://a.b, c@d.e", "@&#8203;x, #&#8203;1, https:&#8203;//a.b, c@&#8203;d.e"),
        ("a < b & c > d\ne", "a &lt; b &amp; c &gt; d e"),
    ],
)
def test_only_what_markdown_would_read_is_escaped(outside: str, shown: str) -> None:
    assert markdown.plain(outside) == shown


def test_columns_are_as_wide_as_what_is_shown() -> None:
    material = hostile("a\x1b[2J")
    out = TextConsole(file=io.StringIO(), width=300)
    text.report(replace(material, reference=None), out)
    assert isinstance(out.file, io.StringIO)
    kernels = out.file.getvalue().partition("\nKernels\n")[2].splitlines()
    assert any(r"a\u001b[2J  a\u001b[2J" in line for line in kernels)
