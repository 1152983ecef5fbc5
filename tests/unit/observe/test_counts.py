"""The counts of a machine are read, and nothing in them is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown_observe.counts import MOST_BYTES, parse_counts, read_counts
from unit.observe.documents import counted, document


def test_a_document_is_read(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    zombies = counted(7, ("bash[1]", 4), ("sh[2]", 3))
    file.write_text(json.dumps(document(counts={"zombies": zombies})))
    read = read_counts(file)
    assert read.host.possible_cpus == 32
    assert read.counts["zombies"].amount("number") == 7
    assert read.counts["zombies"].amount("largest") == 4


def test_without_owners_the_largest_is_none() -> None:
    content = json.dumps(document(counts={"zombies": counted(7)})).encode()
    assert parse_counts(content, "it").counts["zombies"].amount("largest") == 0


def test_why_a_count_is_missing_is_known() -> None:
    missing = [{"counts": ["posix_timers", "vmas"], "reason": "permission", "detail": "x"}]
    read = parse_counts(json.dumps(document(missing=missing)).encode(), "it")
    assert read.why_missing == {"posix_timers": "permission", "vmas": "permission"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps(document()).encode()[:-20],
        json.dumps(document(kteardown_counts=2)).encode(),
        json.dumps(document(kteardown_counts="1")).encode(),
        json.dumps(document(counts={"zombies": {"number": -1}})).encode(),
        json.dumps(document(counts={"zombies": {"number": 1e300}})).encode(),
        json.dumps(document(counts={"zombies": {"number": "many"}})).encode(),
        json.dumps(document(counts={"\x1b[2J": counted(1)})).encode(),
        json.dumps(document(counts={"zombies": counted(1, ("x" * 10_000, 1))})).encode(),
        json.dumps(document(machine={"release": "6.12", "possible_cpus": 0})).encode(),
        json.dumps(document(counts={"zombies": {"number": True}})).encode(),
        json.dumps(document(counts={"zombies": {"number": "5000"}})).encode(),
        json.dumps(document(**{"counts": {"a\nb": counted(1)}})).encode(),
        json.dumps(document(kteardown_counts="x" * 100_000)).encode(),
        b" " * (MOST_BYTES + 1),
    ],
)
def test_what_is_no_document_is_one_error(content: bytes) -> None:
    with pytest.raises(InputError) as error:
        parse_counts(content, "counts.json")
    assert error.value.message.startswith("counts.json")
    assert "\n" not in error.value.message
    assert len(error.value.message) < 500


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_counts(tmp_path / "none.json")


def test_a_machine_that_could_not_be_read_has_no_facts() -> None:
    nothing = dict.fromkeys(document()["machine"])
    for machine in (None, {}, nothing):
        read = parse_counts(json.dumps(document(machine=machine)).encode(), "it")
        assert read.host.possible_cpus is None


def test_a_count_is_nearly_complete_if_few_were_not_read() -> None:
    nearly = {**counted(7, complete=False), "seen": 48, "of": 49}
    partly = {**counted(7, complete=False), "seen": 10, "of": 49}
    counts = {"zombies": nearly, "vmas": partly}
    read = parse_counts(json.dumps(document(counts=counts)).encode(), "it")
    assert read.counts["zombies"].is_nearly_complete
    assert not read.counts["vmas"].is_nearly_complete


def test_keys_of_a_later_collector_are_ignored() -> None:
    assert parse_counts(json.dumps(document(more={"a": 1})).encode(), "it").counts == {}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(key=st.sampled_from(sorted(document())), value=_json)
def test_any_value_is_read_or_refused(key: str, value: object) -> None:
    content = json.dumps(document(**{key: value})).encode()
    try:
        parse_counts(content, "it")
    except InputError as error:
        assert error.message.startswith("it")
