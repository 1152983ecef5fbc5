from __future__ import annotations

import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.script.elf import (
    MACHINES,
    default_folders,
    elf_of,
    find_library,
    libraries,
    read_elf,
)

MACHINE = MACHINES["x86_64"]
NUMBERS = {"EM_X86_64": 62, "EM_AARCH64": 183}


@cache
def program() -> bytes:
    return Path(shutil.which("bash") or "").read_bytes()


def small(tags: list[tuple[int, int]], strings: bytes, *, machine: str = MACHINE) -> bytes:
    """Return an ELF file that is one segment, with a dynamic section and its strings."""
    dynamic = b"".join(struct.pack("<QQ", *each) for each in tags)
    start = 64 + 2 * 56
    total = start + len(dynamic) + len(strings)
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, NUMBERS[machine], 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, total, total, 4096)
    section = struct.pack("<IIQQQQQQ", 2, 4, start, start, start, len(dynamic), len(dynamic), 8)
    return header + load + section + dynamic + strings


def at(count: int) -> int:
    """Return where the strings of ``small`` begin behind ``count`` tags."""
    return 64 + 2 * 56 + 16 * count


def test_a_program_of_this_host_is_read_as_readelf_does() -> None:
    path = shutil.which("bash") or ""
    elf = read_elf(program(), path)
    text = subprocess.run(
        ["readelf", "-ld", path], capture_output=True, text=True, check=True
    ).stdout
    assert f"interpreter: {elf.interpreter}]" in text
    assert elf.needed and all(f"[{name}]" in text for name in elf.needed)
    assert text.count("(NEEDED)") == len(elf.needed)


def test_libraries_are_those_that_the_loader_opens() -> None:
    path = Path(shutil.which("bash") or "").resolve()
    found = dict(libraries(path, read_elf(program(), str(path))))
    text = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
    expected: dict[str, Path] = {
        words[0]: Path(words[2]) for words in map(str.split, text.splitlines()) if "=>" in words
    }
    loader = read_elf(program(), "bash").interpreter.rpartition("/")[2]
    found.pop(loader, None)
    assert {name: where and where.resolve() for name, where in found.items()} == {
        name: where.resolve() for name, where in expected.items()
    }


def test_names_and_folders_are_read() -> None:
    strings = b"\0libx.so\0$ORIGIN/../lib:/opt\0"
    data = small([(1, 1), (29, 9), (5, at(5)), (10, len(strings)), (0, 0)], strings)
    elf = read_elf(data, "x")
    assert (elf.needed, elf.runpath, elf.rpath) == (("libx.so",), ("$ORIGIN/../lib", "/opt"), ())


@pytest.mark.parametrize("tag", [15, 29])
def test_a_library_is_found_beside_the_program(tag: int, tmp_path: Path) -> None:
    strings = b"\0libx.so\0$ORIGIN/../own\0"
    data = small([(1, 1), (tag, 9), (5, at(5)), (10, len(strings)), (0, 0)], strings)
    (tmp_path / "own").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "own/libx.so").write_bytes(small([(0, 0)], b""))
    found = dict(libraries(tmp_path / "bin/x", read_elf(data, "x")))
    assert found["libx.so"] is not None
    assert found["libx.so"].resolve() == (tmp_path / "own/libx.so").resolve()
    (tmp_path / "own/libx.so").write_bytes(small([(0, 0)], b"", machine=MACHINES["arm64"]))
    assert dict(libraries(tmp_path / "bin/x", read_elf(data, "x"))) == {"libx.so": None}


def test_a_name_with_a_path_finds_no_file_that_is_not_a_library() -> None:
    strings = b"\0/etc/passwd\0../../etc/passwd\0"
    data = small([(1, 1), (1, 13), (5, at(5)), (10, len(strings)), (0, 0)], strings)
    assert set(dict(libraries(Path("/usr/bin/x"), read_elf(data, "x"))).values()) == {None}


def test_too_many_libraries_are_an_error() -> None:
    strings = b"".join(b"l%d\0" % number for number in range(1000))
    tags = [(1, strings.index(b"l%d\0" % number)) for number in range(1000)]
    data = small([*tags, (5, at(1003)), (10, len(strings)), (0, 0)], strings)
    with pytest.raises(InputError, match="more than 512 libraries"):
        list(libraries(Path("/usr/bin/x"), read_elf(data, "x")))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF",
        b"\x7fELF\x01\x01" + bytes(100),
        b"\x7fELF\x02\x02" + bytes(100),
    ],
)
def test_other_files_are_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError, match="not a program that a guest can run"):
        read_elf(data, "x")


@settings(deadline=None)
@given(st.data())
def test_a_damaged_program_is_read_or_an_input_error(data: st.DataObject) -> None:
    damaged = bytearray(program()[:8192])
    for _ in range(data.draw(st.integers(1, 20))):
        place = data.draw(st.integers(0, 1200))
        damaged[place : place + 8] = data.draw(st.binary(min_size=8, max_size=8))
    cut = data.draw(st.integers(0, len(damaged)))
    try:
        elf = read_elf(bytes(damaged[:cut]), "x")
    except InputError:
        return
    assert all(len(name) <= 4096 for name in (*elf.needed, *elf.rpath, elf.interpreter))


_numbers = st.integers(0, 400) | st.integers(0, 2**64 - 1)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 5, 10, 15, 29]), _numbers), max_size=12),
    st.binary(max_size=60),
)
def test_any_dynamic_section_is_read_or_an_input_error(
    tags: list[tuple[int, int]], strings: bytes
) -> None:
    try:
        elf = read_elf(small(tags, strings), "x")
    except InputError:
        return
    assert len(elf.needed) <= len(tags)


def test_the_folders_of_this_host_have_its_c_library() -> None:
    machine = read_elf(program(), "bash").machine
    assert any(Path(folder, "libc.so.6").exists() for folder in default_folders(machine))
    assert find_library("libc.so.6", machine) and not find_library("no-such-library.so", machine)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    assert elf_of(tmp_path / "link", MACHINE) is None
    assert elf_of(tmp_path / "none", MACHINE) is None
