"""One mail: its headers, and the patches in it as ``git mailinfo`` reads them."""

import email
import email.errors
import email.header
import email.policy
import email.utils
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import git

DIFF_START = re.compile(rb"^(?:diff --git |--- \S[^\n]*\n\+\+\+ \S)", re.MULTILINE)
_CHANGED = re.compile(rb"^[+\-@].*", re.MULTILINE)
_TAGS = re.compile(r"^(?:\s*\[[^\]]*\])+")
_REPLY = re.compile(r"^\s*(?:re|aw|antw|sv|vs|fw|fwd|回复|答复)\s*(?:\[\d+\])?\s*[::]", re.IGNORECASE)
_COUNT = re.compile(r"\b(\d+)/(\d+)\b")
_REVISION = re.compile(r"(?:\b|PATCH|RFC)v(\d+)(?:\.(\d+))?\b", re.IGNORECASE)
_POSTED = re.compile(r"PATCH|RFC", re.IGNORECASE)
_BASE = re.compile(r"^base-commit: ([0-9a-f]{7,64})\s*$", re.MULTILINE)
_NO_DATE = (TypeError, ValueError, IndexError, OverflowError)
_HEADERS = ("From", "Date", "Subject", "Message-ID")


@dataclass(frozen=True)
class Diff:
    """One patch of a mail: its author, date and message, and the text from the first ``---`` or ``diff``."""

    author: str
    date: str
    title: str
    """The subject without the tags in brackets; of an attached mail, its own."""
    message: bytes
    text: bytes


@dataclass(frozen=True)
class Mail:
    """One mail. ``number`` and ``total`` are those of [PATCH n/m], or 1 and 1 without them."""

    subject: str
    title: str
    """The subject without the tags in brackets."""
    sender: str
    message_id: str
    date: str
    number: int
    total: int
    revision: tuple[int, int]
    """(3, 0) for [PATCH v3]."""
    is_reply: bool
    is_posted: bool
    """Whether the tags have PATCH or RFC, as those of a patch that a person sends."""
    body: str
    diffs: tuple[Diff, ...]
    place: str = ""
    """The file that it is in, as the user knows it, and its number there."""

    @property
    def is_cover(self) -> bool:
        """Whether this is the cover letter of a series."""
        return self.number == 0 and self.is_posted and not self.is_reply

    @property
    def base_commit(self) -> str:
        """The commit that ``git format-patch --base`` named; empty if it named none."""
        found = _BASE.search(self.body)
        return found[1] if found else ""

    @property
    def moment(self) -> float:
        """The date of the mail in seconds, 0 if it has none that can be read."""
        with suppress(*_NO_DATE):
            return email.utils.parsedate_to_datetime(self.date).timestamp()
        return 0.0


def parse(raw: bytes, name: str, place: str = "") -> Mail:
    """Read one mail. ``name`` is its title if it has no subject, as a bare diff."""
    if b"\n" not in raw.replace(b"\r\n", b""):
        raw = raw.replace(b"\r\n", b"\n")
    first, _, rest = raw.partition(b"\n")
    message = email.message_from_bytes(rest if first.startswith(b"From ") else raw)
    subject = _decoded(message.get("Subject", ""))
    bare = _REPLY.sub("", subject).strip()
    tags = _TAGS.match(bare)
    tag = tags[0] if tags else ""
    count = _COUNT.search(tag)
    revision = _REVISION.search(tag)
    texts = list(_texts(message))
    name = Path(name).stem
    return Mail(
        subject=subject or name,
        title=bare.removeprefix(tag).strip() or name,
        sender=email.utils.parseaddr(_decoded(message.get("From", "")))[1].lower(),
        message_id=str(message.get("Message-ID", "")).strip().strip("<>"),
        date=" ".join(str(message.get("Date", "")).split()),
        number=_number(count[1]) if count else 1,
        total=max(_number(count[2]), 1) if count else 1,
        revision=(_number(revision[1]), _number(revision[2] or "0")) if revision else (1, 0),
        is_reply=bool(_REPLY.match(subject)),
        is_posted=bool(_POSTED.search(tag)),
        body="\n".join(text.decode(errors="replace") for _, text in texts),
        diffs=tuple(_diffs(message, texts)),
        place=place,
    )


