"""Who may answer for a series."""

from __future__ import annotations

import pytest

from kteardown.errors import InputError
from kteardown.flows.mail_series.person import NOBODY, PLACEHOLDER, parse_person


@pytest.mark.parametrize(
    "text", ["Jane Doe <jane@example.org>", "Jörg O'Neil-Doe Jr. <j+k@mail.example.org>"]
)
def test_a_name_and_an_address_are_a_person(text: str) -> None:
    assert str(parse_person(f" {text} ")) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Jane Doe",
        "jane@example.org",
        "<jane@example.org>",
        "Jane <jane>",
        "Jane <jane@localhost>",
        PLACEHOLDER,
        "Doe, Jane <jane@example.org>",
        "Jane <jane@example.org> <b@example.org>",
        "Jane <jane@example.org>\nBcc: <a@b.org>",
        "Jane\x1b <jane@example.org>",
        "Jane <ja ne@example.org>",
    ],
)
def test_nobody_and_what_is_no_header_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--author"):
        parse_person(text)


def test_the_placeholder_is_nobody() -> None:
    assert str(NOBODY) == PLACEHOLDER
