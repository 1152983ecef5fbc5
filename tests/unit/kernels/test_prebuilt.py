from __future__ import annotations

import gzip
import json
import lzma
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError, LabError
from kteardown.kernels import package_modules, prebuilt
from kteardown.kernels.archive import Package
from kteardown.kernels.cache import Cache
from kteardown.kernels.package_modules import ModuleIndex, PackageModules
from kteardown.kernels.prebuilt import (
    ensure,
    exact_depends,
    has_package,
    is_prebuilt,
    missing_symbols,
    module_index,
    read_header,
)
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal
from unit.kernels.packages import make_deb, module


def bzimage(version: str, *, bits: int = 64, paragraphs: int = 0) -> bytes:
    data = bytearray(0x1000)
    data[0x1FE:0x200] = b"\x55\xaa"
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x20E, 0x600)
    struct.pack_into("<I", data, 0x1F4, paragraphs)
    struct.pack_into("<H", data, 0x236, 1 if bits == 64 else 0)
    text = version.encode() + b"\0"
    data[0x800 : 0x800 + len(text)] = text
    return bytes(data)


def arm64(release: str) -> bytes:
    return (
        b"MZ"
        + bytes(54)
        + b"ARM\x64"
        + bytes(100)
        + f"Linux version {release} (a@b) (gcc)".encode()
        + bytes(9)
    )


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "image"
    path.write_bytes(data)
    return path


@given(st.from_regex(r"[0-9]\.[0-9]{1,2}\.[0-9]{1,3}[a-z0-9.+-]{0,20}", fullmatch=True))
def test_the_release_is_read_from_a_bzimage(
    tmp_path_factory: pytest.TempPathFactory, release: str
) -> None:
    path = write(tmp_path_factory.mktemp("i"), bzimage(f"{release} (kteardown@kteardown) #1 SMP"))
    assert read_header(path, "it")[:2] == ("x86_64", release)


def test_the_release_is_read_from_an_arm64_image_compressed_or_not(tmp_path: Path) -> None:
    plain = arm64("6.12.117")
    for data in (plain, gzip.compress(plain)):
        assert read_header(write(tmp_path, data), "it") == ("arm64", "6.12.117", plain)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "neither header"),
        (b"text\n" * 500, "neither header"),
        (b"\x7fELF" + bytes(900), "ELF file"),
        (bzimage("6.1", bits=32), "32-bit"),
        (bzimage(""), "no version"),
        (bzimage("6.1", paragraphs=1000), "cut off"),
        (b"\x1f\x8bxx", "damaged"),
        (gzip.compress(arm64("6.12"), mtime=0)[:-20], "damaged"),
        (b"MZ" + bytes(54) + b"ARM\x64", "no version"),
    ],
)
def test_a_file_that_is_not_a_kernel_is_an_error(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(
        InputError, match=f"neither an x86-64 bzImage nor an arm64 Image: .*{reason}"
    ):
        read_header(write(tmp_path, data), "image:x")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "compressed"])
def test_an_image_without_an_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(prebuilt, "_MOST_BYTES", 2 << 20)
    path = write(tmp_path, pack(bzimage("6.12.1 (a@b)") + bytes(8 << 20)))
    with pytest.raises(InputError, match="it has more than 2 MB"):
        read_header(path, "image:x")


def test_a_module_without_an_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_modules, "_MOST_BYTES", 2 << 20)
    large = lzma.compress(b"\x7fELF" + bytes(8 << 20), preset=0)
    package = deb(tmp_path, {"kernel/virtio_ring.ko.xz": large})
    with pytest.raises(
        LabError, match=r"virtio_ring\.ko\.xz: the module is damaged: it has more than 2 MB"
    ):
        ensured(tmp_path, KernelRequest("base", f"image:{package}"))


def ensured(tmp_path: Path, request: KernelRequest) -> KernelImage:
    cache = tmp_path / "cache"
    return ensure(request, Cache(cache), Sources(cache, SilentReporter()), SilentReporter())


def test_an_image_is_copied_so_that_a_rebuild_in_place_does_not_change_a_run(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, bzimage("6.12.1 (a@b)"))
    first = ensured(tmp_path, KernelRequest("base", f"image:{path}"))
    path.write_bytes(bzimage("6.12.2 (a@b)"))
    second = ensured(tmp_path, KernelRequest("base", f"image:{path}"))
    assert (first.release, second.release) == ("6.12.1", "6.12.2")
    assert first.image.read_bytes() == bzimage("6.12.1 (a@b)")
    assert first.image_hash != second.image_hash
    assert first.modules == ()


def test_an_image_with_patches_or_for_another_architecture_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, bzimage("6.12.1 (a@b)"))
    with pytest.raises(InputError, match=r"cannot apply s to image:.*prebuilt"):
        ensured(tmp_path, KernelRequest("v", f"image:{path}", patches=(path,), series="s"))
    with pytest.raises(InputError, match="for x86_64, but the experiment is for arm64"):
        ensured(tmp_path, KernelRequest("base", f"image:{path}", arch="arm64"))
    assert Cache(tmp_path / "cache").entries() == []


