"""Which kernels a series is for, by its own words and by its files: real git trees and patches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError
from kteardown.patches.warnings import by_version, made_between
from unit.patches.test_find_base import EDIT, LINES, base, git, series, tree  # noqa: F401

MAKEFILE = "# SPDX\nVERSION = 6\nPATCHLEVEL = {}\nSUBLEVEL = 0\n"


def with_trailer(patches: Sequence[Path], trailer: str, number: int = 0) -> Sequence[Path]:
    text = patches[number].read_text()
    patches[number].write_text(text.replace("\n---\n", f"\n{trailer}\n---\n", 1))
    return patches


@pytest.mark.parametrize(
    ("trailer", "first"),
    [
        ("Cc: stable@vger.kernel.org # 6.18+", "6.18"),
        ("Cc: <stable@vger.kernel.org> # v6.18.x", "6.18"),
        ("cc: stable@kernel.org # since 7.2", "7.2"),
        (
            "Cc: stable@vger.kernel.org # 6.19: 12345678: another\nCc: stable@vger.kernel.org # "
            "6.18",
            "6.18",
        ),
        ("Cc: stable@vger.kernel.org # 6.12.y", ""),
        ("Cc: stable@vger.kernel.org # 5.15+", ""),
        ("Cc: stable@vger.kernel.org", ""),
        ("Cc: other@vger.kernel.org # 6.18+", ""),
        ("We need it in 6.18: Cc: stable@vger.kernel.org # 6.18+", ""),
    ],
)
def test_the_stable_versions_of_a_patch_are_compared_with_that_of_the_source(
    tree: Path,  # noqa: F811
    tmp_path: Path,
    trailer: str,
    first: str,
) -> None:
    (tree / "Makefile").write_text(MAKEFILE.format(12))
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "v4")
    git(tree, "tag", "v4")
    patches = with_trailer(series(tree, tmp_path, "v1", EDIT[:1]), trailer)
    commit = git(tree, "rev-parse", "v4")[:12]
    expected = (
        f'"change line 10" is for {first} and newer (Cc: stable), and git:linux@{commit} is 6.12'
    )
    found = base(patches, tree, tmp_path, "v4")
    assert [text.partition(": ")[2] for text in found.warnings if "VERSION" in text] == [
        expected
    ] * bool(first)


def test_a_fix_of_what_the_history_does_not_have_is_named(tree: Path, tmp_path: Path) -> None:  # noqa: F811
    third = git(tree, "rev-parse", "v3").strip()
    patches = series(tree, tmp_path, "v1", EDIT[:1])
    with_trailer(
        patches, f'Fixes: {third[:12]} ("v3")\nFixes: {git(tree, "rev-parse", "v1").strip()} ("v1")'
    )
    (warning,) = base(patches, tree, tmp_path, "v2").warnings
    second = git(tree, "rev-parse", "v2").strip()[:12]
    what = f'"change line 10" fixes {third[:12]} ("v3")'
    assert warning == f"FIXES WHAT IS NOT THERE: {what}, which is not in the history of {second}"
    assert base(patches, tree, tmp_path, "v3").warnings == ()
    with_trailer(patches, 'Fixes: 123456789abc ("elsewhere")')
    (warning,) = base(patches, tree, tmp_path, "v3").warnings
    assert warning.endswith(
        f'fixes 123456789abc ("elsewhere"); {tree} has no such commit to compare with'
    )
    # Of a shallow clone, nothing is known.
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tree}", str(tmp_path / "shallow"))
    assert base(patches, tmp_path / "shallow", tmp_path, "HEAD").warnings == ()


def test_a_branch_that_is_named_as_a_fixed_commit_is_not_it(tree: Path, tmp_path: Path) -> None:  # noqa: F811
    git(tree, "branch", "123456789abc", "v1")
    patches = with_trailer(series(tree, tmp_path, "v1", EDIT[:1]), "Fixes: 123456789abc")
    (warning,) = base(patches, tree, tmp_path, "v3").warnings
    assert "no such commit" in warning


def test_the_patches_that_a_source_has_are_numbered(tree: Path, tmp_path: Path) -> None:  # noqa: F811
    lines = (5, 5, 20, 35)
    edits = [("kernel/exit.c", f"line {n}\n", f"line {n}\nmore {k}\n") for k, n in enumerate(lines)]
    patches = series(tree, tmp_path, "v1", edits)
    git(tree, "checkout", "-q", "v2")
    git(tree, "am", "-q", *map(str, (patches[0], patches[1], patches[3])))
    git(tree, "tag", "v6")
    (tree / "kernel/exit.c").write_text(
        (tree / "kernel/exit.c").read_text().replace("line 20\n", "other\n")
    )
    git(tree, "commit", "-qam", "v7")
    git(tree, "tag", "v7")
    with pytest.raises(BuildError, match="1 of 4 hunks fail; it has patches 1-2, 4 already"):
        base(patches, tree, tmp_path, "v7")


def test_the_releases_between_which_a_series_was_made_are_named(tree: Path, tmp_path: Path) -> None:  # noqa: F811
    (tree / "kernel/fork.c").write_text("fork\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "v4")
    git(tree, "tag", "v4")
    # exit.c is that of v4, and fork.c that of v5.
    for name, text in (("kernel/exit.c", "exit\n"), ("kernel/fork.c", "fork two\n")):
        (tree / name).write_text(text)
        git(tree, "commit", "-qam", name)
    git(tree, "tag", "v5")
    git(tree, "checkout", "-q", "v4")
    (tree / "kernel/fork.c").write_text("fork two\n")
    git(tree, "commit", "-qam", "between")
    middle = git(tree, "rev-parse", "HEAD").strip()
    edits = [("kernel/exit.c", "line 1\n", "LINE 1\n"), ("kernel/fork.c", "two\n", "three\n")]
    patches = series(tree, tmp_path, middle, edits)
    expected = "the files that it was made from are between those of v4 and v5"
    with pytest.raises(BuildError, match=expected):
        base(patches, tree, tmp_path, "", commit="1" * 40)
    git(tree, "checkout", "-q", "-B", "main", middle)
    (tree / "kernel/exit.c").write_text("\n".join([*LINES, "more"]) + "\n")
    git(tree, "commit", "-qam", "more")
    found = base(patches, tree, tmp_path, "", commit="1" * 40)
    assert (found.how, found.warnings) == ("with offsets", (expected,))


def test_releases_are_compared_in_the_order_of_their_versions() -> None:
    assert by_version(["debian:6.12", "kernel.org:7.3.1", "tar:x", "debian:6.1"]) == [
        "kernel.org:7.3.1",
        "debian:6.12",
        "debian:6.1",
    ]
    assert made_between({"7.3": "ab", "6.12": "abc", "6.1": "c"}, 4) == (
        "3 of the 4 files that it was made from are those of 6.12"
    )
    assert made_between({"7.3": "", "6.12": ""}, 4) == ""
