"""Put the tables and figures of the results into the texts that show them.

- A page shows a table between two comments, which a reader does not see:

      <!-- results: NAME TABLE -->
      <!-- end of results -->

  The page of each result has all its tables (``pages``). The table ``postings overview`` has a
  line for each posting.
- A cover letter or the message of a patch is read as it is, so it has no such lines. The claim says
  below which paragraph the table is (``shown``), and the paragraphs there that were spliced are
  replaced.
- The figures of a sentence are found by its words, which the claim has (``sentences``).

A line below each table has the commit and the day that it was measured: the figures are those of
that commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hunts
import tables
from claims import RESULTS, Below, Claim, Sentence, TableSpec
from replications import overview

PAGES = ("*.md", "docs/*.md", "findings/*.md")
_BLOCK = re.compile(
    r"^<!-- results: (?P<claim>\S+) (?P<table>\S+) -->\n(?P<shown>.*?)^<!-- end of results -->$",
    re.DOTALL | re.MULTILINE,
)
_MISSING = "**Not measured**"
_MEASURED = "Measured with `kteardown "
# A number, an interval, or the word of a verdict or law.
_FIGURE = r"([-+]?\d+(?:,\d{3})*(?:\.\d+)?%?|\[[^\[\]]{1,40}\]|[a-z]+)"
_PLACEHOLDER = re.compile(r"(\{[^{}]*\})")


@dataclass
class Spliced:
    """The texts as they should be, by path, and what is wrong in a way that no splicing can
    correct.

    ``places`` has the texts that show something of each claim.
    """

    texts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    places: dict[str, set[str]] = field(default_factory=dict)

    def changed(self, root: Path) -> list[str]:
        """The texts that are not as they should be."""
        return [
            name for name, text in self.texts.items() if (root / name).read_text("utf-8") != text
        ]


def splice(root: Path, claims: Sequence[Claim]) -> Spliced:
    """Every text with the tables and figures of ``claims``; nothing is written."""
    found = Spliced()
    shown = {
        (claim.name, name): paragraphs(claim, spec)
        for claim in claims
        for name, spec in claim.spec.tables.items()
    }
    shown[("postings", "overview")] = [overview(root, claims)]
    _into_pages(root, found, {**shown, **hunts.tables(root)})
    for claim in claims:
        for name, spec in claim.spec.tables.items():
            for place in spec.shown:
                _edit(root, found, claim, place.file, _below(place, shown[claim.name, name]))
        for sentence in claim.spec.sentences:
            _edit(root, found, claim, sentence.file, _with_figures(sentence, claim))
    return found


def paragraphs(claim: Claim, spec: TableSpec) -> list[str]:
    """A table, and how it was measured."""
    again = f"`make figures NAME={claim.name}`"
    if claim.measured is None:
        return [f"{_MISSING} on this text yet: {again}."]
    try:
        return [tables.table(spec, claim), tables.caption(claim)]
    except tables.NoFigure as error:
        return [f"{_MISSING}: {error}; {again}."]


def _into_pages(
    root: Path, found: Spliced, tables: Mapping[tuple[str, str], Sequence[str]]
) -> None:
    """Splice every page with comments."""
    for file in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        page, text = file.relative_to(root).as_posix(), file.read_text("utf-8")

        def block(match: re.Match[str], page: str = page) -> str:
            key = match["claim"], match["table"]
            if key not in tables:
                found.problems.append(f"{page}: there is no table {key[1]} in {RESULTS}/{key[0]}")
                return match[0]
            found.places.setdefault(key[0], set()).add(page)
            body = "\n\n".join(tables[key])
            return f"<!-- results: {key[0]} {key[1]} -->\n{body}\n<!-- end of results -->"

        made = _BLOCK.sub(block, text)
        if len(re.findall(r"^<!-- results: ", text, re.MULTILINE)) != len(_BLOCK.findall(text)):
            found.problems.append(
                f"{page}: a block of results has no end, or its first line is not complete"
            )
        if made != text or _BLOCK.search(text):
            found.texts[page] = made


def _edit(
    root: Path, found: Spliced, claim: Claim, pattern: str, edit: Callable[[str], str]
) -> None:
    """Change the one text that a claim names; a place that is not there is a problem."""
    files = sorted(root.glob(pattern))
    if len(files) != 1:
        found.problems.append(
            f"{RESULTS}/{claim.name}: {pattern} names {len(files)} files, not one"
        )
        return
    name = files[0].relative_to(root).as_posix()
    text = found.texts.get(name) or files[0].read_text("utf-8")
    found.places.setdefault(claim.name, set()).add(name)
    try:
        found.texts[name] = edit(text)
    except ValueError as error:
        found.texts[name] = text
        found.problems.append(f"{name}: {error} ({RESULTS}/{claim.name})")


def _below(place: Below, shown: Sequence[str]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        parts = text.split("\n\n")
        at = [n for n, part in enumerate(parts) if f"\n{part}".find(f"\n{place.below}") >= 0]
        if len(at) != 1:
            raise ValueError(
                f"{len(at)} paragraphs, not one, have a line that begins with {place.below!r}"
            )
        first = last = at[0] + 1
        while last < len(parts) and _is_spliced(parts[last]):
            last += 1
        return "\n\n".join([*parts[:first], *shown, *parts[last:]])

    return edit


def _is_spliced(paragraph: str) -> bool:
    return paragraph.startswith(("| ", "    ", _MISSING, _MEASURED))


def _with_figures(sentence: Sentence, claim: Claim) -> Callable[[str], str]:
    """Replace the figures of one sentence, wherever its lines are broken."""
    parts = _PLACEHOLDER.split(sentence.text)

    def edit(text: str) -> str:
        pattern = "".join(
            _FIGURE if part.startswith("{") else r"\s+".join(map(re.escape, part.split(" ")))
            for part in parts
        )
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            raise ValueError(f"{len(found)} sentences, not one, read: {sentence.text}")
        if claim.measured is None:
            return text
        match, made = found[0], text
        for number, words in reversed(list(enumerate(_placeholders(parts), 1))):
            value = tables.figure(words, claim, sentence.unit)
            if not re.fullmatch(_FIGURE, value):
                raise ValueError(f"{{{words}}} is {value!r}, which a sentence cannot have")
            made = made[: match.start(number)] + value + made[match.end(number) :]
        return made

    return edit


def _placeholders(parts: Sequence[str]) -> Iterator[str]:
    return (part.strip("{}") for part in parts if part.startswith("{"))
