from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.script.root import GuestNode, GuestTree, add_root
from kteardown.vm.initramfs import ArchiveEntry, archive


def member(
    name: str, kind: bytes = tarfile.REGTYPE, *, to: str = "", data: bytes = b"", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, to, len(data), mode
    return info, data


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes], how: Any = "w") -> Path:
    with tarfile.open(path, how) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def entries(root: Path) -> dict[str, ArchiveEntry]:
    tree = GuestTree()
    add_root(tree, root)
    return {entry.path: entry for entry in tree.entries()}


@pytest.mark.parametrize("how", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_is_packed_as_it_is(how: str, tmp_path: Path) -> None:
    root = packed(
        tmp_path / "root.tar",
        member("./usr", tarfile.DIRTYPE, mode=0o755),
        member("./usr/bin/su", data=b"x" * 4096, mode=0o4755),
        member("./bin", tarfile.SYMTYPE, to="usr/bin"),
        member("usr/bin/other", tarfile.LNKTYPE, to="./usr/bin/su"),
        member("/etc/name", data=b"n"),
        how=how,
    )
    found = entries(root)
    assert (
        list(found)
        == sorted(found)
        == ["bin", "etc", "etc/name", "usr", "usr/bin", "usr/bin/other", "usr/bin/su"]
    )
    assert found["bin"].data == b"usr/bin" and stat.S_ISLNK(found["bin"].mode)
    assert (
        found["usr/bin/other"].data == b"x" * 4096
        and found["usr/bin/su"].same_as == "usr/bin/other"
    )
    assert stat.S_IMODE(found["usr/bin/su"].mode) == 0o4755
    assert found["etc/name"].data == b"n"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("../x", data=b"")], "file name that is not allowed"),
        ([member("a/../../x")], "file name that is not allowed"),
        ([member("a" * 300)], "file name that is not allowed"),
        ([member("l", tarfile.SYMTYPE, to="/"), member("l/init", data=b"x")], "/l is not a folder"),
        ([member("f"), member("f/x")], "/f is not a folder"),
        ([member("d", tarfile.DIRTYPE), member("d")], "both as a file and as a folder"),
        ([member("l", tarfile.LNKTYPE, to="none")], "comes before the link"),
        ([member("l", tarfile.LNKTYPE, to="../../etc/shadow")], "file name that is not allowed"),
        ([member("l", tarfile.SYMTYPE, to="")], "refers to nothing"),
    ],
)
def test_hostile_archives_are_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        entries(packed(tmp_path / "root.tar", *members))


def test_devices_and_what_the_agent_has_are_left_out_and_noted(tmp_path: Path) -> None:
    root = packed(
        tmp_path / "root.tar",
        member("dev", tarfile.DIRTYPE),
        member("dev/console", tarfile.CHRTYPE),
        member("x", tarfile.BLKTYPE),
        member("y", tarfile.FIFOTYPE),
        member("init", data=b"#!"),
        member("script", tarfile.SYMTYPE, to="/tmp"),
        member("proc/1", data=b""),
        member("ok", data=b""),
    )
    tree = GuestTree()
    notes = "\n".join(add_root(tree, root))
    assert [entry.path for entry in tree.entries()] == ["dev", "ok"]
    for text in ("devices, fifos and sockets (2)", "/init (1)", "files in /dev (1)", "/script (1)"):
        assert text in notes


def test_a_root_that_is_too_large_is_refused(tmp_path: Path) -> None:
    root = packed(tmp_path / "root.tar", member("a", data=bytes(600)), member("b", data=bytes(600)))
    with pytest.raises(InputError, match="larger than"):
        add_root(GuestTree(), root, most=1000)
    info, _ = member("huge")
    info.size = 1 << 40
    (tmp_path / "huge.tar").write_bytes(info.tobuf() + bytes(1024))
    with pytest.raises(InputError, match="larger than"):
        entries(tmp_path / "huge.tar")


def test_a_compressed_archive_without_an_end_is_refused(tmp_path: Path) -> None:
    import gzip

    info, _ = member("a", tarfile.XHDTYPE)
    info.size = 1 << 34
    with gzip.open(tmp_path / "root.tar", "wb") as stream:
        stream.write(info.tobuf() + bytes(1 << 20))
    with pytest.raises(InputError, match="damaged"):
        entries(tmp_path / "root.tar")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:700],
        lambda data: data[:100],
        lambda data: b"no archive at all" * 100,
        lambda data: b"\x1f\x8b" + data,
        lambda data: b"\xfd7zXZ" + data,
        lambda data: b"\x28\xb5\x2f\xfd" + data,
    ],
)
def test_a_damaged_archive_is_an_input_error(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = packed(tmp_path / "root.tar", member("a", data=b"x" * 2000))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError):
        entries(path)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2047), st.integers(0, 255)), min_size=1, max_size=12))
def test_any_damage_gives_entries_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    path = packed(
        tmp_path_factory.mktemp("t") / "root.tar",
        member("a", data=b"x" * 100),
        member("l", tarfile.SYMTYPE, to="a"),
    )
    data = bytearray(path.read_bytes())
    for place, value in changes:
        data[place] = value
    path.write_bytes(data)
    try:
        found = entries(path)
    except InputError:
        return
    assert all(".." not in name.split("/") and not name.startswith("/") for name in found)


def test_a_folder_is_packed_without_following_links(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/a").write_bytes(b"a")
    (root / "usr/bin/a").chmod(0o755)
    os.link(root / "usr/bin/a", root / "usr/bin/b")
    (root / "outside").symlink_to("/etc")
    os.mkfifo(root / "fifo")
    tree = GuestTree()
    notes = add_root(tree, root)
    found = {entry.path: entry for entry in tree.entries()}
    assert list(found) == ["outside", "usr", "usr/bin", "usr/bin/a", "usr/bin/b"]
    assert found["outside"].data == b"/etc" and found["usr/bin/b"].same_as == "usr/bin/a"
    assert notes == [f"left out of {root}: devices, fifos and sockets (1)"]
    with pytest.raises(InputError, match="cannot read"):
        add_root(GuestTree(), tmp_path / "none")


def test_a_hard_link_of_a_link_is_a_link_of_its_own(tmp_path: Path) -> None:
    members = (member("a", tarfile.SYMTYPE, to="x"), member("b", tarfile.LNKTYPE, to="a"))
    assert [
        (each.data, each.same_as)
        for each in entries(packed(tmp_path / "root.tar", *members)).values()
    ] == [
        (b"x", ""),
        (b"x", ""),
    ]


def test_paths_are_resolved_in_the_guest() -> None:
    tree = GuestTree()
    tree.symlink("bin", "usr/bin")
    tree.symlink("usr/bin/sh", "/etc/alternatives/sh")
    tree.symlink("etc/alternatives/sh", "../../../../bin/dash")
    assert tree.resolve("/bin/sh") == "usr/bin/dash"
    tree.file("/bin/x", b"x")
    assert "usr/bin/x" in tree
    tree.symlink("a", "b")
    tree.symlink("b", "a")
    with pytest.raises(InputError, match="form a loop"):
        tree.resolve("a/x")


def test_hashes_are_of_regular_files() -> None:
    tree = GuestTree()
    tree.file("a/b", b"")
    tree.symlink("c", "a/b")
    tree.put(os.fsdecode(b"\xff"), GuestNode(stat.S_IFREG))
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert tree.hashes() == {"/a/b": empty, "/\\xff": empty}
    assert archive(list(tree.entries()))
