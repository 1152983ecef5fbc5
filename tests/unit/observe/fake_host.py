"""Folders that look like /proc and /sys of a machine, and texts that no kernel writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hypothesis import strategies as st

from kteardown_observe.collector.files import Host, Malformed

WORDS = (b" ", b"\n", b"\t", b":", b"(", b")", b"->", b"-", b",", b"/", b"0", b"12", b"-1")
NAMES = (
    b"kB",
    b"max",
    b"POSIX",
    b"FLOCK",
    b"shared:",
    b" - ",
    b"Uid:",
    b"TCP:",
    b"S",
    b"#",
    b"\xff",
)
TEXTS = st.one_of(st.binary(), st.lists(st.sampled_from(WORDS + NAMES)).map(b"".join))
"""Any bytes, and texts of what the files of /proc are made of."""
HOSTILE_COMM = b"\x1b[2J\n) Z 1 (\xff\xe2\x80\xae"
"""A name of a process with codes of a terminal, a line end, brackets and letters from right to
left."""


def only_malformed(parse: Callable[[bytes], object], text: bytes) -> None:
    """Parse a text; the parser may raise only the error that it declares."""
    try:
        parse(text)
    except Malformed:
        return


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, by their paths."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def stat(
    pid: int,
    comm: bytes = b"sh",
    state: str = "S",
    parent: int = 1,
    group: int = 1,
    session: int = 1,
    flags: int = 0,
    threads: int = 1,
) -> bytes:
    """Return the text of /proc/PID/stat."""
    head = f"{state} {parent} {group} {session} 0 -1 {flags} 0 0 0 0 1 2 0 0 20 0 {threads} 0 5 0 0"
    return b"%d (%s) %s" % (pid, comm, head.encode()) + b" 0" * 30 + b"\n"


def status(uid: int = 1000, **lines: int) -> bytes:
    """Return the text of /proc/PID/status, with lines such as VmSwap."""
    text = f"Name:\tsh\nTracerPid:\t{lines.pop('TracerPid', 0)}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
    text += f"SigQ:\t{lines.pop('SigQ', 0)}/100\n"
    return (text + "".join(f"{name}:\t{value:8} kB\n" for name, value in lines.items())).encode()


def process(folder: Path, pid: int, stat_text: bytes, status_text: bytes = b"") -> Path:
    """Make the folder of a process, and return it."""
    comm = stat_text[stat_text.find(b"(") + 1 : stat_text.rfind(b")")]
    files = {"stat": stat_text, "status": status_text or status(), "comm": comm + b"\n"}
    write(folder / str(pid), files)
    return folder / str(pid)


def link(folder: Path, targets: Mapping[str, str]) -> None:
    """Make links that point nowhere, as those of descriptors and namespaces."""
    for name, target in targets.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def host_of(folder: Path) -> Host:
    """Return a host with ``proc`` and ``sys`` in a folder."""
    for name in ("proc", "sys"):
        (folder / name).mkdir(exist_ok=True)
    host = Host(str(folder / "proc"), str(folder / "sys"))
    host.allow(60)
    return host
