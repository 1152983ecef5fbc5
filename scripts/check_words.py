"""Fails where a text uses a word that docs/glossary.md lists under "Words that are not used".

    check_words.py [PATHS]         files or folders; everything that git lists where none is named

Letters may be of either case, a word is a whole word (`_` ends one, as space does), and a phrase
may go on in the next line. `*` at the end of a word matches any ending. An article with an
adjective does not match in front of a noun such as "task".

Not searched: LICENSE, the glossary, recorded consoles and runs, data (svg, json, binary files),
lines of Markdown that begin with `>`, addresses, the kernel's own lines in patches, the test for
None in Python and Jinja, and what a commit id quotes: 0123456789ab ("subject of a commit").

A line that quotes the kernel or a mail says so in a comment, `words: quote`, at its end or alone on
the line before it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = "docs/glossary.md"
HEADING = "## Words that are not used"
SKIPPED = ("LICENSE", GLOSSARY, "tests/data/console", "tests/data/runs")
"""Files and folders that are not searched."""
DATA = {".svg", ".json", ".ndjson"}
MARK = "words: quote"

# Between two words of a phrase: spaces, `_` and `-`, or the end of a line and what begins a
# comment.
_GAP = r"(?:[ \t_-]+|[ \t]*\n[ \t]*(?:[#/*>+-]+[ \t]*)*)"
_ADDRESS = re.compile(r"https?://\S+")
_CITATION = re.compile(r'\b[0-9a-f]{12,40} \("[^"]*"\)')
_PYTHON = re.compile(r"\bis None\b")
_JINJA = re.compile(r"\{[%{].*?[%}]\}")
_MARKED_ALONE = re.compile(r"^[^\w]*words: quote[^\w]*$")


# An adjective used as a noun is not allowed; in front of a noun it is.
_NOUN = r"(?:task|process|thread|cgroup|group)(?:e?s)?(?![a-z0-9])"


@dataclass(frozen=True)
class Entry:
    """A word or phrase, and what to write instead."""

    word: str
    instead: str

    @property
    def pattern(self) -> str:
        """What it matches, in lower case; its ends are no part of it."""
        parts = [re.escape(part).replace(r"\*", "[a-z0-9]*") for part in self.word.lower().split()]
        noun = rf"(?!{_GAP}{_NOUN})" if parts[0] == "the" else ""
        return _GAP.join(parts) + noun


@dataclass(frozen=True)
class Found:
    """An occurrence."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text} -> {self.instead}"


class Words:
    """Every entry of the table, found in one pass over a text."""

    def __init__(self, entries: list[Entry]) -> None:
        # The longest first: of a phrase and a word that begins it, the phrase is reported.
        self._entries = sorted(entries, key=lambda entry: -len(entry.word))
        groups = "|".join(
            f"(?P<e{number}>{entry.pattern})" for number, entry in enumerate(self._entries)
        )
        self._pattern = re.compile(rf"(?<![a-z0-9])(?:{groups})(?![a-z0-9])", re.IGNORECASE)

    def search(self, path: str, text: str) -> Iterator[Found]:
        """Every occurrence in a file, in its order."""
        searched = "\n".join(_searched(path, text.split("\n")))
        for match in self._pattern.finditer(searched):
            entry = self._entries[int((match.lastgroup or "e0").removeprefix("e"))]
            line = searched.count("\n", 0, match.start()) + 1
            yield Found(path, line, " ".join(match[0].split()), entry.instead)


def entries(glossary: str) -> list[Entry]:
    """The table of the glossary. Raises ValueError where the text has none."""
    found = []
    for line in glossary.partition(HEADING)[2].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 2:
            found += [Entry(word, cells[1]) for word in re.findall(r"`([^`]+)`", cells[0])]
    if not found:
        raise ValueError(f"no table below {HEADING!r}")
    return found


def _searched(path: str, lines: list[str]) -> list[str]:
    """The lines of a file, empty where they are not searched: line numbers stay what they are."""
    of_kernel = _kernel_lines(lines) if path.endswith(".patch") else [False] * len(lines)
    kept = []
    for number, line in enumerate(lines):
        quoted = (
            of_kernel[number]
            or MARK in line
            or (number > 0 and _MARKED_ALONE.match(lines[number - 1]))
            or (path.endswith((".md", ".patch", ".mbox")) and line.startswith(">"))
        )
        kept.append("" if quoted else _without_names(path, line))
    return kept


def _without_names(path: str, line: str) -> str:
    """A line without what is not in our words: addresses, citations, the identity test of two
    languages."""
    for pattern in (_ADDRESS, _CITATION, _PYTHON):
        line = pattern.sub("", line)
    return (
        _JINJA.sub(lambda code: code[0].replace("none", ""), line) if path.endswith(".j2") else line
    )


def _kernel_lines(lines: list[str]) -> list[bool]:
    """Which lines of a patch are the kernel's: all of its diffs but what it adds."""
    found, inside = [], False
    for line in lines:
        # A mail ends in `-- ` and the version of git; the next one of an mbox begins after it.
        inside = (inside or line.startswith("diff --git ")) and line.rstrip() != "--"
        found.append(inside and (not line.startswith("+") or line.startswith("+++ ")))
    return found


def text_of(path: Path) -> str:
    """The text of a file, empty where it is data."""
    if path.suffix in DATA or not path.is_file():
        return ""
    content = path.read_bytes()
    if b"\0" in content:
        return ""
    return content.decode("utf-8", errors="replace")


def listed(root: Path, paths: list[str]) -> list[str]:
    """The files that git lists, new ones included, without those that are not searched."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--full-name", "--", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    names = sorted({name for name in done.stdout.split("\0") if name})
    return [
        name for name in names if not any(Path(name).is_relative_to(skipped) for skipped in SKIPPED)
    ]


def folder_of(path: str) -> str:
    """The folder by which occurrences are counted: two levels at most."""
    return "/".join(Path(path).parts[:-1][:2]) or "."


def main(paths: list[str]) -> int:
    """Print every occurrence in ``paths``, and how many there are in each folder."""
    words = Words(entries((ROOT / GLOSSARY).read_text(encoding="utf-8")))
    names = listed(ROOT, [str(Path(path).absolute()) for path in paths])
    found = [hit for name in names for hit in words.search(name, text_of(ROOT / name))]
    for hit in found:
        print(hit)
    for folder, count in sorted(Counter(folder_of(hit.path) for hit in found).items()):
        print(f"{count:6} in {folder}")
    print(f"words: {len(names)} files, {len(found)} words that {GLOSSARY} does not use")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
