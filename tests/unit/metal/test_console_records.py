"""Records on a serial line: what is read of logs of any size and with any damage."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.paths import data_dir
from kteardown_metal import console_records
from kteardown_metal.console_records import key_of_boot, mac_of, read_logs
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


PROGRAM = r"""
#include <stdio.h>
#include <string.h>

#include "machine/sha256.h"

int main(void)
{
	static char key[64], line[1 << 17];
	unsigned char mac[SHA256_BYTES];
	int i, length, first;

	while (scanf("%d %d", &length, &first) == 2 && getchar() && fread(key, 1, 16, stdin) == 16) {
		if (fread(line, 1, length, stdin) != (size_t)length)
			return 1;
		hmac_sha256((unsigned char *)key, 16, line, first, line + first, length - first, mac);
		for (i = 0; i < 16; i++)
			printf("%02x", mac[i]);
		puts("");
	}
	return 0;
}
"""


def test_lines_of_any_length_have_the_mac_of_python(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    agent = data_dir("agent")
    sources = [str(tmp_path / "main.c"), str(agent / "machine/sha256.c")]
    subprocess.run(
        ["gcc", "-O1", "-Wall", "-Werror", "-iquote", agent, "-o", tmp_path / "mac", *sources],
        check=True,
    )
    rng = random.Random(1)
    # Lengths around those of the blocks, and of long lines.
    cases = [
        (rng.randbytes(16), rng.randbytes(length)) for length in [*range(200), 4095, 4096, 65537]
    ]
    asked = b"".join(
        b"%d %d\n%s%s" % (len(text), rng.randint(0, len(text)), key, text) for key, text in cases
    )
    printed = subprocess.run(
        [tmp_path / "mac"], input=asked, capture_output=True, check=True
    ).stdout
    assert printed.split() == [mac_of(key, text) for key, text in cases]