def _number(digits: str) -> int:
    return int(digits[:9])  # Python refuses to convert thousands of digits.


def _texts(message: Message) -> Iterator[tuple[Message, bytes]]:
    """Yield the parts of a mail that people read or apply, each with its decoded text."""
    for part in message.walk():
        named = str(part.get_filename() or "").endswith((".patch", ".diff", ".txt"))
        kind = part.get_content_type()
        if part.is_multipart() or not (named or kind in ("text/plain", "text/x-patch", "text/x-diff")):
            continue
        decoded = part.get_payload(decode=True)
        if isinstance(decoded, bytes):
            yield part, decoded


def _diffs(message: Message, texts: list[tuple[Message, bytes]]) -> Iterator[Diff]:
    """Yield the patches of a mail; one that is both in its text and attached is one patch."""
    seen: set[bytes] = set()
    for part, text in texts:
        if not DIFF_START.search(text.replace(b"\r\n", b"\n")):
            continue
        diff = _mailinfo(_as_mail(message, part, text))
        # Without the signature of a mail, "-- ".
        lines = hashlib.sha256()
        for line in _CHANGED.finditer(diff.text):
            if line[0].rstrip() not in (b"--", b"---"):
                lines.update(line[0].rstrip() + b"\n")
        if DIFF_START.search(diff.text) and lines.digest() not in seen:
            seen.add(lines.digest())
            yield diff


def _as_mail(message: Message, part: Message, text: bytes) -> bytes:
    """Return a mail of one part with the decoded ``text``, and the headers of the whole mail."""
    if part is not message and text.startswith((b"From ", b"From: ", b"Subject: ", b"Date: ")):
        return text.partition(b"\n")[2] if text.startswith(b"From ") else text  # An attached mail.
    lines = [f"{name}: {message[name]}" for name in _HEADERS if message[name]]
    # Its charset, and whether its lines are flowed. What was encoded for transfer is decoded.
    lines += [f"Content-Type: {part['Content-Type']}"] if part["Content-Type"] else []
    header = "\n".join(lines).encode(errors="surrogateescape")
    return header + b"\nContent-Transfer-Encoding: 8bit\n\n" + text


def _mailinfo(mail: bytes) -> Diff:
    """Return what ``git mailinfo`` makes of a mail with one part."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        for recode in ("-u", "-n"):  # The second if the charset is unknown.
            argv = ("mailinfo", "-k", recode, "--quoted-cr=strip", "message", "patch")
            done = git.run(*argv, cwd=Path(work), data=mail)
            if done.ok:
                break
        else:
            return Diff("", "", "", b"", b"")
        facts = dict(
            line.split(": ", 1) for line in done.out.decode(errors="replace").split("\n") if ": " in line
        )
        author = f"{facts.get('Author', '')} <{facts.get('Email', '')}>".strip()
        message, text = (Path(work, name).read_bytes() for name in ("message", "patch"))
        title = _TAGS.sub("", _REPLY.sub("", facts.get("Subject", ""))).strip()
        return Diff("" if author == "<>" else author, facts.get("Date", ""), title, message, text)


def _decoded(value: object) -> str:
    """Return a header with its encoded words decoded, on one line."""
    text = str(value)
    with suppress(LookupError, ValueError, email.errors.HeaderParseError):
        text = str(email.header.make_header(email.header.decode_header(text)))
    return " ".join(text.encode(errors="surrogateescape").decode(errors="replace").split())


def day(date: str) -> str:
    """Return the date of a mail as 2026-11-22, or as it is if it cannot be read."""
    with suppress(*_NO_DATE):
        return datetime.date(email.utils.parsedate_to_datetime(date)).isoformat()
    return date
