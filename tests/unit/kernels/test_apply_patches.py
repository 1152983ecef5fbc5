from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels import git
from kteardown.kernels.apply_patches import apply, install, read_patch

LINES = [f"line {number}" for number in range(1, 41)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "kernel").mkdir(parents=True)
    (tree / "kernel" / "exit.c").write_text("\n".join(LINES) + "\n")
    (tree / "kernel" / "old.c").write_text("old\n")
    (tree / "Kconfig").write_text("config A\n")
    return tree


def diff(tree: Path, tmp_path: Path, name: str, **changes: str | None) -> Path:
    """Write a patch that makes ``changes`` to ``tree``; in names ``__`` is a slash and ``_c`` is
    ``.c``."""
    before, after = tmp_path / f"{name}-a", tmp_path / f"{name}-b"
    for side in (before, after):
        subprocess.run(["cp", "-a", tree, side], check=True)
    for key, text in changes.items():
        path = after / key.replace("__", "/").replace("_c", ".c")
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    argv = [
        "git",
        "diff",
        "--no-index",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        before.name,
        after.name,
    ]
    text = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    text = text.replace(f"a/{before.name}/", "a/").replace(f"b/{after.name}/", "b/")
    text = text.replace(f"a/{after.name}/", "a/").replace(f"b/{before.name}/", "b/")
    patch = tmp_path / f"{name}.patch"
    patch.write_text(f"From: A\nSubject: {name}\n\nwhy\n---\n{text}-- \n2.39.5\n")
    return patch


def edited(*numbers: int) -> str:
    return (
        "\n".join(line + " changed" if i in numbers else line for i, line in enumerate(LINES, 1))
        + "\n"
    )


def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_patches_apply_in_order_and_do_not_change_the_tree(tree: Path, tmp_path: Path) -> None:
    one = diff(tree, tmp_path, "one", kernel__exit_c=edited(3))
    later = tmp_path / "later"
    subprocess.run(["cp", "-a", tree, later], check=True)
    (later / "kernel/exit.c").write_text(edited(3))
    two = diff(
        later,
        tmp_path,
        "two",
        kernel__exit_c=edited(3, 4),
        kernel__new_c="new\n",
        kernel__old_c=None,
    )

    patched = apply(tree, [one, two], empty(tmp_path), "here")

    assert set(patched.changed) == {"kernel/exit.c", "kernel/new.c"}
    assert patched.removed == ("kernel/old.c",)
    assert not patched.changes_kconfig
    assert (tree / "kernel/exit.c").read_text() == edited()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-al", tree, copy], check=True)
    install(patched, copy)
    assert (copy / "kernel/exit.c").read_text() == edited(3, 4)
    assert (copy / "kernel/new.c").read_text() == "new\n"
    assert not (copy / "kernel/old.c").exists()
    assert (tree / "kernel/exit.c").read_text() == edited()
    assert (tree / "kernel/old.c").read_text() == "old\n"
    assert os.path.samefile(copy / "Kconfig", tree / "Kconfig")


def test_a_patch_to_kconfig_is_reported(tree: Path, tmp_path: Path) -> None:
    patch = diff(tree, tmp_path, "k", Kconfig="config B\n")
    assert apply(tree, [patch], empty(tmp_path), "here").changes_kconfig


def test_a_failure_names_patch_file_and_hunk(tree: Path, tmp_path: Path) -> None:
    patch = diff(tree, tmp_path, "0001-two-hunks", kernel__exit_c=edited(5, 30))
    (tree / "kernel/exit.c").write_text(edited(31))
    with pytest.raises(BuildError) as caught:
        apply(tree, [patch], empty(tmp_path), "debian:6.12.1")
    assert "0001-two-hunks.patch does not apply to debian:6.12.1" in caught.value.message
    assert "kernel/exit.c, hunk 2 of 2 (@@ -27,7 @@" in caught.value.message
    assert "line 31" in caught.value.message
    assert (tree / "kernel/exit.c").read_text() == edited(31)


def test_a_text_about_a_full_disk_is_none(tree: Path, tmp_path: Path) -> None:
    """git shows the text that a hunk expects."""
    (tree / "kernel/old.c").write_text('error("No space left on device");\n')
    patch = diff(tree, tmp_path, "full", kernel__old_c='error("full");\n')
    (tree / "kernel/old.c").write_text("another text\n")
    with pytest.raises(BuildError, match="No space left on device"):
        apply(tree, [patch], empty(tmp_path), "here")


FUNCTIONS = ("static int first(void)", "static int second(void)")


