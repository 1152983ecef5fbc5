"""The modules of a package: their aliases and the order in which they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.kernels import package_modules, unpack
from kteardown.kernels.package_modules import (
    ModuleIndex,
    PackageModules,
    load_order,
    module_depends,
    module_softdeps,
    normalized,
)
from kteardown.progress import Task
from unit.kernels.packages import module


def unpacked(folder: Path, files: Mapping[str, bytes]) -> PackageModules:
    for name, content in files.items():
        path = folder / "lib/modules/6.12" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return PackageModules(folder)


def test_load_order_puts_dependencies_first_and_names_a_missing_module() -> None:
    depends = {"a": ("b", "c"), "b": ("c",), "c": (), "d": ("a",)}
    assert load_order(("d", "b"), depends, set()) == ["c", "b", "a", "d"]
    assert load_order(("d",), depends, {"a"}) == ["d"]
    with pytest.raises(KeyError, match="x"):
        load_order(("x",), depends, set())


def test_load_order_ends_whatever_a_package_says_of_its_dependencies() -> None:
    assert load_order(("a",), {"a": ("b",), "b": ("a",)}, set()) == ["b", "a"]
    deep = {str(n): (str(n + 1),) for n in range(5000)} | {"5000": ()}
    assert load_order(("0",), deep, set())[:2] == ["5000", "4999"]


def test_what_is_not_linked_is_loaded_before_and_after() -> None:
    depends: dict[str, tuple[str, ...]] = {"a": ("b",), "b": (), "c": (), "d": ("c",), "e": ()}
    soft = {"a": (("d",), ("e",))}
    order = load_order(("a",), depends, set(), lambda name: soft.get(name, ((), ())))
    assert order == ["c", "d", "b", "a", "e"]


def test_dependencies_are_read_from_the_module() -> None:
    assert module_depends(b"\x7fELF..\0depends=virtio-ring,virtio\0name=x\0") == (
        "virtio_ring",
        "virtio",
    )
    assert module_depends(b"\x7fELF..\0depends=\0") == ()
    assert module_depends(b"\x7fELF") == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((), ((), ())),
        (("pre: crypto-crc32c",), (("crypto-crc32c",), ())),
        (("pre: a b post: c",), (("a", "b"), ("c",))),
        (("pre: a", "post: b", "pre: c"), (("a", "c"), ("b",))),
        # cifs of 6.12 says neither; kmod ignores it.
        (("gcm",), ((), ())),
    ],
)
def test_soft_dependencies_are_read_from_the_module(
    fields: tuple[str, ...], expected: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    data = b"\x7fELF\0" + b"".join(f"softdep={text}\0".encode() for text in fields)
    assert module_softdeps(data) == expected


@pytest.fixture
def index(tmp_path: Path) -> ModuleIndex:
    files = {
        "kernel/dummy.ko.xz": module("alias=rtnl-link-dummy"),
        "kernel/crc32c-generic.ko.xz": module("alias=crypto-crc32c", "alias=crc32c"),
        "kernel/crc32c-intel.ko.xz": module("alias=crypto-crc32c"),
        "kernel/loop.ko.xz": module("alias=block-major-7-*", "alias=char-major-10-237"),
        "kernel/usb.ko.xz": module("alias=usb:v[0-9]d-x*"),
        "modules.builtin": b"kernel/net/unix.ko\nkernel/snd-seq.ko\n",
        "modules.builtin.modinfo": b"unix.license=GPL\0unix.alias=net-pf-1\0damaged\0",
    }
    return unpacked(tmp_path, files).read_index(Task())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("dummy", ("dummy",)),
        ("rtnl-link-dummy", ("dummy",)),
        ("rtnl_link-dummy", ("dummy",)),
        ("crypto-crc32c", ("crc32c_generic", "crc32c_intel")),
        ("crc32c", ("crc32c_generic",)),
        ("crc32c-intel", ("crc32c_intel",)),
        ("block-major-7-0", ("loop",)),
        ("block-major-8-0", None),
        ("usb:v3d-xyz", ("usb",)),
        ("usb:vad-xyz", None),
        ("unix", ()),
        ("snd_seq", ()),
        ("net-pf-1", ()),
        ("net-pf-10", None),
        ("rtnl-link-", None),
        ("", None),
        # What is asked for is never a pattern.
        ("*", None),
        ("dum*", None),
    ],
)
def test_a_module_is_found_by_its_name_and_by_its_aliases(
    index: ModuleIndex, word: str, expected: tuple[str, ...] | None
) -> None:
    assert index.find(word) == expected


def test_a_text_names_modules_devices_and_file_systems(tmp_path: Path) -> None:
    files = {
        "dummy.ko.xz": module("alias=rtnl-link-dummy"),
        "8021q.ko.xz": module("alias=rtnl-link-vlan"),
        "ext4.ko.xz": module("alias=fs-ext4", "alias=fs-ext3", "alias=" + "x" * 80),
        "loop.ko.xz": module("alias=block-major-7-*", "alias=char-major-10-237"),
        "unix.ko.xz": module(),
    }
    index = unpacked(tmp_path, files).read_index(Task())
    words = [
        "ip",
        "link",
        "add",
        "link",
        "base",
        "name",
        "x",
        "type",
        "vlan",
        "mount",
        "loop",
        "ext4",
    ]
    assert index.named_in(words) == {
        "8021q": ("8021q", "rtnl_link_vlan"),
        "loop": ("loop", "block_major_7_*", "char_major_10_237"),
        "ext4": ("ext4", "fs_ext3", "fs_ext4"),
    }
    assert index.named_in([]) == {}


def test_dashes_are_underscores_except_in_brackets() -> None:
    assert normalized("a-b_c") == "a_b_c"
    assert normalized("v[0-9]-[a-f]x-[") == "v[0-9]_[a-f]x_["


def test_names_need_no_index(tmp_path: Path) -> None:
    modules = unpacked(
        tmp_path,
        {
            "a.ko.xz": module("depends=b", "softdep=pre: b"),
            "b.ko.xz": module(),
            "modules.builtin": b"kernel/c.ko\n",
        },
    )

    def no_index() -> ModuleIndex:
        pytest.fail("the index is read")

    assert modules.find("a", no_index) == ("a",)
    assert modules.find("c", no_index) == ()
    assert modules.load_order(["a"], no_index) == ["b", "a"]


def test_a_file_with_another_name_is_no_module(tmp_path: Path) -> None:
    files = {name: module() for name in ("a b.ko.xz", "a\nbuiltin x.ko", "ok.ko.xz", "ä.ko")}
    assert unpacked(tmp_path, files).read_index(Task()).modules == ("ok",)


def test_modules_without_an_end_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"m{n}.ko.xz": module("alias=" + "a" * 900) for n in range(4)}
    modules = unpacked(tmp_path, files)
    assert list(modules.read_index(Task()).aliases) == ["a" * 900]
    monkeypatch.setattr(package_modules, "_MOST_TEXT_BYTES", 2000)
    with pytest.raises(InputError, match=r"m2\.ko\.xz: the modules .* too large"):
        modules.read_index(Task())
    monkeypatch.undo()
    monkeypatch.setattr(unpack, "MOST_UNPACKED", 2000)
    with pytest.raises(InputError, match="too large"):
        modules.read_index(Task())


def test_an_alias_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    modules = unpacked(tmp_path, {"m.ko.xz": module("alias=" + "a*" * 600, "alias=b")})
    assert list(modules.read_index(Task()).aliases) == ["b"]


def test_modules_that_no_guest_can_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a.ko.xz": module("depends=b"), "b.ko.xz": module("x=" + "b" * 500)}
    assert unpacked(tmp_path, files).load_order(("a",)) == ["b", "a"]
    monkeypatch.setattr(package_modules, "_MOST_BYTES", 530)
    with pytest.raises(InputError, match="more than"):
        unpacked(tmp_path, files).load_order(("a",))
