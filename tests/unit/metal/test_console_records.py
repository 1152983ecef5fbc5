"""Records on a serial line: what is read of logs of any size and with any damage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown_metal import console_records
from kteardown_metal.console_records import key_of_boot, read_logs
from unit.metal.logs import TOKEN, boots, boots_in, key_of, panic_of


@given(st.data())
def test_a_line_of_which_one_copy_is_damaged_is_there(data: st.DataObject) -> None:
    text = boots()[0]
    middle = text.index(b'{"type":"sent"')
    first, second = text[:middle], text[middle:]
    positions = data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=30))
    damaged = bytearray(first)
    for position in sorted(set(positions), reverse=True):
        if data.draw(st.booleans()):
            del damaged[position]
        else:
            damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    whole, hurt = (boots_in(part) for part in (text, bytes(damaged) + second))
    (boot,) = [boot for boot in hurt if boot.boot == 0 and boot.lines]
    missing = (
        {0: whole[0].lines[0]} if 0 not in boot.lines else {}
    )  # The only line that is sent once.
    assert {**boot.lines, **missing} == whole[0].lines


def test_a_log_of_any_size_is_read_in_parts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stream:
        first, rest = re.split(rb"(?<=\}\}\n)", boots()[0], maxsplit=1)
        stream.write(first + b"x" * (1 << 22) + b"\0\xff\n" + b"@kteardown " * 20000 + b"\n" + rest)
    found = read_logs([log], key_of)
    assert [len(boot.lines) for boot in found.boots.values() if boot.lines] == [
        len(boots_in(boots()[0])[0].lines)
    ]
    assert found.damaged > 0
    kept = [line for boot in found.boots.values() for line in boot.console]
    assert kept and max(map(len, kept)) == 2000


def test_what_a_log_may_hold_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_records, "_MOST_BYTES", 1000)
    (tmp_path / "log").write_bytes(boots()[0])
    with pytest.raises(InputError, match="MB of boots"):
        read_logs([tmp_path / "log"], key_of)


def test_only_what_is_kept_of_a_log_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_records, "_MOST_BYTES", 50_000)
    monkeypatch.setattr(console_records, "_CONSOLE_LINES", 100)
    (tmp_path / "noise").write_bytes((b"x" * 99 + b"\n") * 10_000)
    assert read_logs([tmp_path / "noise"] * 20, key_of).bytes == 100 * 99
    claimed = [panic_of(number) + (b"x" * 99 + b"\n") * 200 for number in range(6)]
    (tmp_path / "log").write_bytes(b"".join(claimed))
    with pytest.raises(InputError, match="MB of boots"):
        read_logs([tmp_path / "log"], key_of)


def test_no_file_of_a_bundle_has_the_key_of_another_boot(tmp_path: Path) -> None:
    secret = bytes(32)
    keys = {key_of_boot(secret, TOKEN, number) for number in range(100)} | {
        key_of_boot(secret, "0" * 16, 0)
    }
    assert len(keys) == 101
    assert secret not in keys