def twice(above: int, *changed: str, label: str = "") -> str:
    """Two functions whose bodies are the same, below lines of text; what is ``changed`` has one
    line more."""
    lines = ["/* text */"] * above
    for head in FUNCTIONS:
        lines += [head, "{", *["\tstep();"] * 6, *([f"{label}:"] if label else [])]
        lines += ["\tlock();"] * (head in changed) + [*["\tleave();"] * 6, "}", ""]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("label", ["", "out"])
def test_a_hunk_that_git_puts_into_another_function_is_an_error(
    tree: Path, tmp_path: Path, function: str, label: str
) -> None:
    """git takes the nearest place: without the text above it, or with more of it, that is the other
    one."""
    file = tree / "kernel" / "exit.c"
    file.write_text(twice(40, label=label))
    patch = diff(tree, tmp_path, "one", kernel__exit_c=twice(40, function, label=label))
    other = {FUNCTIONS[0]: 30, FUNCTIONS[1]: 50}[function]
    file.write_text(twice(other, label=label))
    with pytest.raises(
        BuildError, match=r"one.patch does not apply to x: hunk 1 of kernel/exit.c is for 'static"
    ):
        apply(tree, [patch], empty(tmp_path), "x")
    file.write_text(twice(41, label=label))
    (folder := tmp_path / "near").mkdir()
    apply(tree, [patch], folder, "x")
    assert (folder / "kernel" / "exit.c").read_text() == twice(41, function, label=label)


def test_a_hunk_for_code_that_is_in_another_function_now_applies(
    tree: Path, tmp_path: Path
) -> None:
    file = tree / "kernel" / "exit.c"
    file.write_text(twice(40))
    patch = diff(tree, tmp_path, "one", kernel__exit_c=twice(40, FUNCTIONS[0]))
    moved = "static int first(void)\n{\n}\n\n" + twice(30).replace("first", "moved", 1)
    file.write_text(moved.partition(FUNCTIONS[1])[0])
    apply(tree, [patch], folder := empty(tmp_path), "x")
    assert "lock();" in (folder / "kernel" / "exit.c").read_text()


def test_a_missing_file_is_named(tree: Path, tmp_path: Path) -> None:
    patch = diff(tree, tmp_path, "gone", kernel__old_c="older\n")
    (tree / "kernel/old.c").unlink()
    with pytest.raises(BuildError, match=r"kernel/old\.c: No such file"):
        apply(tree, [patch], empty(tmp_path), "here")


def test_a_patch_applies_in_a_cache_inside_a_git_repository(tree: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    patch = diff(tree, tmp_path, "one", kernel__exit_c=edited(3))
    patched = apply(tree, [patch], empty(tmp_path), "here")
    assert (patched.folder / "kernel/exit.c").read_text() == edited(3)


def test_a_patch_must_not_change_files_outside_the_tree(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "evil.patch"
    patch.write_text("--- a/../../etc/x\n+++ b/../../etc/x\n@@ -1 +1 @@\n-a\n+b\n")
    with pytest.raises(InputError, match="outside of the kernel tree"):
        apply(tree, [patch], empty(tmp_path), "here")


def test_a_damaged_patch_and_a_file_without_a_diff_are_errors(tree: Path, tmp_path: Path) -> None:
    patch = diff(tree, tmp_path, "one", kernel__exit_c=edited(3))
    cut = tmp_path / "cut.patch"
    cut.write_text(patch.read_text()[: patch.read_text().index("+line 3 changed")])
    with pytest.raises(InputError, match="damaged patch") as caught:
        apply(tree, [cut], empty(tmp_path), "here")
    assert "author" in (caught.value.hint or "")  # Who saved it may have saved what was sent.
    note = tmp_path / "note.patch"
    note.write_text("only words\n")
    with pytest.raises(InputError, match="does not contain a diff"):
        apply(tree, [note], tmp_path / "out", "here")


def test_git_reads_a_patch_once_for_all_trees(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = diff(tree, tmp_path, "once", kernel__exit_c=edited(7))
    runs: list[str] = []
    run = git.run

    def counted(*argv: str, data: bytes = b"") -> git.Done:
        runs.append(argv[0])
        return run(*argv, data=data)

    monkeypatch.setattr(git, "run", counted)
    first = read_patch(patch, tree)
    assert runs
    runs.clear()
    assert read_patch(patch, tmp_path / "another") == first
    assert not runs
    patch.write_text(patch.read_text().replace("exit.c", "exec.c"))
    assert read_patch(patch, tree).names == ("kernel/exec.c",)
