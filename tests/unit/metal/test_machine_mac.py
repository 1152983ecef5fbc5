"""The signatures of the first process of a machine are those that the lab computes."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from kteardown.paths import data_dir
from kteardown_metal.console_records import mac_of

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
