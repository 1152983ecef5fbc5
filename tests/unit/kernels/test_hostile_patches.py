"""Patches of strangers: links, names, limits. Nothing outside of the scratch folder may change."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError, KteardownError, damaged
from kteardown.kernels.apply_patches import apply, files_in, read_patch
from kteardown.patches.changed_lines import changed_lines
from kteardown.patches.failing_hunks import failing_hunks
from kteardown.patches.merging import blob_id, merge, with_less_context
from kteardown.patches.tried_source import TriedSource

NOT_TRIED = TriedSource("here", "here", "fails")
EDIT = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for name in ("kernel/exit.c", "include/a.h", "Makefile"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("one\ntwo\nthree\n")
    (tree / "arch").symlink_to("kernel")
    return tree


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "exit.c").write_text("mine\n")
    return victim


def patch(tmp_path: Path, text: str, number: int = 1) -> Path:
    path = tmp_path / f"{number:04}-x.patch"
    path.write_text(f"From: A <a@example.org>\nSubject: [PATCH] x\n\nwhy\n---\n{text}-- \n2.39\n")
    return path


def link(name: str, target: str) -> str:
    return (
        f"diff --git {name} {name.replace('a/', 'b/', 1)}\nnew file mode 120000\nindex "
        "0000000..1111111\n"
        f"--- /dev/null\n+++ {name.replace('a/', 'b/', 1)}\n@@ -0,0 +1 @@\n+{target}\n"
        "\\ No newline at end of file\n"
    )


def edit(name: str, old: str = "a/", new: str = "b/") -> str:
    return f"diff --git {old}{name} {new}{name}\n--- {old}{name}\n+++ {new}{name}\n{EDIT}"


def create(name: str, old: str = "a/", new: str = "b/", mode: str = "100644") -> str:
    head = f"diff --git {old}{name} {new}{name}\nnew file mode {mode}\n"
    return head + f"--- /dev/null\n+++ {new}{name}\n@@ -0,0 +1 @@\n+int x;\n"


def applied(tree: Path, tmp_path: Path, *patches: Path) -> tuple[set[str], tuple[str, ...]]:
    out = tmp_path / "out"
    out.mkdir()
    done = apply(tree, patches, out, "here")
    return set(done.changed), done.removed


EVERY: list[Callable[[Path, Sequence[Path], Path], object]] = [
    lambda tree, patches, out: apply(tree, patches, out, "here"),
    lambda tree, patches, _: failing_hunks(NOT_TRIED, tree, patches),
    lambda tree, patches, _: with_less_context(patches, tree),
    lambda tree, patches, _: merge(patches, tree, [tree], []),
]


@pytest.mark.parametrize("way", EVERY)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a/kernel", "{victim}"),
        ("a/new", "{victim}"),
        ('"a/.merged"', "{victim}"),
        ("a/include/out.h", "../../victim/exit.c"),
        ("a/include/b.h", "../arch/../../victim/exit.c"),
    ],
)
def test_a_link_out_of_the_tree_is_refused_and_nothing_is_written(
    way: Callable[..., object], name: str, target: str, tree: Path, victim: Path, tmp_path: Path
) -> None:
    one = patch(tmp_path, link(name, target.format(victim=victim)))
    two = patch(tmp_path, edit("kernel/exit.c") + create("new/exit.c"), 2)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=r"0001-x\.patch makes a"):
        way(tree, [one, two] if name == "a/kernel" else [one], tmp_path / "out")
    assert [(path.name, path.read_text()) for path in victim.iterdir()] == [("exit.c", "mine\n")]


def test_a_link_over_a_folder_and_a_file_below_a_link_are_refused(
    tree: Path, tmp_path: Path
) -> None:
    over = patch(tmp_path, link("a/kernel", "include"))
    with pytest.raises(InputError, match="makes a file of kernel, which is a folder"):
        applied(tree, tmp_path, over)
    below = [patch(tmp_path, link("a/new", "include")), patch(tmp_path, create("new/x.h"), 2)]
    with pytest.raises(InputError, match=r"0001-x\.patch makes a file of new, which is a folder"):
        failing_hunks(NOT_TRIED, tree, below)
    with pytest.raises(InputError, match=r"changes arch/exit\.c, which is behind a symbolic link"):
        failing_hunks(NOT_TRIED, tree, [patch(tmp_path, edit("arch/exit.c"))])


def test_a_link_in_the_tree_is_one_of_the_changed_files(tree: Path, tmp_path: Path) -> None:
    text = link("a/include/linux/b.h", "../a.h") + edit("kernel/exit.c")
    assert applied(tree, tmp_path, patch(tmp_path, text)) == (
        {"include/linux/b.h", "kernel/exit.c"},
        (),
    )
    assert (tmp_path / "out/include/linux/b.h").readlink() == Path("../a.h")


def test_a_link_of_the_tree_is_copied_as_a_link(tree: Path, tmp_path: Path) -> None:
    (tree / "secret.h").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_text("one\ntwo\nthree\n")
    with pytest.raises(BuildError, match=r"secret\.h"):
        applied(tree, tmp_path, patch(tmp_path, edit("secret.h")))
    assert (tmp_path / "victim").read_text() == "one\ntwo\nthree\n"


def test_only_what_git_wrote_is_read_as_a_merged_patch(tree: Path, tmp_path: Path) -> None:
    text = edit("kernel/exit.c") + create("0000-other.patch") + create("out/0000-x.patch")
    merged = with_less_context([patch(tmp_path, text)], tree)
    assert merged is not None
    assert [name for name, _ in merged] == ["0001-x.patch"]


def test_attributes_of_a_patch_do_not_join_conflicts(tree: Path, tmp_path: Path) -> None:
    blob = blob_id(tree / "kernel/exit.c")
    other = tmp_path / "other" / "kernel" / "exit.c"
    other.parent.mkdir(parents=True)
    other.write_text("one\nanother\nthree\n")
    changed = edit("kernel/exit.c").replace("--- ", f"index {blob}..{40 * '1'} 100644\n--- ", 1)
    series = [
        patch(tmp_path, create(".gitattributes").replace("int x;", "*.c merge=union")),
        patch(tmp_path, changed, 2),
    ]
    assert merge(series, other.parents[1], [tree], []) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (create("../x"), "outside of the kernel tree"),
        (create("/etc/x", "", ""), "outside of the kernel tree"),
        (
            create("x").replace("b/x", '"b/\\056\\056/x"').replace("a/x", '"a/\\056\\056/x"'),
            "outside",
        ),
        (create(".git/hooks/pre-commit"), "cannot have"),
        (create("include/.GIT/config"), "cannot have"),
        (create("x\x1b]0;y\x07.h"), "cannot have"),
        (create("n" * 300), "cannot have"),
        (create("module", mode="160000"), "a submodule or a special file"),
        ("--- a/x\n+++ b/x\n@@ -1 +1,99999999999 @@\n-a\n+b\n", "9 digits in a number"),
        ("--- a/x\n+++ b/x\n@@ -1,-1 +1 @@\n-a\n+b\n", "damaged patch"),
    ],
)
def test_names_and_modes_that_a_tree_cannot_have_are_refused(
    text: str, message: str, tree: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        applied(tree, tmp_path, patch(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new"),
    [("a/", "b/"), ("i/", "w/"), ("linux.orig/", "linux/"), ("old/", "new/"), ("", "")],
)
def test_names_are_stripped_whatever_their_prefix_is(
    old: str, new: str, tree: Path, tmp_path: Path
) -> None:
    text = edit("kernel/exit.c", old, new) + create("include/new.h", old, new)
    later = patch(
        tmp_path,
        f"--- {old}include/new.h\n+++ {new}include/new.h\n@@ -1 +1 @@\n-int x;\n+int y;\n",
        2,
    )
    found = applied(tree, tmp_path, patch(tmp_path, text), later)
    assert found == ({"kernel/exit.c", "include/new.h"}, ())
    assert (tmp_path / "out/include/new.h").read_text() == "int y;\n"
    assert not failing_hunks(NOT_TRIED, tree, [patch(tmp_path, text)]).failing
    assert with_less_context([patch(tmp_path, text)], tree)


def test_names_are_those_that_git_reads(tree: Path, tmp_path: Path) -> None:
    quoted = (
        create("include/\\303\\244.h", '"a/', '"b/').replace(".h ", '.h" ').replace(".h\n", '.h"\n')
    )
    text = quoted + create("include/ö.h") + create("include/a b.h\t").replace("\t ", " ")
    rename = (
        "diff --git a/include/a.h b/include/b.h\nsimilarity index 100%\nrename from include/a.h\n"
    )
    text += rename + "rename to include/b.h\n"
    changed, removed = applied(tree, tmp_path, patch(tmp_path, text))
    assert changed == {"include/ä.h", "include/ö.h", "include/a b.h", "include/b.h"}
    assert removed == ("include/a.h",)
    stays = dict(files_in(patch(tmp_path, text + edit("kernel/exit.c"))))
    assert stays == dict.fromkeys((*changed, *removed), False) | {"kernel/exit.c": True}


def test_the_text_of_a_failing_hunk_is_utf_8(tree: Path, tmp_path: Path) -> None:
    text = edit("kernel/exit.c").replace("two", "zwö")
    (hunk,) = failing_hunks(NOT_TRIED, tree, [patch(tmp_path, text)]).failing
    assert "-zwö" in hunk.text
    with pytest.raises(BuildError, match="zwö"):
        applied(tree, tmp_path, patch(tmp_path, text))


def test_a_renamed_file_without_hunks_counts_as_one(tree: Path, tmp_path: Path) -> None:
    rename = "diff --git a/no.h b/b.h\nsimilarity index 100%\nrename from no.h\nrename to b.h\n"
    found = failing_hunks(NOT_TRIED, tree, [patch(tmp_path, rename)])
    assert (len(found.failing), found.hunks) == (1, 1)


def test_a_folder_that_is_a_git_repository_is_not_used(tree: Path, tmp_path: Path) -> None:
    """A patch can make one: HEAD, refs and objects are names as any other."""
    names = ("HEAD", "config", "refs/x", "objects/x")
    bare = "".join(create(name) for name in names).replace("int x;", "ref: refs/x", 1)
    bare = bare.replace("int x;", "[core", 1)
    two = patch(tmp_path, edit("kernel/exit.c"), 2)
    assert applied(tree, tmp_path, patch(tmp_path, bare), two)[0] == {*names, "kernel/exit.c"}


def test_a_patch_of_more_lines_than_a_series_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1,000,000 lines"):
        read_patch(patch(tmp_path, create("x") + 1_000_001 * "\n"))


def test_what_a_parser_raises_becomes_an_error_that_names_the_input() -> None:
    with pytest.raises(InputError, match="x is damaged: 'key'"), damaged("x", hint="y."):
        raise KeyError("key")
    with pytest.raises(KteardownError, match=r"^other$"), damaged("x", hint="y."):
        raise BuildError("other", hint="y.")


def test_the_configuration_of_the_user_and_of_the_folder_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[diff]\n\texternal = false\n")
    assert changed_lines("a\n", "b\n") == ([1], [1])
    (tmp_path / ".gitconfig").unlink()
    subprocess.run(["git", "init", "-q", tmp_path / "here"], check=True)
    subprocess.run(["git", "-C", tmp_path / "here", "config", "diff.external", "false"], check=True)
    monkeypatch.chdir(tmp_path / "here")
    assert changed_lines("a\n", "b\n") == ([1], [1])
