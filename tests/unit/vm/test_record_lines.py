from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.vm import record_lines
from kteardown.vm.kernel_log import RecordsSeen
from kteardown.vm.record_lines import RecordLines, TooMuchError


@given(st.lists(st.binary(max_size=30)))
def test_lines_do_not_depend_on_the_chunks_in_which_they_arrive(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    received: list[bytes] = []
    lines = RecordLines(received.append, 0.0)
    for chunk in chunks:
        lines.feed(chunk)
    assert received == whole.split(b"\n")[:-1]
    assert lines.lines == whole.count(b"\n")
    assert lines.cut == len(whole.split(b"\n")[-1])


def seen(*lines: bytes) -> RecordsSeen:
    records = RecordLines(lambda _: None, 0.0)
    for line in lines:
        records.feed(line)
    return RecordsSeen(records.lines, records.bye, records.error, records.cut)


def test_a_bye_record_is_recognized() -> None:
    assert seen(b'{"type":"bye","trials":3}\n') == RecordsSeen(lines=1, bye=True)


def test_an_error_record_is_recognized_with_its_detail() -> None:
    assert seen(b'{"type":"error","detail":"no plan"}\n') == RecordsSeen(lines=1, error="no plan")


def test_other_records_that_contain_the_words_do_not_count() -> None:
    alive = b'{"type":"alive","trial":0,"detail":"says \\"bye\\""}\n'
    assert seen(alive, b'"bye"\n', b'{"x":"error"}\n') == RecordsSeen(lines=3)


def test_a_record_without_a_newline_is_cut() -> None:
    assert seen(b'{"type":"bye","trials":3}') == RecordsSeen(cut=25)


def test_a_record_that_never_ends_is_refused() -> None:
    """It arrives in single bytes: what is kept must not be copied with each."""
    lines = RecordLines(lambda _: None, 0.0)
    for _ in range(1 << 20):
        lines.feed(b"x")
    with pytest.raises(TooMuchError, match="a record of more than 1 MB"):
        lines.feed(b"x")


def test_a_guest_that_never_stops_writing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_lines, "_PORT_MB", 1)
    received: list[bytes] = []
    lines = RecordLines(received.append, 0.0)
    for _ in range(16):
        lines.feed((b"x" * 1023 + b"\n") * 64)
    with pytest.raises(TooMuchError, match="more than 1 MB of records"):
        lines.feed(b"\n")
    assert len(received) == 1025