RELEASE = "6.12.1-x"


def package(name: str, depends: str) -> Package:
    return Package(name, "6.12.1-1", f"http://mirror.example/{name}.deb", 1, "", depends)


PACKAGE = package("linux-image-x", "")


def modules() -> dict[str, bytes]:
    """Compressed virtio modules, like those of a distribution."""

    depends = {
        "virtio": "virtio_ring",
        "virtio-console": "virtio,virtio_ring",
        "virtio_pci": "virtio",
        "unrelated": "",
    }
    return {
        f"kernel/drivers/{name}.ko.xz": module(f"depends={text}", "retpoline=Y")
        for name, text in depends.items()
    }


IMAGE = bzimage(f"{RELEASE} (a@b)")
CONFIG = b'CONFIG_SUSPEND=y\nCONFIG_CC_VERSION_TEXT="gcc 12"\n'
BUILTIN = {"modules.builtin": b"kernel/drivers/virtio/virtio_ring.ko\n"}


def under(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": data for name, data in files.items()}


def deb(tmp_path: Path, builtin: dict[str, bytes] = BUILTIN) -> Path:
    """Build a package that has a whole kernel."""
    boot = {"vmlinuz": IMAGE, "config": CONFIG, "System.map": b"map"}
    return make_deb(
        tmp_path / "linux-image.deb",
        under(f"lib/modules/{RELEASE}", modules() | builtin)
        | {f"boot/{name}-{RELEASE}": data for name, data in boot.items()},
    )


def split_debs(cache: Path) -> None:
    """Put a kernel that is split into several packages into the downloads and the answers of
    ``cache``."""
    folder = f"usr/lib/modules/{RELEASE}"
    base = f"linux-base-x (= {PACKAGE.version})"
    parts: dict[str, tuple[str, dict[str, bytes]]] = {
        "linux-image-x": (
            f"dracut | linux-initramfs-tool, {base}, linux-binary-x (= {PACKAGE.version}), "
            f"linux-modules-x (= {PACKAGE.version}), other (= 3), linux-base (>= 4.17~)",
            {"usr/share/doc/linux-image-x/copyright": b"x"},
        ),
        "linux-binary-x": (base, under(folder, {"vmlinuz": IMAGE})),
        "linux-modules-x": (f"kmod, {base}", under(folder, modules())),
        "linux-base-x": ("kmod", under(folder, {"config": CONFIG, "System.map": b"map"} | BUILTIN)),
    }
    for name, (depends, files) in parts.items():
        deb = cache / "downloads" / f"{name}_{PACKAGE.version}_amd64.deb"
        make_deb(deb, files)
        seal.keep(deb, deb)
        answer = {"package": json.dumps(asdict(package(name, depends)))}
        for spec in (
            f"{name}={PACKAGE.version}",
            *(["debian-image:6.12"] if name == PACKAGE.name else []),
        ):
            Sources(cache, SilentReporter()).remember(spec, "amd64", partial(dict, answer))


def check_whole(found: KernelImage) -> None:
    assert found.release == RELEASE
    assert found.compiler == "gcc 12"
    assert [path.name for path in found.modules] == [
        "virtio.ko",
        "virtio_pci.ko",
        "virtio_console.ko",
    ]
    assert all(path.read_bytes().startswith(b"\x7fELF") for path in found.modules)
    folder = found.image.parent
    assert (folder / "config").read_bytes() == CONFIG
    assert (folder / "System.map").read_bytes() == b"map"
    assert not (folder / "package").exists()


def test_the_modules_of_a_package_are_in_load_order(tmp_path: Path) -> None:
    check_whole(ensured(tmp_path, KernelRequest("base", f"image:{deb(tmp_path)}")))


def test_a_kernel_that_is_split_into_packages_is_put_together(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    split_debs(cache)
    found = ensured(tmp_path, KernelRequest("base", "debian-image:6.12"))
    check_whole(found)
    assert found.source == "debian-image:6.12.1-1"


def test_only_what_is_required_in_the_same_version_is_a_part_of_a_package() -> None:
    depends = (
        "kmod, a | b (= 1-2), linux-base (>= 4), linux-modules-x (= 1-2),c (= 1-3), linux-binary-x "
        "(= 1-2)"
    )
    assert exact_depends(depends, "1-2") == ["linux-modules-x", "linux-binary-x"]
    assert exact_depends("", "1-2") == []


def test_a_file_that_is_one_part_of_a_split_kernel_is_an_error(tmp_path: Path) -> None:
    split_debs(tmp_path)
    image, binary = (
        tmp_path / "downloads" / f"{name}_{PACKAGE.version}_amd64.deb"
        for name in ("linux-image-x", "linux-binary-x")
    )
    with pytest.raises(InputError, match="has no kernel") as error:
        ensured(tmp_path, KernelRequest("base", f"image:{image}"))
    assert "debian-image:VERSION" in error.value.hint
    with pytest.raises(InputError, match="has no module virtio_pci"):
        ensured(tmp_path, KernelRequest("base", f"image:{binary}"))


def test_a_package_without_the_modules_of_the_records_port_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no module virtio_ring"):
        ensured(tmp_path, KernelRequest("base", f"image:{deb(tmp_path, builtin={})}"))


@pytest.mark.parametrize("suffix", ["xz", "zst"])
def test_a_damaged_module_is_named(suffix: str, tmp_path: Path) -> None:
    package = deb(tmp_path, {f"kernel/virtio_ring.ko.{suffix}": b"no archive"})
    with pytest.raises(LabError, match=f"virtio_ring.ko.{suffix}: the module is damaged"):
        ensured(tmp_path, KernelRequest("base", f"image:{package}"))


SCRIPTED = {
    "kernel/drivers/dummy.ko.xz": module("alias=rtnl-link-dummy", "depends="),
    "kernel/fs/ext4.ko.xz": module("alias=fs-ext4", "depends=mbcache", "softdep=pre: crypto-crc"),
    "kernel/fs/mbcache.ko.xz": module("depends="),
    "kernel/crypto/crc-x.ko.xz": module("alias=crypto-crc", "depends=virtio"),
    "modules.builtin": BUILTIN["modules.builtin"] + b"kernel/net/unix/unix.ko\n",
    "modules.builtin.modinfo": b"unix.license=GPL\0unix.alias=net-pf-1\0",
}
"""What scripts ask for, beside the modules of the records port."""


def names(files: Sequence[Path]) -> list[str]:
    return [path.name for path in files]


def test_what_is_asked_for_by_name_or_alias_comes_with_all_that_it_needs(tmp_path: Path) -> None:
    words = ("dummy", "fs-ext4", "unix", "net-pf-1", "zfs", "rtnl-link-dummy")
    found = ensured(
        tmp_path, KernelRequest("base", f"image:{deb(tmp_path, SCRIPTED)}", modules=words)
    )
    assert {word: names(files) for word, files in found.optional_modules.items()} == {
        "dummy": ["dummy.ko"],
        # virtio is loaded in every guest.
        "fs-ext4": ["crc_x.ko", "mbcache.ko", "ext4.ko"],
        "unix": [],
        "net-pf-1": [],
        "zfs": [],
        "rtnl-link-dummy": ["dummy.ko"],
    }
    assert all(
        path.read_bytes().startswith(b"\x7fELF")
        for files in found.optional_modules.values()
        for path in files
    )
    assert found.builtin == ("unix", "virtio_ring")
    assert names(found.modules) == ["virtio.ko", "virtio_pci.ko", "virtio_console.ko"]


def index_of(tmp_path: Path, source: str) -> ModuleIndex:
    cache = tmp_path / "cache"
    sources = Sources(cache, SilentReporter())
    return module_index(KernelRequest("base", source), Cache(cache), sources, SilentReporter())


def test_the_modules_of_a_package_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"image:{deb(tmp_path, SCRIPTED)}"
    index = index_of(tmp_path, source)
    assert index.find("rtnl-link-dummy") == ("dummy",)
    assert index.find("unix") == ()
    assert index.find("zfs") is None
    monkeypatch.setattr(PackageModules, "read_index", lambda *_: pytest.fail("it is read again"))
    assert index_of(tmp_path, source) == index
    ensured(tmp_path, KernelRequest("base", source, modules=("fs-ext4",)))
    assert not list((tmp_path / "cache" / "kernels").glob(".*.tmp"))


def test_an_image_alone_has_no_package(tmp_path: Path) -> None:
    assert has_package("debian-image:6.12")
    assert has_package(f"image:{deb(tmp_path)}")
    assert not has_package(f"image:{write(tmp_path, bzimage('6.12.1 (a@b)'))}")


def test_symbols_that_an_image_lacks_are_said_once_and_those_for_scripts_not_at_all(
    tmp_path: Path,
) -> None:
    package = deb(tmp_path)
    cache = tmp_path / "cache"
    noted: list[str] = []

    class Noting(Reporter):
        def note(self, text: str) -> None:
            noted.append(text)

        def note_once(self, text: str) -> None:
            if text not in noted:
                self.note(text)

    for fragments in (("userland",), ("kasan", "userland"), ("kasan", "userland")):
        request = KernelRequest("base", f"image:{package}", fragments=fragments)
        image = ensure(request, Cache(cache), Sources(cache, SilentReporter()), Noting())
    (only,) = noted
    assert "CONFIG_KASAN" in only and "OVERLAY" not in only
    assert "CONFIG_OVERLAY_FS" in missing_symbols(image, ["userland"])


def test_prebuilt_images_are_distinguished_from_other_sources() -> None:
    assert is_prebuilt("image:x")
    assert is_prebuilt("debian-image:6.12")
    assert not is_prebuilt("debian:6.12")
