"""The cover letter of a series, ``0000-cover-letter.md``: its subject, its text and its bases."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kteardown.errors import InputError, failing
from kteardown.kernels.series import Selection

FILE = "0000-cover-letter.md"
_MOST_BYTES = 100_000
"""git takes the text as one word of a command."""
_HEADER = re.compile(r"([A-Za-z-]++):[ \t]*+(.*)")
_TAGS = re.compile(r"\[([^\]]*+)\][ \t]*+(.*)", re.DOTALL)
_COUNT = re.compile(r"[ ]?\b\d{1,9}/\S++")
_BASE = re.compile(
    r"base: v(?P<version>\d++(?:\.\d++)++) "
    r"\((?P<described>Debian linux-source-(?P<release>\d++\.\d++))\)"
    r"(?:, backport (?P<backport>\S+))?"
)


@dataclass(frozen=True)
class NamedBase:
    """A source to which a series applies, as its cover letter names it."""

    version: str
    """Such as 7.3.4."""
    described: str
    """Such as ``Debian linux-source-7.3``."""
    source: str
    """Such as ``debian:7.3``."""
    backport: str
    """The name of its folder; empty if the series has only one text."""

    @property
    def name(self) -> str:
        """Return the version as a tag of the kernel."""
        return f"v{self.version}"

    @property
    def age(self) -> tuple[int, ...]:
        """Return the numbers of the version, by which a newer one is greater."""
        return tuple(map(int, self.version.split(".")))

    def is_called(self, text: str) -> bool:
        """Return whether a user means this base: v7.3.4, 7.3.4, 7.3, debian:7.3."""
        release = self.source.partition(":")[2]
        return text in (self.name, self.version, release, f"v{release}", self.source)


@dataclass(frozen=True)
class CoverLetter:
    """What a cover letter has. ``prefix`` is that of all subjects, such as ``RFC PATCH``."""

    prefix: str
    title: str
    is_numbered: bool
    """Whether its subject has a count, as [PATCH 0/1]."""
    text: str
    """In Markdown, without the subject and the bases."""
    bases: tuple[NamedBase, ...]


def letter_of(series: Selection) -> CoverLetter:
    """Return the cover letter of a series, which is beside its patches or its backports.

    Raises InputError.
    """
    folder = series.files[0].parent
    for place in (folder, folder.parent):
        file = place / FILE
        if file.is_file():
            with failing(f"{file}: cannot be read", hint="name a series that you can read."):
                text = file.read_bytes()
            if len(text) > _MOST_BYTES:
                raise InputError(
                    f"{file} has more than {_MOST_BYTES // 1000} kB",
                    hint="leave in the cover letter what a reviewer needs.",
                )
            return parse(text.decode(errors="replace"), str(file))
    raise InputError(
        f"{folder} has no cover letter {FILE}",
        hint="write one; `kteardown new series NAME` makes a skeleton.",
    )


def parse(text: str, called: str = FILE) -> CoverLetter:
    """Return the cover letter with this text, without what only the lab reads in it.

    Raises InputError if it has no subject.
    """
    lines = text.splitlines()
    headers: dict[str, str] = {}
    while lines and (match := _HEADER.fullmatch(lines[0])):
        headers[match[1].lower()] = match[2].strip()
        del lines[0]
    tags = _TAGS.fullmatch(headers.get("subject", ""))
    if tags is None or not tags[2].strip():
        raise InputError(
            f"{called} has no subject",
            hint="begin it with a line such as: Subject: [PATCH 0/2] exit: what changes",
        )
    while lines and not lines[-1].strip():
        del lines[-1]
    named: list[str] = []
    while lines and lines[-1].startswith("base:"):
        named.insert(0, lines.pop())
    prefix = " ".join(_COUNT.sub("", tags[1]).split())
    return CoverLetter(
        prefix=prefix or "PATCH",
        title=tags[2].strip(),
        is_numbered=bool(_COUNT.search(tags[1])),
        text="\n".join(lines).strip("\n"),
        bases=_bases(named),
    )


def _bases(lines: Sequence[str]) -> tuple[NamedBase, ...]:
    """Return the bases that these lines name, the oldest first; other lines are left out."""
    matches = [match for match in map(_BASE.fullmatch, lines) if match]
    bases = (
        NamedBase(
            match["version"],
            match["described"],
            f"debian:{match['release']}",
            match["backport"] or "",
        )
        for match in matches
    )
    return tuple(sorted(bases, key=lambda base: base.age))
