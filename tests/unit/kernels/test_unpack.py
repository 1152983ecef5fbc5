"""What is compressed is unpacked in pieces and up to a limit, whatever it contains."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels import unpack
from kteardown.kernels.source import Sources
from kteardown.kernels.unpack import UnpackError
from kteardown.progress import SilentReporter

MB = 1 << 20


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=content, check=True, capture_output=True).stdout


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lambda content: lzma.compress(content, preset=0),
    "bz2": bz2.compress,
    "zst": zstd,
}
every_form = pytest.mark.parametrize("compress", COMPRESSED.values(), ids=COMPRESSED)


def write(folder: Path, content: bytes) -> Path:
    file = folder / "file"
    file.write_bytes(content)
    return file


@every_form
def test_a_file_is_read_whatever_compressed_it(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    content = os.urandom(MB // 4) + bytes(2 * MB) + b"end"
    assert unpack.unpacked(write(tmp_path, compress(content)), 4 * MB) == content
    assert unpack.unpacked(write(tmp_path, content), 4 * MB) == content


@every_form
def test_what_has_no_end_is_read_up_to_a_limit(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    # A frame after the other: it is as long as it should be, and fast to make.
    file = write(tmp_path, compress(bytes(4 * MB)) * 32)
    tracemalloc.start()
    with pytest.raises(ValueError, match="it has more than 2 MB"):
        unpack.unpacked(file, 2 * MB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MB


@every_form
def test_what_is_cut_off_is_damaged(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    packed = compress(os.urandom(MB // 4))
    with pytest.raises(ValueError, match="compressed contents are damaged"):
        unpack.unpacked(write(tmp_path, packed[:-100]), 4 * MB)
    with pytest.raises(ValueError, match="compressed contents are damaged"):
        unpack.unpacked(write(tmp_path, packed[:8] + bytes(100)), 4 * MB)


def tarball(members: dict[str, bytes], after: bytes = b"") -> bytes:
    """Return a tar with files below one folder at its top, and with something after its end."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(f"linux/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return content.getvalue() + after


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@every_form
def test_a_tarball_fills_the_disk_up_to_a_limit(
    compress: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_UNPACKED", 4 * MB)
    packed = write(tmp_path, compress(tarball({str(n): bytes(MB) for n in range(30)})))
    target = tmp_path / "out"
    target.mkdir()
    stages = [["cat", str(packed)], *unpack.untar(packed.read_bytes()[:8], "-C", str(target))]
    with pytest.raises(UnpackError, match="unpacked, it is larger than"):
        unpack.pipe(stages, target, "it", "make a smaller one.")
    assert size_of(target) <= 4 * MB


@every_form
def test_what_follows_the_end_of_a_tarball_is_no_error(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = write(tmp_path, compress(tarball({"a": b"text"}, after=bytes(8 * MB))))
    target = tmp_path / "out"
    target.mkdir()
    stages = [["cat", str(packed)], *unpack.untar(packed.read_bytes()[:8], "-C", str(target))]
    assert unpack.pipe(stages, target, "it", "make a smaller one.") == b""
    assert (target / "linux/a").read_text() == "text"


def test_a_source_that_is_too_large_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_UNPACKED", 4 * MB)
    files = {"Kconfig": b"x", "Kbuild": b"x", "large": bytes(30 * MB)}
    packed = write(tmp_path, gzip.compress(tarball(files)))
    sources = Sources(tmp_path / "cache", SilentReporter())
    with pytest.raises(InputError, match="unpacked, it is larger than"):
        sources.tree(sources.identify(f"tar:{packed}"))
    assert size_of(tmp_path / "cache" / "sources") == 0


def special_tar(file: Path) -> None:
    """Make a tar with a kernel tree, a link, a pipe and, as root, a device."""
    with tarfile.open(file, "w:xz") as tar:
        for name in ("Kconfig", "Kbuild"):
            tar.addfile(tarfile.TarInfo(f"linux/{name}"))
        kinds = {"link": tarfile.SYMTYPE, "pipe": tarfile.FIFOTYPE}
        for name, kind in kinds.items() | (
            {("zero", tarfile.CHRTYPE)} if os.geteuid() == 0 else set()
        ):
            member = tarfile.TarInfo(f"linux/{name}")
            member.type, member.linkname, member.devmajor, member.devminor = kind, "/dev/zero", 1, 5
            member.mode = 0o666
            tar.addfile(member)


def test_a_source_has_no_pipe_and_no_device(tmp_path: Path) -> None:
    special_tar(tmp_path / "linux.tar")
    sources = Sources(tmp_path / "cache", SilentReporter())
    tree = sources.tree(sources.identify(f"tar:{tmp_path / 'linux.tar'}"))
    assert sorted(path.name for path in tree.iterdir()) == ["Kbuild", "Kconfig", "link"]


def test_a_package_has_no_link_either(tmp_path: Path) -> None:
    special_tar(tmp_path / "data.tar.xz")
    deb = tmp_path / "x.deb"
    subprocess.run(["ar", "rcD", str(deb), str(tmp_path / "data.tar.xz")], check=True)
    unpack.unpack_deb(deb, tmp_path / "out")
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in (tmp_path / "out").rglob("*")}
    assert kinds == {stat.S_IFREG, stat.S_IFDIR}


def test_nothing_of_a_pipeline_is_left_if_a_program_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not installed on this host: no-such-program"):
        unpack.pipe([["cat", "/dev/zero"], ["no-such-program"]], tmp_path, "it", "install it.")
