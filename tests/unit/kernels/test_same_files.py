"""Patches that leave the same files make the same kernel, whatever their messages say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown.kernels import apply_patches, cache_folder, same_files
from kteardown.kernels.cache import Cache
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import file_hash

CONTEXT = "one\ntwo\nthree\n"


def patch(folder: Path, message: str, added: str, *, mode: str = "") -> Path:
    new = "--- a/ours.c\n+++ b/ours.c\n@@ -1,3 +1,4 @@\n one\n two\n three\n"
    modes = f"old mode 100644\nnew mode {mode}\n" if mode else ""
    path = folder / f"{len(list(folder.iterdir()))}.patch"
    path.write_text(
        f"Subject: {message}\n\n{message}\n---\ndiff --git a/ours.c "
        f"b/ours.c\n{modes}{new}+{added}\n"
    )
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "ours.c").write_text(CONTEXT)
    (tmp_path / "patches").mkdir()
    return tmp_path / "tree"


def digest_of(tree: Path, message: str, added: str, *, base: str = "base", mode: str = "") -> str:
    patches = tree.with_name("patches")
    folder = tree.with_name(f"patched-{len(list(patches.iterdir()))}")
    folder.mkdir()
    made = patch(patches, message, added, mode=mode)
    return same_files.digest(base, apply_patches.apply(tree, [made], folder, "a source"))


def test_only_what_is_built_counts(tree: Path) -> None:
    first = digest_of(tree, "first version", "four")
    assert digest_of(tree, "second version, with a review", "four") == first
    others = [
        digest_of(tree, "first version", "five"),
        digest_of(tree, "first version", "four", base="another"),
        digest_of(tree, "first version", "four", mode="100755"),
    ]
    assert len({first, *others}) == 4


def test_a_file_that_is_removed_counts(tree: Path) -> None:
    text = "".join(f"-{line}\n" for line in CONTEXT.splitlines())
    gone = tree.with_name("gone.patch")
    gone.write_text(
        "Subject: remove\n\n---\ndiff --git a/ours.c b/ours.c\ndeleted file mode 100644\n"
        f"--- a/ours.c\n+++ /dev/null\n@@ -1,3 +0,0 @@\n{text}"
    )
    folder = tree.with_name("removed")
    folder.mkdir()
    removed = apply_patches.apply(tree, [gone], folder, "a source")
    nothing = apply_patches.PatchedFiles(folder, (), ())
    assert removed.removed == ("ours.c",)
    assert same_files.digest("base", removed) != same_files.digest("base", nothing)


def built(cache: Cache, key: str, files: str) -> Path:
    with cache_folder.published(cache.kernel_path(key)) as folder:
        for name in ("bzImage", "vmlinux", "System.map", "config", "build.log"):
            (folder / name).write_text(f"{name} of {key}")
        image = KernelImage(
            name="",
            image=folder / "bzImage",
            source="debian:6.12.117-1",
            series="v1",
            arch="x86_64",
            release="6.12.117",
            compiler="gcc 12",
            config_hash="c",
            image_hash=file_hash(folder / "bzImage"),
        )
        cache.describe(folder, image, steps=7, seconds=9.0, changed_objects=["ours.o"], files=files)
    return cache.kernel_path(key)


def test_a_kernel_of_the_same_files_is_published_for_the_series(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    built(cache, "other", "other files")
    first = built(cache, "v1", "the files")
    assert same_files.reuse(cache, "the files", "v2", "v2")
    image, before = cache.lookup("v2", "changed"), cache.lookup("v1", "changed")
    assert image is not None
    assert before is not None
    assert (image.series, image.image_hash) == ("v2", before.image_hash)
    assert image.image == cache.kernel_path("v2") / "bzImage"
    names = sorted(file.name for file in first.iterdir())
    assert sorted(file.name for file in image.image.parent.iterdir()) == names
    assert image.image.read_text() == "bzImage of v1"
    fields = json.loads((image.image.parent / "kernel.json").read_text())
    assert (fields["changed_objects"], fields["files"]) == (["ours.o"], "the files")


def test_without_a_kernel_of_these_files_nothing_is_published(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    built(cache, "v1", "the files")
    assert not same_files.reuse(cache, "other files", "v2", "v2")
    assert not cache.kernel_path("v2").exists()


def test_a_damaged_kernel_is_not_used_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    (built(cache, "v1", "the files") / "vmlinux").write_text("other symbols")
    (built(cache, "v0", "the files") / "kernel.json").write_text("[1]")
    assert not same_files.reuse(cache, "the files", "v2", "v2")
    assert not cache.kernel_path("v2").exists()
