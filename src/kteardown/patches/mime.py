"""The headers and the parts of a mail, read in time and memory that are proportional to its size.

The parser of the standard library compares each line with the boundaries of all parts around it,
and what it does with a header takes quadratic time. So it reads only headers here, of a limited
length, and never the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser

_MOST_HEADER_BYTES = 8_000
"""Of one header that is decoded. The standard permits lines of 998."""
_MOST_HEADERS_BYTES = 1_000_000
_MOST_PARTS = 1_000
_MOST_DEPTH = 8
_DECODED = (
    *("from", "date", "subject", "message-id", "in-reply-to", "references"),
    *("content-type", "content-disposition", "content-transfer-encoding"),
)
_LISTS = ("references",)
"""Headers of message ids, which are only searched: a long thread has long ones."""
_FIELD = re.compile(rb"(?:From |[!-9;-~]*+:|[\t ])[^\n]*\n?")
"""A line of the headers, as the standard library recognizes it."""
_PLAIN = ("", "7bit", "8bit", "binary")


@dataclass(frozen=True)
class MailPart:
    """A part of a mail that has no parts itself: its headers, and where its text is in the mail."""

    headers: Message
    mail: bytes
    start: int
    end: int

    def text(self) -> bytes:
        """Return the text as it was before it was encoded for transfer."""
        text = self.mail[self.start : self.end]
        if str(self.headers.get("Content-Transfer-Encoding", "")).strip().lower() in _PLAIN:
            return text
        self.headers.set_payload(text.decode("ascii", "surrogateescape"))
        decoded = self.headers.get_payload(decode=True)
        self.headers.set_payload("")
        return decoded if isinstance(decoded, bytes) else b""


def headers_of(mail: bytes, start: int = 0, end: int | None = None) -> tuple[Message, int]:
    """Return the headers of a mail, or of its part from ``start``, and where the text after them
    begins.

    Raises ValueError if there are more of them, or if one is longer, than any mail has.
    """
    end = len(mail) if end is None else end
    place = start
    while field := _FIELD.match(mail, place, end):
        place = field.end()
        if place - start > _MOST_HEADERS_BYTES:
            raise ValueError(f"its headers have more than {_MOST_HEADERS_BYTES:,} bytes")
    headers = BytesHeaderParser().parsebytes(mail[start:place])
    for name, value in headers.raw_items():
        most = _MOST_HEADERS_BYTES if name.lower() in _LISTS else _MOST_HEADER_BYTES
        if name.lower() in _DECODED and len(value) > most:
            raise ValueError(f"its header {name} has more than {most:,} bytes")
    for ending in (b"\n", b"\r\n"):
        if mail.startswith(ending, place, end):
            return headers, place + len(ending)
    return headers, place


def parts_of(mail: bytes) -> tuple[Message, list[MailPart]]:
    """Return the headers of a mail, and its parts without parts. Raises ValueError as
    ``headers_of``.

    And if it has more parts, or parts in parts, than any mail has.
    """
    headers, start = headers_of(mail)
    parts: list[MailPart] = []
    for part in _leaves(MailPart(headers, mail, start, len(mail)), 0):
        if len(parts) == _MOST_PARTS:
            raise ValueError(f"it has more than {_MOST_PARTS:,} parts")
        parts.append(part)
    return headers, parts


def _leaves(part: MailPart, depth: int) -> Iterator[MailPart]:
    if depth > _MOST_DEPTH:
        raise ValueError(f"it has parts in parts, more than {_MOST_DEPTH} deep")
    main = part.headers.get_content_maintype()
    kind = part.headers.get_content_type()
    boundary = part.headers.get_boundary() if main == "multipart" else None
    if main == "message" and kind != "message/delivery-status":
        yield from _leaves(_part(part, part.start, part.end), depth + 1)
    elif boundary:
        for start, end in _spans(part, boundary.encode("ascii", "surrogateescape")):
            inner = _part(part, start, end)
            if kind == "multipart/digest":
                inner.headers.set_default_type("message/rfc822")
            yield from _leaves(inner, depth + 1)
    else:
        yield part


def _part(outer: MailPart, start: int, end: int) -> MailPart:
    headers, text = headers_of(outer.mail, start, end)
    return MailPart(headers, outer.mail, text, end)


def _spans(outer: MailPart, boundary: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each part between lines with ``boundary`` begins and ends."""
    line = re.compile(rb"\n--" + re.escape(boundary) + rb"(--)?[ \t]*+\r?(?=\n|\Z)")
    start = 0
    # The line before the text ends with a newline, too.
    for match in line.finditer(outer.mail, max(outer.start - 1, 0), outer.end):
        end = match.start()
        if 0 < start <= end:
            yield start, end - outer.mail.endswith(b"\r", start, end)
        start = match.end() + 1
        if match[1]:
            return
    if 0 < start <= outer.end:
        yield start, outer.end
