"""The parts of mails: those that the standard library finds, in linear time."""

from __future__ import annotations

import email
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.patches import mime

MAILS = Path(__file__).parents[2] / "data" / "mail"
TEXTS = st.text("ab=\n-\r\té", max_size=40)
ENCODINGS = {"7bit": "", "base64": "YQ==\n", "quoted-printable": "=61=\n"}


@st.composite
def forms(draw: st.DrawFn, depth: int = 0) -> bytes:
    """A part with its headers: a text, an attached mail, or parts in parts."""
    kind = draw(st.sampled_from(["text", "text", "mail", "mixed"] if depth < 4 else ["text"]))
    if kind == "text":
        encoding = draw(st.sampled_from(sorted(ENCODINGS)))
        text = ENCODINGS[encoding] + draw(TEXTS)
        head = f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n"
        return f"{head}\n{text}".encode()
    if kind == "mail":
        return b"Content-Type: message/rfc822\n\nSubject: attached\n" + draw(forms(depth + 1))
    boundary = draw(st.sampled_from(["x", "=_x", "x--", "x(1)"])) + str(depth)
    parts = draw(st.lists(forms(depth + 1), max_size=3))
    line = f"\n--{boundary}".encode()
    end = draw(st.sampled_from([line + b"--\n", line + b"-- \t\r\nafter\n", b"", b"\n"]))
    before = f'Content-Type: multipart/mixed;\n boundary="{boundary}"\n\nbefore'.encode()
    return before + b"".join(line + b"\n" + part for part in parts) + end


def of_library(raw: bytes) -> list[tuple[str, object]]:
    """The types and decoded texts of the parts that the standard library finds."""
    parts = (part for part in email.message_from_bytes(raw).walk() if not part.is_multipart())
    texts = [(part.get_content_type(), part.get_payload(decode=True)) for part in parts]
    return [one for one in texts if one[0].startswith("text/")]


def of_ours(raw: bytes) -> list[tuple[str, object]]:
    parts = [(part.headers.get_content_type(), part.text()) for part in mime.parts_of(raw)[1]]
    return [one for one in parts if one[0].startswith("text/")]


@given(forms())
def test_the_parts_are_those_of_the_standard_library(part: bytes) -> None:
    raw = b"From: a@example.org\nSubject: [PATCH] x\n" + part
    assert of_ours(raw) == of_library(raw)


@pytest.mark.parametrize(
    "file", sorted(MAILS.rglob("*.mbox")) + sorted(MAILS.rglob("*.eml")), ids=str
)
def test_the_parts_of_the_mails_of_tests_too(file: Path) -> None:
    for mail in file.read_bytes().split(b"\nFrom "):
        raw = mail.partition(b"\n")[2]
        assert of_ours(raw) == of_library(raw)


def test_the_text_of_a_mail_without_headers_is_all_of_it() -> None:
    raw = b"diff --git a/x b/x\nSubject: no header\n"
    headers, parts = mime.parts_of(raw)
    assert (headers.keys(), [part.text() for part in parts]) == ([], [raw])


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        (b"Subject: " + 9_000 * b"x" + b"\n\n", "its header Subject has more than 8,000 bytes"),
        (b"To: a@b\n" * 200_000 + b"\n", "its headers have more than 1,000,000 bytes"),
        (
            b"Content-Type: multipart/mixed; boundary=x\n\n" + 2_000 * b"--x\n\ntext\n",
            "more than 1,000 parts",
        ),
        (b"Content-Type: message/rfc822\n\n" * 20, "more than 8 deep"),
    ],
)
def test_what_no_mail_has_is_an_error(raw: bytes, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        mime.parts_of(raw)
