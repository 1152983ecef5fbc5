from __future__ import annotations

import gzip
import lzma
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.kernels.cache import Cache
from kteardown.kernels.prebuilt import ensure, is_prebuilt, load_order, module_depends
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter
from kteardown.vm.image_header import read_header


def bzimage(version: str, *, bits: int = 64) -> bytes:
    data = bytearray(0x1000)
    data[0x1FE:0x200] = b"\x55\xaa"
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x20E, 0x600)
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
def test_the_release_is_read_from_a_bzimage(tmp_path_factory: pytest.TempPathFactory, release: str) -> None:
    path = write(tmp_path_factory.mktemp("i"), bzimage(f"{release} (kteardown@kteardown) #1 SMP"))
    facts = read_header(path, "it")
    assert (facts.arch, facts.release) == ("x86_64", release)


def test_the_release_is_read_from_an_arm64_image_compressed_or_not(tmp_path: Path) -> None:
    plain = arm64("6.12.117")
    for data in (plain, gzip.compress(plain)):
        facts = read_header(write(tmp_path, data), "it")
        assert (facts.arch, facts.release, facts.data) == ("arm64", "6.12.117", plain)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "header of neither"),
        (b"text\n" * 500, "header of neither"),
        (b"\x7fELF" + bytes(900), "ELF file"),
        (bzimage("6.1", bits=32), "32-bit"),
        (bzimage(""), "no version"),
        (b"\x1f\x8bxx", "damaged"),
        (gzip.compress(arm64("6.12"), mtime=0)[:-20], "damaged"),
        (b"MZ" + bytes(54) + b"ARM\x64", "no version"),
    ],
)
def test_a_file_that_is_not_a_kernel_is_an_error(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=f"neither an x86-64 bzImage nor an arm64 Image: .*{reason}"):
        read_header(write(tmp_path, data), "image:x")


def ensured(tmp_path: Path, request: KernelRequest) -> KernelImage:
    cache = tmp_path / "cache"
    return ensure(request, Cache(cache), Sources(cache, SilentReporter()), SilentReporter())


def test_an_image_is_copied_so_that_a_rebuild_in_place_does_not_change_a_run(tmp_path: Path) -> None:
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


def deb(tmp_path: Path, builtin: str = "kernel/drivers/virtio/virtio_ring.ko\n") -> Path:
    """Build a kernel package with compressed virtio modules, like those of a distribution."""
    root = tmp_path / "root"
    modules = root / "lib/modules/6.12.1-x/kernel/drivers"
    modules.mkdir(parents=True)
    (root / "boot").mkdir()
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: linux-image-x\nVersion: 6.12.1-1\nArchitecture: amd64\n"
        "Maintainer: A <a@example.org>\nDescription: x\n"
    )
    (root / "boot/vmlinuz-6.12.1-x").write_bytes(bzimage("6.12.1-x (a@b)"))
    (root / "boot/config-6.12.1-x").write_text('CONFIG_SUSPEND=y\nCONFIG_CC_VERSION_TEXT="gcc 12"\n')
    (root / "lib/modules/6.12.1-x/modules.builtin").write_text(builtin)

    def module(name: str, depends: str) -> None:
        data = b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0retpoline=Y\0"
        (modules / f"{name}.ko.xz").write_bytes(lzma.compress(data))

    module("virtio", "virtio_ring")
    module("virtio-console", "virtio,virtio_ring")
    module("virtio_pci", "virtio")
    module("unrelated", "")
    package = tmp_path / "linux-image.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "-Znone", str(root), str(package)], check=True, capture_output=True
    )
    return package


def test_the_modules_of_a_package_are_in_load_order(tmp_path: Path) -> None:
    found = ensured(tmp_path, KernelRequest("base", f"image:{deb(tmp_path)}"))
    assert found.release == "6.12.1-x"
    assert found.compiler == "gcc 12"
    assert [path.name for path in found.modules] == ["virtio.ko", "virtio_pci.ko", "virtio_console.ko"]
    assert all(path.read_bytes().startswith(b"\x7fELF") for path in found.modules)
    assert not (found.image.parent / "package").exists()


def test_a_package_without_the_modules_of_the_records_port_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no module virtio_ring"):
        ensured(tmp_path, KernelRequest("base", f"image:{deb(tmp_path, builtin='')}"))


def test_load_order_puts_dependencies_first_and_names_a_missing_module() -> None:
    depends = {"a": ("b", "c"), "b": ("c",), "c": (), "d": ("a",)}
    assert load_order(("d", "b"), depends, set()) == ["c", "b", "a", "d"]
    assert load_order(("d",), depends, {"a"}) == ["d"]
    with pytest.raises(KeyError, match="x"):
        load_order(("x",), depends, set())


def test_dependencies_are_read_from_the_module() -> None:
    assert module_depends(b"\x7fELF..\0depends=virtio-ring,virtio\0name=x\0") == ("virtio_ring", "virtio")
    assert module_depends(b"\x7fELF..\0depends=\0") == ()
    assert module_depends(b"\x7fELF") == ()


def test_prebuilt_images_are_distinguished_from_other_sources() -> None:
    assert is_prebuilt("image:x")
    assert is_prebuilt("debian-image:6.12")
    assert not is_prebuilt("debian:6.12")
