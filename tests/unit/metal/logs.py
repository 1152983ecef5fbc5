"""The recorded log of six boots of an emulated machine, and logs that are made of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.model.record import BootEnd
from kteardown.rundir.directory import RunDir
from kteardown_metal import bundle
from kteardown_metal.console_records import Consoles, LoggedBoot, key_of_boot, mac_of, named

DATA = Path(__file__).parents[2] / "data" / "bundle"
TOKEN = (DATA / "run" / "on").read_text().strip().removeprefix("exported:")
SECRET = bytes.fromhex((DATA / "run" / bundle.SECRET).read_text())


def key_of(token: str, number: int) -> bytes | None:
    return key_of_boot(SECRET, token, number) if token == TOKEN else None


def panic_of(number: int) -> bytes:
    """Return what a kernel prints that panics, with the log that it then prints again."""
    name = named(TOKEN, number, key_of_boot(SECRET, TOKEN, number))
    return (
        "[   12.000000] Kernel panic - not syncing: Fatal exception\n"
        f"[   12.000001] Command line: console=ttyS0 kteardown.boot={name}\n"
    ).encode()


@cache
def boots() -> tuple[bytes, ...]:
    """Return the part of the log of each boot, in the order in which they were booted."""
    found = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )
    assert len(found) == 6
    return tuple(found)


def changed(line: bytes, change: Callable[[bytes], bytes], attempt: bytes = b"") -> bytes:
    """Return a line with another record, or of another attempt, signed with the key of its boot."""
    head, record = line.rstrip().split(b" {", 1)
    boot, old, number = head.split(b" ")[2:5]
    return signed(int(boot), attempt or old, number, change(b"{" + record))


def signed(boot: int, attempt: bytes, number: bytes, record: bytes, key: bytes = b"") -> bytes:
    text = b"%s %d %s %s " % (TOKEN.encode(), boot, attempt, number)
    mac = mac_of(key or key_of_boot(SECRET, TOKEN, boot), text + record)
    return b"@kteardown %s%s %s\n" % (text, mac, record)


def again(text: bytes, change: Callable[[bytes], bytes], attempt: bytes = b"") -> bytes:
    """Return the log of a boot with changed records."""
    lines = text.splitlines(keepends=True)
    return b"".join(
        changed(line, change, attempt) if line.startswith(b"@kteardown ") else line
        for line in lines
    )


def recorded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    folder = tmp_path / "runs" / "20261127-000000-freezer"
    shutil.copytree(DATA / "run", folder)
    (folder / "console").mkdir()
    return RunDir(folder)


def imported(folder: Path, *logs: bytes, chosen: tuple[int, int] | None = None) -> str:
    """Import logs, and return what is said of them; ``chosen``: a boot, and the number of its
    log."""
    files = []
    for number, log in enumerate(logs):
        files.append(folder / f"serial-{number}.log")
        files[-1].write_bytes(log)
    asked = ["--boot", f"{chosen[0]}={files[chosen[1]]}"] if chosen else []
    done = CliRunner().invoke(app, ["import", *map(str, files), *asked], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def outcomes(run: RunDir) -> dict[int, str]:
    return {record.boot: record.outcome for record in run.records() if isinstance(record, BootEnd)}


def boots_in(text: bytes) -> Sequence[LoggedBoot]:
    """Return the boots that are found in ``text``."""
    consoles = Consoles(key_of)
    for line in text.splitlines():
        consoles.add(line)
    return list(consoles.boots.values())
