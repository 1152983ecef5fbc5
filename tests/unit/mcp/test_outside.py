"""What comes from outside is marked, visible and bounded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_mcp import outside

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)


@given(JSON)
def test_a_small_value_is_whole_but_for_what_acts(value: object) -> None:
    shown = outside.value(value)
    assert shown["from_outside"] is True
    assert "is_cut" not in shown or len(json.dumps(value)) > 1000
    assert "\x1b" not in str(shown["value"])


@pytest.mark.parametrize("code", [0xAD, 0x200B, 0x2060, 0xFE0F, 0xFEFF, 0xE0041, 0xE007F])
def test_no_text_has_characters_without_width(code: int) -> None:
    text = f"Fix{chr(code)} it"
    assert chr(code) not in outside.page(text)["text"]
    assert json.loads(f'"{outside.page(text)["text"]}"') == text


@given(JSON, st.integers(60, 400))
def test_no_value_is_longer_than_its_limit(value: object, most: int) -> None:
    big = [value] * 300
    assert len(json.dumps(outside.value(big, most=most)["value"])) <= max(most, 60)


def test_what_is_left_out_is_found_by_its_place() -> None:
    whole = {"runs": [{"points": list(range(100_000)), "text": "x" * 100_000}]}
    shown = outside.value(whole)
    assert shown["is_cut"]
    assert shown["value"]["runs"][0]["points"][-1]["left_out"].endswith("to 99999")
    assert outside.value(whole, "runs/0/points/4711")["value"] == 4711
    part = outside.value(whole, "/runs/0/points", start=99_000)["value"]
    assert (part[0], part[499], part[500]) == (99_000, 99_499, {"left_out": "items 99500 to 99999"})
    assert outside.value(whole, "/runs/0/points", start=-2)["value"] == [99_998, 99_999]


def test_a_long_text_is_read_in_parts() -> None:
    text = "".join(map(chr, range(0x3400, 0x8400)))
    read = ""
    while len(read) < len(text):
        part = outside.value({"a": {"b": text}}, "a/b", start=len(read))
        assert (part["start"], part["characters"]) == (len(read), len(text))
        assert part["value"]
        read += part["value"]
    assert read == text


def test_a_slash_in_a_name_is_written_as_in_a_json_pointer() -> None:
    assert outside.value({"files": {"/etc/a~1": 3}}, "files/~1etc~1a~01")["value"] == 3


@pytest.mark.parametrize("at", ["x", "runs/1", "runs/-1", "runs/x", "runs/0/a/b"])
def test_a_place_that_is_not_there_is_named(at: str) -> None:
    with pytest.raises(outside.NoSuchPlaceError, match="there is no"):
        outside.value({"runs": [{"a": 1}]}, at)


def test_keys_are_from_outside_too() -> None:
    assert outside.value({"\x1b[2J": 1})["value"] == {"\\u001b[2J": 1}


def test_a_page_has_its_beginning_and_a_log_its_end() -> None:
    text = "begin" + "\x1b" + "x" * 100 + "end"
    marked = {"from_outside": True, "characters": 114}
    assert outside.page(text, 10) == {**marked, "text": "begin\\u001", "start": 0}
    assert outside.page(text, 10, 109) == {**marked, "text": "xxend", "start": 109}
    assert outside.page(text, 10, 200) == {**marked, "text": "", "start": 200}
    assert outside.end_of(text, 4) == {**marked, "text": "xend", "start": 110}
    assert outside.page("short") == {"from_outside": True, "text": "short"}


def test_a_quote_is_one_short_line() -> None:
    assert outside.quoted("a\nb\x1b") == repr("a b\\u001b")
    assert len(outside.quoted("a" * 10_000)) < 140
