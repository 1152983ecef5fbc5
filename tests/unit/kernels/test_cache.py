from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder
from kteardown.kernels.cache import FOLDERS, Cache, key
from kteardown.kernels.kconfig import WantedSymbol
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import file_hash
from kteardown.progress import SilentReporter
from kteardown.spawn import python
from sources import source_files
from unit.vm.test_seal import Notes

HOLDER = """
import sys
from pathlib import Path
from kteardown.kernels import cache_folder

cache_folder.hold(Path(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""
BUILDER = """
import sys, time
from pathlib import Path
from kteardown.kernels import cache_folder
from kteardown.progress import SilentReporter
from kteardown.spawn import python

target, log = Path(sys.argv[1]), Path(sys.argv[2])
with cache_folder.locked(target, SilentReporter(), "build"):
    if not target.is_dir():
        with cache_folder.published(target) as work:
            for number in range(20):
                (work / str(number)).write_text(sys.argv[3])
                time.sleep(0.01)
        with log.open("a") as stream:
            stream.write(sys.argv[3] + chr(10))
print(len({path.read_text() for path in target.iterdir()}), len(list(target.iterdir())))
"""


def kernel(cache: Cache, name: str, *, series: str = "", used: float = 0.0) -> Path:
    with cache_folder.published(cache.kernel_path(name)) as folder:
        (folder / "bzImage").write_bytes(b"image of " + name.encode())
        (folder / "vmlinux").write_bytes(b"symbols")
        image = KernelImage(
            name="",
            image=folder / "bzImage",
            source="debian:6.12.117-1",
            series=series,
            arch="x86_64",
            release="6.12.117",
            compiler="gcc 12",
            config_hash="c",
            image_hash=file_hash(folder / "bzImage"),
        )
        cache.describe(folder, image, steps=7)
    if used:
        os.utime(cache.kernel_path(name), (used, used))
    return cache.kernel_path(name)


def test_a_kernel_is_returned_under_the_requested_name(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.lookup("aaaa", "base") is None
    folder = kernel(cache, "aaaa", used=1.0)
    found = cache.lookup("aaaa", "base")
    assert found is not None
    assert (found.name, found.image, found.release) == ("base", folder / "bzImage", "6.12.117")
    assert cache.entries()[0].last_used.year > 2000


def test_entries_describe_kernels_and_are_sorted_by_last_use(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    kernel(cache, "old", used=1e9)
    kernel(cache, "new", series="s", used=1.5e9)
    (tmp_path / "kernels" / ".half.tmp").mkdir()
    assert [entry.key for entry in cache.entries()] == ["new", "old"]
    assert cache.entries()[0].series == "s"
    assert cache.entries()[0].size_kb > 0
    assert "6.12.117" in str(cache.entries()[0])
    assert cache.steps("x86_64", variant=True) == 7
    assert cache.steps("arm64", variant=True) is None


def test_prune_by_age_key_and_all(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    now = time.time()
    for name, days in (("aaaa", 40.0), ("bbbb", 3.0), ("cccc", 0.0)):
        kernel(cache, name, used=now - days * 86400)
    cache.tree_path("bbbb").mkdir(parents=True)

    assert [e.key for e in cache.prune(older_than_days=30, dry_run=True)] == ["aaaa"]
    assert len(cache.entries()) == 3
    assert [e.key for e in cache.prune(older_than_days=30)] == ["aaaa"]
    assert {e.folder for e in cache.prune(["bb"])} == {"kernels", "trees"}
    assert [e.key for e in cache.entries()] == ["cccc"]
    assert not cache.tree_path("bbbb").exists()
    for wanted in ("zz", ""):
        with pytest.raises(InputError, match=f"no kernel '{wanted}'"):
            cache.prune([wanted])
    assert cache.prune() == []
    (tmp_path / "objects/series").mkdir(parents=True)
    assert {e.folder for e in cache.prune(everything=True)} == {"kernels", "objects"}
    assert cache.entries() == [] and cache.others() == []


def test_each_folder_of_the_cache_is_pruned(tmp_path: Path) -> None:
    """Each that the source names below the cache, besides the kernels and the answers about
    sources."""
    place = r"(?:cache|cache_dir(?:\(\))?(?:\.absolute\(\))?|(?:sources|_kernels|kernels)\.folder)"
    named = {
        name
        for file in source_files()
        for name in re.findall(rf'\b{place} / "([a-z]+)"', file.read_text())
    }
    assert {"agent", "coverage", "plugins", "scripts", "series"} <= named <= {*FOLDERS}
    cache, old = Cache(tmp_path), time.time() - 40 * 86400
    for folder in FOLDERS:
        (tmp_path / folder / "entry").mkdir(parents=True)
        (tmp_path / folder / "used").mkdir()
        (tmp_path / folder / ".locks").mkdir()
        os.utime(tmp_path / folder / "entry", (old, old))
        os.utime(tmp_path / folder / "used", (old, old))
        cache_folder.hold(tmp_path / folder / "used")
    (tmp_path / "answers").mkdir()
    assert {e.folder for e in cache.prune(older_than_days=30)} == {*FOLDERS}
    assert not (tmp_path / "answers").exists(), "they are about the sources"
    for folder in FOLDERS:
        assert [path.name for path in (tmp_path / folder).glob("[!.]*")] == ["used"]


def test_prune_keeps_what_another_process_is_making(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    kernel(cache, "aaaa")
    with cache_folder.locked(cache.kernel_path("aaaa"), SilentReporter(), "x"):
        assert cache.prune(everything=True) == []
    assert [e.key for e in cache.prune(everything=True)] == ["aaaa"]


def test_a_kernel_is_named_by_a_beginning_that_only_it_has(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for name in ("ab", "abc", "abd"):
        kernel(cache, name)
    with pytest.raises(InputError, match="fits several kernels: ab, abc, abd"):
        cache.prune(["a"])
    assert [e.key for e in cache.prune(["ab"])] == ["ab"]
    assert {e.key for e in cache.entries()} == {"abc", "abd"}


def test_prune_keeps_what_other_processes_use_and_says_so(tmp_path: Path) -> None:
    reporter = Notes()
    cache = Cache(tmp_path, reporter)
    used = kernel(cache, "aaaa")
    kernel(cache, "bbbb")
    argv = [sys.executable, "-P", "-c", HOLDER, str(used)]
    users = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for user in users:
        assert user.stdout is not None and user.stdout.readline() == b"\n", (
            "several hold it at once"
        )
    assert [e.key for e in cache.prune(everything=True, dry_run=True)] == ["bbbb"]
    assert cache.prune(["aaaa"]) == []
    assert ["aaaa" in note and "uses it" in note for note in reporter.notes] == [True, True]
    for user in users:
        assert used.is_dir()
        user.communicate()
    assert {e.key for e in cache.prune(everything=True)} == {"aaaa", "bbbb"}


def test_a_kernel_that_was_looked_up_stays_until_the_process_ends(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    kernel(cache, "aaaa")
    assert cache.lookup("aaaa", "base") is not None
    assert cache.prune(everything=True) == []
    assert cache.lookup("aaaa", "base") is not None


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("bzImage", b"image of bbbb"),
        ("bzImage", None),
        ("vmlinux", b"symbolt"),
        ("vmlinux", None),
        ("kernel.json", b""),
        ("kernel.json", b'{"image":{}}'),
        ("kernel.json", b"[" * 100_000),
        ("kernel.json", b"[1]"),
        ("kernel.json", b'{"image":7}'),
        ("kernel.json", None),
    ],
)
def test_a_damaged_kernel_is_missing_and_can_be_removed(
    tmp_path: Path, file: str, damage: bytes | None
) -> None:
    reporter = Notes()
    cache = Cache(tmp_path, reporter)
    for _ in range(2):
        path = kernel(cache, "aaaa") / file
        path.unlink() if damage is None else path.write_bytes(damage)
        assert [entry.key for entry in cache.entries()] == ["aaaa"]
        assert cache.steps("x86_64", variant=False) == (7 if file != "kernel.json" else None)
        if not reporter.notes:
            assert cache.lookup("aaaa", "base") is None
            assert not path.parent.exists(), "it is built again where no folder is"
            assert len(reporter.notes) == 1 and "aaaa" in reporter.notes[0]
    os.close(cache_folder._held.pop(path.parent))
    assert [entry.key for entry in cache.prune(["aa"])] == ["aaaa"]


def test_after_pruning_a_source_its_name_is_resolved_again(tmp_path: Path) -> None:
    (tmp_path / "sources" / "debian-6.12.1").mkdir(parents=True)
    (tmp_path / "answers").mkdir()
    Cache(tmp_path).prune(everything=True)
    assert not (tmp_path / "answers").exists()


def test_the_key_depends_only_on_what_the_kernel_is_built_from(tmp_path: Path) -> None:
    patch, same = tmp_path / "a.patch", tmp_path / "b.patch"
    patch.write_text("diff")
    same.write_text("diff")
    a, b = WantedSymbol("A", "y", False, "f", 1), WantedSymbol("B", "n", False, "f", 2)
    reference = key("debian:6.12.1", [patch], [a, b], "x86_64", "gcc 12")
    moved = [replace(b, line=9), replace(a, file="g", optional=True)]
    assert key("debian:6.12.1", [same], moved, "x86_64", "gcc 12") == reference
    others = {
        key("debian:6.12.2", [patch], [a, b], "x86_64", "gcc 12"),
        key("debian:6.12.1", [], [a, b], "x86_64", "gcc 12"),
        key("debian:6.12.1", [patch], [a], "x86_64", "gcc 12"),
        key("debian:6.12.1", [patch], [a, replace(b, value="y")], "x86_64", "gcc 12"),
        key("debian:6.12.1", [patch], [a, b], "arm64", "gcc 12"),
        key("debian:6.12.1", [patch], [a, b], "x86_64", "gcc 13"),
    }
    assert len(others | {reference}) == 7
    # The author of two patches must not find texts with one key: that takes the root of all keys in
    # attempts.
    assert {len(each) for each in others} == {32}


def test_concurrent_processes_make_a_folder_once_and_see_it_complete(tmp_path: Path) -> None:
    target, log = tmp_path / "kernels" / "k", tmp_path / "log"
    argv = [sys.executable, "-P", "-c", BUILDER, str(target), str(log)]
    running = [
        subprocess.Popen([*argv, name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two", "three")
    ]
    assert [process.communicate()[0].split() for process in running] == [["1", "20"]] * 3
    assert len(log.read_text().splitlines()) == 1


def test_a_killed_process_leaves_only_a_scratch_folder_which_the_next_removes(
    tmp_path: Path,
) -> None:
    target, log = tmp_path / "kernels" / "k", tmp_path / "log"
    argv = [sys.executable, "-P", "-c", BUILDER, str(target), str(log)]
    victim = subprocess.Popen([*argv, "victim"], stdout=subprocess.DEVNULL)
    left = target.with_name(".k.tmp")
    while not left.is_dir() or not list(left.iterdir()):
        assert victim.poll() is None
        time.sleep(0.005)
    victim.kill()
    victim.wait()
    assert left.is_dir() and not target.exists()
    done = subprocess.run([*argv, "next"], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["1", "20"]
    assert not left.exists()


def test_sweep_removes_scratch_folders_that_are_not_locked(tmp_path: Path) -> None:
    (tmp_path / ".unlocked.tmp").mkdir()
    (tmp_path / ".locked.tmp").mkdir()
    with cache_folder.locked(tmp_path / "locked", SilentReporter(), "x"):
        cache_folder.sweep(tmp_path)
        assert not (tmp_path / ".unlocked.tmp").exists()
        assert (tmp_path / ".locked.tmp").exists()


def test_a_failed_block_publishes_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), cache_folder.published(tmp_path / "k") as work:
        (work / "half").touch()
        raise RuntimeError
    assert not any(path for path in tmp_path.iterdir() if path.name != ".locks")


def test_a_full_disk_is_an_error_before_and_while_writing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="needs 1000000000 MB"):
        cache_folder.need_space(tmp_path, 10**9, "all")
    with pytest.raises(LabError, match="disk filled up"), cache_folder.scratch(tmp_path / "k"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="other"), cache_folder.scratch(tmp_path / "k"):
        raise OSError(errno.EIO, "other")


def test_a_cache_where_no_program_may_run_is_refused(tmp_path: Path) -> None:
    check = (
        "from pathlib import Path; from kteardown.kernels import cache_folder; "
        f"cache_folder.check_path(Path('{tmp_path}/new/cache'))"
    )
    script = f'mount -t tmpfs -o "$0" none {tmp_path} && exec "$@" -c "{check}"'
    said = [
        subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", script, options, *python()],
            check=False,
            capture_output=True,
            text=True,
        ).stderr
        for options in ("nosuid", "noexec")
    ]
    assert said[0] == ""
    assert "InputError" in said[1] and "mounted noexec" in said[1]
