"""What the cache has for guests and QEMU is checked before it is used, and made again if it is
damaged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.progress import SilentReporter
from kteardown.vm import seal
from kteardown.vm.agent import build_agent
from kteardown.vm.qemu_library import build_library
from unit.vm.few_workloads import copy_agent


class Notes(SilentReporter):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def make(folder: Path, content: bytes) -> Path:
    made = folder / "made"
    made.write_bytes(content)
    seal.publish(made, folder / "file")
    return folder / "file"


def test_a_file_is_intact_until_it_changes(tmp_path: Path) -> None:
    reporter = Notes()
    assert not seal.is_intact(tmp_path / "file", reporter)
    file = make(tmp_path, b"content")
    assert seal.is_intact(file, reporter)
    assert make(tmp_path, b"another") == file and seal.is_intact(file, reporter)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".digests", "file", "file"]
    assert reporter.notes == []
    file.write_bytes(b"anothar")
    assert not seal.is_intact(file, reporter)
    assert [str(file) in note and "damaged" in note for note in reporter.notes] == [True]


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0" * 64, b"0 0\n"])
def test_without_its_digest_a_file_is_not_intact(tmp_path: Path, damage: bytes) -> None:
    file = make(tmp_path, b"content")
    (tmp_path / ".digests" / "file").write_bytes(damage)
    assert not seal.is_intact(file, Notes())


def test_a_truncated_agent_and_a_damaged_library_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, reporter = copy_agent(tmp_path / "sources"), Notes()
    monkeypatch.setattr("kteardown.vm.agent.data_dir", lambda kind: sources)
    agent = build_agent("x86_64", cache=tmp_path, reporter=reporter)
    library = build_library("main_loop", cache=tmp_path, reporter=reporter)
    whole = [file.read_bytes() for file in (agent, library)]
    agent.write_bytes(whole[0][: len(whole[0]) // 2])
    library.write_bytes(whole[1].replace(b"\x7fELF", b"\x7fELG"))
    assert build_agent("x86_64", cache=tmp_path, reporter=reporter) == agent
    assert build_library("main_loop", cache=tmp_path, reporter=reporter) == library
    assert [file.read_bytes() for file in (agent, library)] == whole
    assert [note.split(" in the cache")[0] for note in reporter.notes] == [str(agent), str(library)]
    subprocess.run([agent, "--help"], check=True, capture_output=True)
