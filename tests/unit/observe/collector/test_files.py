"""Reading a part of a file: what is hostile neither blocks nor takes memory."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_observe.collector.files import (
    NAME_MOST,
    Host,
    Malformed,
    Unreadable,
    Visit,
    number_in,
    printable,
    shown,
    spread,
)


@pytest.fixture
def host() -> Host:
    return Host()


def reason(host: Host, path: Path | str) -> str:
    with pytest.raises(Unreadable) as caught:
        host.read(str(path))
    return caught.value.reason


def test_a_pipe_does_not_block(host: Host, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert reason(host, tmp_path / "pipe") == "error"
    with pytest.raises(Unreadable):
        list(host.lines(str(tmp_path / "pipe"), 1000))


def test_a_link_is_not_followed(host: Host, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    assert reason(host, tmp_path / "link") == "error"


def test_a_device_is_not_read(host: Host) -> None:
    assert reason(host, "/dev/zero") == "error"


def test_a_file_that_is_not_there(host: Host, tmp_path: Path) -> None:
    assert reason(host, tmp_path / "nothing") == "not there"
    assert reason(host, "/proc/self/mem") == "error", "it fails with EIO"
    assert reason(host, tmp_path) == "error", "a folder"
    assert reason(host, "a\0b") == "error"


def test_a_file_without_an_end(host: Host, tmp_path: Path) -> None:
    with (tmp_path / "endless").open("wb") as file:
        file.truncate(1 << 40)
    data, whole = host.read_part(str(tmp_path / "endless"), 100_000)
    assert len(data) == 100_000 and not whole
    lines = host.lines(str(tmp_path / "endless"), 1 << 40)
    assert list(lines) == [] and not lines.whole


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n" * 3, [b""] * 3),
        (b"x" * 40_000 + b"\n" + b"y" * 60_000 + b"\n", [b"x" * 40_000, b"y" * 60_000]),
    ],
)
def test_lines(host: Host, tmp_path: Path, content: bytes, expected: list[bytes]) -> None:
    (tmp_path / "file").write_bytes(content)
    lines = host.lines(str(tmp_path / "file"), 1 << 20)
    assert list(lines) == expected and lines.whole


def test_lines_end_at_the_bound_and_when_the_time_is_used(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"line\n" * 100_000)
    lines = host.lines(str(tmp_path / "file"), 100_000)
    assert 0 < len(list(lines)) < 100_000 and not lines.whole
    host.end_s = 0.0
    lines = host.lines(str(tmp_path / "file"), 1 << 20)
    assert not list(lines) and not lines.whole


@given(st.binary())
def test_a_name_is_harmless_on_a_terminal(name: bytes) -> None:
    for text in (printable(name), shown(os.fsdecode(name))):
        assert text.isprintable() and len(text) <= 2 * NAME_MOST
        assert "\n" not in json.dumps(text) and json.dumps(text).isascii()


def test_codes_of_a_terminal_are_replaced() -> None:
    assert printable(b"\x1b[31m\r\n\xff a\xc3\xa4\xe2\x80\xae") == "?[31m??? a\xe4?"
    assert len(printable(b"x" * 1000)) == NAME_MOST


@given(st.binary() | st.integers().map(lambda number: str(number).encode()))
def test_numbers(text: bytes) -> None:
    try:
        assert str(number_in(text)).encode().lstrip(b"-0") == text.lstrip(b"-0")
    except Malformed:
        assert not text.isdigit() or len(text) > 20


@given(st.integers(0, 3000))
def test_an_order_has_each_index_once_and_begins_everywhere(length: int) -> None:
    order = list(spread(length))
    assert sorted(order) == list(range(length))
    if length >= 100:
        quarters = {index * 4 // length for index in order[:20]}
        assert quarters == {0, 1, 2, 3}


def test_a_visit_stops_when_the_time_is_used(host: Host) -> None:
    visit = Visit(host, range(10), 10)
    for entity in visit:
        if entity == 4:
            host.end_s = 0.0
    assert visit.seen == 5 and not visit.complete()


def test_a_visit_with_entities_that_are_gone_is_complete(host: Host, tmp_path: Path) -> None:
    visit = Visit(host, range(2), 2)
    for _ in visit:
        assert visit.read(str(tmp_path / "gone")) is None
    assert visit.failed == {"not there": 2} and visit.complete()


def test_a_visit_with_an_entity_that_may_not_be_read_is_not_complete(host: Host) -> None:
    visit = Visit(host, range(1), 1)
    for _ in visit:
        visit.fail(Unreadable("permission", "EACCES on /proc/1/maps"))
    assert visit.seen == 1 and not visit.complete()


def test_a_share_of_the_time(host: Host) -> None:
    host.allow(1000)
    end_s = host.narrow(0.5)
    assert host.end_s < end_s and not host.spent()


def test_a_visit_on_a_busy_machine_ends_and_keeps_what_it_has(host: Host) -> None:
    host.allow(1000, 0.05)
    visit = Visit(host, range(100), 100)
    for _ in visit:
        time.sleep(0.02)
        visit.read_ok += 1
    assert 0 < visit.read_ok < 100 and not visit.complete()


def test_names_of_processes(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "comm").write_bytes(b"\x1b[2J\n\n")
    assert host.process_name(5) == "?[2J?[5]"
    assert host.process_name(6) == "[6]"
