"""The layout twin: the files that get the function, the patch, and the check of the built
kernel."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import BuildError
from kteardown.kernels import layout_twin
from kteardown.kernels.apply_patches import apply
from kteardown.kernels.layout_twin import check_moved, touched_files
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter

HEAD = "From: A\nSubject: [PATCH] x\n---\n"


def changing(path: Path, *names: str) -> Path:
    path.write_text(
        HEAD + "".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-old\n+new\n" for n in names)
    )
    return path


def making(path: Path, name: str) -> Path:
    path.write_text(HEAD + f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+new\n")
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel tree in a git repository."""
    tree = tmp_path / "linux"
    (tree / "kernel" / "sched").mkdir(parents=True)
    for name in ("Kconfig", "Kbuild", "kernel/exit.h"):
        (tree / name).write_text("old\n")
    (tree / "kernel/exit.c").write_text("/* one */\nint one;\nint two;\nint three;\n")
    (tree / "kernel/sched/core.c").write_text("int core;")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", "-C", tree, *command], check=True)
    return tree


def twin(tree: Path, cache: Path, *patches: Path, unpack: bool = True) -> KernelRequest | None:
    base = KernelRequest("base", f"git:{tree}")
    variants = [replace(base, name=f"v{n}", patches=(patch,)) for n, patch in enumerate(patches)]
    return layout_twin.request(base, variants, Sources(cache, SilentReporter()), unpack=unpack)


def test_touched_files_are_the_c_files_that_a_series_changes_and_none_creates(
    tmp_path: Path,
) -> None:
    one = changing(tmp_path / "1.patch", "kernel/exit.c", "include/linux/a.h")
    two = changing(tmp_path / "2.patch", "mm/memory.c", "kernel/new.c")
    assert touched_files([[one], [making(tmp_path / "3.patch", "kernel/new.c"), two]]) == (
        "kernel/exit.c",
        "mm/memory.c",
    )


def test_the_patch_applies_and_adds_a_differently_named_function_to_the_top_of_each_file(
    tree: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    patch = changing(tmp_path / "1.patch", "kernel/exit.c", "kernel/sched/core.c", "kernel/gone.c")
    request = twin(tree, cache, patch)
    assert request is not None
    (tmp_path / "out").mkdir()
    patched = apply(tree, request.patches, tmp_path / "out", "here")
    assert patched.changed == ("kernel/exit.c", "kernel/sched/core.c")
    names = []
    for name in patched.changed:
        text = (tmp_path / "out" / name).read_text()
        assert text.endswith((tree / name).read_text())
        names.append(text.splitlines()[0].split()[-1])
    assert names == [
        "kteardown_layout_kernel_exit(void)",
        "kteardown_layout_kernel_sched_core(void)",
    ]


def test_series_that_touch_the_same_files_share_one_patch(tree: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    patch = changing(tmp_path / "1.patch", "kernel/exit.c")
    assert twin(tree, cache, patch, unpack=False) is None
    first = twin(tree, cache, patch)
    assert first is not None
    assert twin(tree, cache, changing(tmp_path / "2.patch", "kernel/exit.c"), unpack=False) == first


def test_a_series_without_a_c_file_has_no_layout_twin(tree: Path, tmp_path: Path) -> None:
    assert twin(tree, tmp_path / "cache", changing(tmp_path / "1.patch", "kernel/exit.h")) is None
    assert twin(tree, tmp_path / "cache", changing(tmp_path / "2.patch", "kernel/gone.c")) is None


@given(st.lists(st.from_regex(r"[a-z]{1,4}(/[a-z_]{1,4}){0,2}\.c", fullmatch=True), unique=True))
def test_the_functions_of_different_files_have_different_names(files: list[str]) -> None:
    functions = {layout_twin._function(file).split("(void)")[0] for file in files}
    assert len(functions) == len({file.replace("/", "_") for file in files})


def image(folder: Path, *symbols: str) -> KernelImage:
    folder.mkdir()
    (folder / "System.map").write_text("".join(f"{symbol}\n" for symbol in symbols))
    return KernelImage(
        name="",
        image=folder / "bzImage",
        source="",
        series="",
        arch="x86_64",
        release="",
        compiler="",
        config_hash="",
        image_hash="",
    )


def test_a_layout_twin_must_move_the_code_after_its_functions(tmp_path: Path) -> None:
    base = image(tmp_path / "base", "1000 T first", "2000 t try_to_freeze_tasks", "9000 D data")
    moved = image(
        tmp_path / "moved",
        "1000 T first",
        "2000 t kteardown_layout_a",
        "2030 t try_to_freeze_tasks",
    )
    check_moved(base, moved)
    absent = image(tmp_path / "absent", "1000 T first", "2030 t try_to_freeze_tasks")
    with pytest.raises(BuildError, match="its functions are not in the kernel"):
        check_moved(base, absent)
    behind = image(
        tmp_path / "behind",
        "1000 T first",
        "1800 t kteardown_layout_a",
        "2000 t try_to_freeze_tasks",
    )
    with pytest.raises(BuildError, match="at the same addresses as in base"):
        check_moved(base, behind)
