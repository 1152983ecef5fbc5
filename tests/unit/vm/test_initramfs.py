from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.vm.initramfs import (
    ArchiveEntry,
    archive,
    character_device,
    file,
    folder,
    pack,
    symlink,
)

_names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=40)


def read(data: bytes) -> list[ArchiveEntry]:
    """Parse every member up to the trailer, as the format's documentation describes it."""
    entries: list[ArchiveEntry] = []
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        field = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = field[1], field[6], field[11]
        name = data[at + 110 : at + 110 + name_size]
        assert name.endswith(b"\0")
        start = (at + 110 + name_size + 3) & ~3
        if name == b"TRAILER!!!\0":
            assert start == len(data)
            return entries
        entries.append(
            ArchiveEntry(
                name[:-1].decode(), mode, data[start : start + size], (field[9], field[10])
            )
        )
        at = (start + size + 3) & ~3


@given(st.lists(st.tuples(_names, st.binary(max_size=300), st.sampled_from([0o644, 0o755, 0o600]))))
def test_every_member_survives_writing_and_parsing(files: list[tuple[str, bytes, int]]) -> None:
    entries = [
        folder("a"),
        character_device("a/c", 5, 1),
        *(file(f"a/{n}", d, p) for n, d, p in files),
    ]
    assert read(archive(entries)) == entries


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_bytes(b"\x7fELF" + bytes(1000))
    first = pack(Entry(tmp_path) / "one", agent=agent, plan="kteardown-plan 1\n").read_bytes()
    agent.touch()
    agent.chmod(0o600)
    assert (
        pack(Entry(tmp_path) / "two", agent=agent, plan="kteardown-plan 1\n").read_bytes() == first
    )


def test_pack_contains_agent_plan_modules_and_console(tmp_path: Path) -> None:
    agent, module = tmp_path / "agent", tmp_path / "virtio_console.ko"
    agent.write_bytes(b"agent")
    module.write_bytes(b"module")
    members = {
        e.path: e
        for e in read(
            pack(Entry(tmp_path) / "i", agent=agent, plan="p\n", modules=[module]).read_bytes()
        )
    }
    assert members["init"].data == b"agent" and members["init"].mode == stat.S_IFREG | 0o755
    assert members["plan"].data == b"p\n"
    assert members["modules/virtio_console.ko"].data == b"module"
    assert stat.S_ISCHR(members["dev/console"].mode) and members["dev/console"].device == (5, 1)
    paths = list(members)
    assert paths.index("dev") < paths.index("dev/console")
    assert paths.index("modules") < paths.index("modules/virtio_console.ko")


def test_the_index_of_the_modules_is_beside_them(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    text = "builtin unix\nalias fs-ext4 jbd2 ext4\n"
    packed = pack(Entry(tmp_path) / "i", agent=agent, plan="", module_index=text)
    members = {e.path: e for e in read(packed.read_bytes())}
    assert members["modules/index"].data == text.encode()
    assert "modules" in members
    plain = pack(Entry(tmp_path) / "j", agent=agent, plan="")
    assert not any(e.path.startswith("modules") for e in read(plain.read_bytes()))


def test_programs_are_executable_files_in_bin(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(b"program")
    packed = pack(Entry(tmp_path) / "i", agent=program, plan="", programs=[program])
    members = {e.path: e for e in read(packed.read_bytes())}
    assert members["bin/busybox"].data == b"program"
    assert members["bin/busybox"].mode == stat.S_IFREG | 0o755
    assert "bin" not in {
        e.path for e in read(pack(Entry(tmp_path) / "j", agent=program, plan="").read_bytes())
    }


def test_a_missing_agent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        pack(Entry(tmp_path) / "i", agent=tmp_path / "missing", plan="")


def test_other_programs_can_unpack_the_archive(tmp_path: Path) -> None:
    archived = tmp_path / "archive"
    archived.write_bytes(archive([folder("d"), file("d/x", b"12345", 0o755)]))
    readers = {"cpio": ["-i", "--quiet", "-F"], "bsdtar": ["-xf"]}
    there = [tool for tool in readers if shutil.which(tool)]
    assert there, "install cpio, which kernel builds need as well"
    for tool in there:
        (tmp_path / tool).mkdir()
        subprocess.run([tool, *readers[tool], str(archived)], cwd=tmp_path / tool, check=True)
        assert (tmp_path / tool / "d/x").read_bytes() == b"12345"
        assert (tmp_path / tool / "d/x").stat().st_mode & 0o777 == 0o755


def test_links_are_unpacked_as_links(tmp_path: Path) -> None:
    first = file("a", b"12345")
    entries = [first, ArchiveEntry("b", first.mode, same_as="a"), symlink("c", "a")]
    (tmp_path / "archive").write_bytes(archive(entries))
    subprocess.run(["cpio", "-i", "--quiet", "-F", "archive"], cwd=tmp_path, check=True)
    assert (tmp_path / "b").samefile(tmp_path / "a") and (tmp_path / "b").read_bytes() == b"12345"
    assert (tmp_path / "c").readlink() == Path("a")
