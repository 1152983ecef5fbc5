"""What of a file can change a figure."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from contents import measured  # noqa: E402 (after the path to it)


def test_of_the_agents_makefile_only_what_decides_the_bytes_of_every_guests_agent() -> None:
    name = "agent/Makefile"
    text = (ROOT / name).read_text()
    assert measured(name, text.encode()).count(b"\n") >= 5
    other_agent = text.replace("SCRIPT :=", "# Of scripts.\nSCRIPT :=")
    assert measured(name, other_agent.encode()) == measured(name, text.encode())
    for old, new in (("-O2", "-O1"), ("-Wdate-time", ""), ("lib/*.c", "lib/[a-y]*.c")):
        changed = text.replace(old, new)
        assert changed != text
        assert measured(name, changed.encode()) != measured(name, text.encode())


def test_of_a_patch_only_its_changes() -> None:
    patch = b"Subject: a\n\ndiff --git a/f b/f\n+x\n"
    assert measured("a.patch", patch) == measured("a.patch", patch.replace(b"Subject: a", b"b"))
    assert measured("a.patch", patch) != measured("a.patch", patch.replace(b"+x", b"+y"))


def test_of_a_workload_not_its_texts() -> None:
    assert measured("w.toml", b'a = 1\nhelp = "x"\n') == measured("w.toml", b"a = 1\n")
    assert measured("w.toml", b"a = 1\n") != measured("w.toml", b"a = 2\n")
