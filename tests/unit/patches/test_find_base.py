"""Which of several versions of a tree takes a series. The versions are tags of a small git tree."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError
from kteardown.kernels.git import store
from kteardown.kernels.source import Sources
from kteardown.patches.find_base import find_base
from kteardown.patches.merging import blob_id
from kteardown.patches.tried_source import Base
from kteardown.progress import SilentReporter

LINES = [f"line {number}" for number in range(1, 61)]


def git(tree: Path, *argv: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    done = subprocess.run(
        ["git", "-C", str(tree), *identity, *argv], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """v1 and v2 differ in line 50; v3 has line 12 changed too, next to what the series changes."""
    tree = tmp_path / "linux"
    (tree / "kernel").mkdir(parents=True)
    for name in ("Kconfig", "Kbuild", "MAINTAINERS"):
        (tree / name).write_text("one\ntwo\nthree\nfour\nfive\nsix\n")
    git(tree, "init", "-q", "-b", "main")
    for tag, changes in (("v1", {}), ("v2", {50: "second"}), ("v3", {12: "third"})):
        for number, text in changes.items():
            LINES_NOW[number - 1] = text
        (tree / "kernel" / "exit.c").write_text("\n".join(LINES_NOW) + "\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", tag)
        git(tree, "tag", tag)
    LINES_NOW[:] = LINES
    return tree


LINES_NOW = list(LINES)


def series(
    tree: Path, tmp_path: Path, start: str, edits: Sequence[tuple[str, str, str]]
) -> list[Path]:
    """Commit each edit (file, old, new) on ``start``, and return the commits as patches."""
    git(tree, "checkout", "-q", start)
    for name, old, new in edits:
        text = (tree / name).read_text()
        assert old in text
        (tree / name).write_text(text.replace(old, new))
        git(tree, "commit", "-qam", f"change {old.strip()}")
    out = tmp_path / "patches" / "series"
    git(tree, "format-patch", "-q", "-o", str(out), f"{start}..HEAD")
    git(tree, "checkout", "-q", "main")
    return sorted(out.iterdir())


def base(
    patches: Sequence[Path], tree: Path, tmp_path: Path, *specs: str, commit: str = ""
) -> Base:
    cache = tmp_path / "cache"
    named = [f"git:{tree}@{spec}" if spec else f"git:{tree}" for spec in specs]
    return find_base(
        patches,
        Sources(cache, SilentReporter()),
        lambda texts: store(texts, "series", cache),
        specs=named,
        base_commit=commit,
    )


EDIT = [("kernel/exit.c", "line 10\n", "LINE 10\n"), ("kernel/exit.c", "line 11\n", "LINE 11\n")]


def test_the_source_that_the_series_was_made_from_is_preferred(tree: Path, tmp_path: Path) -> None:
    found = base(series(tree, tmp_path, "v1", EDIT), tree, tmp_path, "v2", "v1")
    assert (found.source, found.how) == (f"git:{tree}@v1", "exactly")
    assert [a.how for a in found.attempts] == ["with offsets", "exactly"]


def test_the_newest_source_that_takes_it_is_next(tree: Path, tmp_path: Path) -> None:
    found = base(series(tree, tmp_path, "v1", EDIT), tree, tmp_path, "v3", "v2")
    assert (found.source, found.how) == (f"git:{tree}@v2", "with offsets")
    assert found.attempts[0].sentence().endswith("2 of 2 hunks fail")


def test_it_is_merged_where_the_original_files_are_known(tree: Path, tmp_path: Path) -> None:
    edits = [("kernel/exit.c", "line 5\n", "LINE 5\n"), ("kernel/exit.c", "line 9\n", "LINE 9\n")]
    patches = series(tree, tmp_path, "v1", edits)
    found = base(patches, tree, tmp_path, "v3")
    assert (found.how, len(found.patches)) == ("merged", 2)
    assert "DOES NOT APPLY AS POSTED" in found.chosen.sentence()
    assert "third" in found.patches[1].read_text()
    # Without the id of a commit, which has the time: equal patches are one kernel in the cache.
    assert found.patches[1].read_text().startswith(f"From {40 * '0'} ")


def test_documentation_that_does_not_apply_is_left_out(tree: Path, tmp_path: Path) -> None:
    patches = series(tree, tmp_path, "v1", [("MAINTAINERS", "three\n", "drei\n"), *EDIT])
    (tree / "MAINTAINERS").write_text("another text\n")
    git(tree, "commit", "-qam", "v4")
    git(tree, "tag", "v4")
    found = base(patches[1:] + patches[:1], tree, tmp_path, "v2", "v4")
    assert found.left_out == ()
    git(tree, "checkout", "-q", "v2")
    (tree / "MAINTAINERS").write_text("another text\n")
    git(tree, "commit", "-qam", "v5")
    git(tree, "tag", "v5")
    found = base(patches, tree, tmp_path, "v5")
    assert (found.how, found.left_out) == ("with offsets", ("MAINTAINERS",))
    assert len(found.patches) == 2


def test_a_change_that_is_there_already_is_recognized(tree: Path, tmp_path: Path) -> None:
    patches = series(tree, tmp_path, "v1", EDIT)
    git(tree, "checkout", "-q", "v2")
    git(tree, "am", "-q", *map(str, patches))
    git(tree, "tag", "v6")
    with pytest.raises(BuildError, match="has this change already"):
        base(patches[1:], tree, tmp_path, "v6")


def test_hunks_that_fail_are_at_most_a_screen_and_all_in_a_file(tree: Path, tmp_path: Path) -> None:
    edits = [("kernel/exit.c", f"line {n}\n", f"LINE {n}\n") for n in range(2, 60, 8)]
    patches = series(tree, tmp_path, "v1", edits)
    (tree / "kernel" / "exit.c").write_text("quite another file\n")
    git(tree, "commit", "-qam", "v7")
    git(tree, "tag", "v7")
    with pytest.raises(BuildError) as caught:
        base(patches, tree, tmp_path, "v7")
    lines = caught.value.message.splitlines()
    assert "8 of 8 hunks fail" in lines[1]
    assert len(lines) < 40
    file = Path(lines[-1].partition(": ")[2])
    assert file.read_text().count("+LINE") == 8


def test_a_git_tree_is_used_at_the_commit_that_the_series_names(tree: Path, tmp_path: Path) -> None:
    patches = series(tree, tmp_path, "v2", EDIT)
    commit = git(tree, "rev-parse", "v2").strip()
    assert base(patches, tree, tmp_path, "", commit=commit).source == f"git:{tree}@{commit}"
    # Without a base commit, at the newest release that has the files that it was made from.
    assert base(patches, tree, tmp_path, "").source == f"git:{tree}@v2"


def test_blob_ids_are_those_of_git(tree: Path) -> None:
    assert blob_id(tree / "Kconfig") == git(tree, "hash-object", "Kconfig").strip()
    assert blob_id(tree / "not-there") == ""


def test_the_advice_names_the_git_tree_that_was_named(tree: Path, tmp_path: Path) -> None:
    patches = series(tree, tmp_path, "v1", EDIT)
    (tree / "kernel" / "exit.c").write_text("quite another file\n")
    git(tree, "commit", "-qam", "v7")
    git(tree, "tag", "-d", "v1", "v2", "v3")
    git(tree, "checkout", "-q", "--orphan", "unborn")
    git(tree, "tag", "v7", "main")
    git(tree, "branch", "-D", "main")
    git(tree, "reflog", "expire", "--expire=now", "--all")
    for commit, hint in (
        ("", "name its commit: --source git:"),
        ("1" * 40, "made from 111111111111: fetch"),
    ):
        with pytest.raises(
            BuildError, match="no known source takes this series:\n  git:linux@"
        ) as caught:
            base(patches, tree, tmp_path, "", commit=commit)
        assert hint in caught.value.hint and "name a git tree" not in caught.value.hint


def test_a_git_tree_with_other_object_ids_takes_a_series(tree: Path, tmp_path: Path) -> None:
    patches = series(tree, tmp_path, "v1", [("kernel/exit.c", "line 9\n", "LINE 9\n")])
    other = tmp_path / "sha256"
    git(tree, "checkout", "-q", "v3")
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(other))
    for name in ("kernel", "Kconfig", "Kbuild"):
        (tree / name).rename(other / name)
    git(other, "add", "-A")
    git(other, "commit", "-qm", "v3")
    found = find_base(
        patches,
        Sources(tmp_path / "cache", SilentReporter()),
        lambda texts: store(texts, "series", tmp_path / "cache"),
        specs=[f"git:{other}"],
    )
    assert found.how == "with less context"


FREEZER = """\
static bool refrigerator(bool check)
{
	for (;;) {
		lock(&freezer);
		freeze = freezing(current);
		unlock(&freezer);

		frozen = true;
		schedule();
	}

	return frozen;
}

static void first(struct queue *q)
{
	lock(q);
	q->users++;
	unlock(q);
}
"""
LEAVE = (
    "unlock(&freezer);\n\n",
    "unlock(&freezer);\n\n		if (!freeze)\n			break;\n\n",
)
STAMP = ("	q->users++;\n", "	q->time = now();\n	q->users++;\n")


@pytest.fixture
def kernels(tree: Path) -> Path:
    """v1 of a file with functions; 6.1 has it in other lines, in kernels with makefiles."""
    for tag, version, text in (
        ("c1", (7, 2), FREEZER),
        ("c2", (6, 1), f"int more;\n\n{FREEZER}"),
        (
            "c3",
            (6, 12),
            FREEZER.replace(*LEAVE).replace("freezing(current)", "freezing(current, 1)"),
        ),
    ):
        (tree / "kernel/freezer.c").write_text(text)
        (tree / "Makefile").write_text("VERSION = {}\nPATCHLEVEL = {}\n".format(*version))
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", tag)
        git(tree, "tag", tag)
    return tree


def test_a_change_that_is_there_with_another_context_is_not_applied_again(
    kernels: Path, tmp_path: Path
) -> None:
    patches = series(kernels, tmp_path, "c1", [("kernel/freezer.c", *LEAVE)])
    with pytest.raises(BuildError, match="has this change already"):
        base(patches, kernels, tmp_path, "c3")
    assert base(patches, kernels, tmp_path, "c3", "c2").source.endswith("@c2")


def test_a_source_with_a_part_of_the_series_is_none(kernels: Path, tmp_path: Path) -> None:
    edits = [("kernel/freezer.c", *LEAVE), ("kernel/freezer.c", *STAMP)]
    patches = series(kernels, tmp_path, "c1", edits)
    with pytest.raises(BuildError, match="0 of 2 hunks fail; it has patch 1 already") as caught:
        base(patches, kernels, tmp_path, "c3")
    assert "only the other patches" in (caught.value.hint or "")
    assert base(patches[1:], kernels, tmp_path, "c3").how == "with offsets"


def test_the_version_of_the_subject_chooses_the_source(kernels: Path, tmp_path: Path) -> None:
    patches = series(kernels, tmp_path, "c1", [("kernel/freezer.c", *STAMP)])
    specs = [f"git:{kernels}@{tag}" for tag in ("c1", "c2", "c3")]
    cache = tmp_path / "cache"

    def chosen(version: str) -> Base:
        return find_base(
            patches,
            Sources(cache, SilentReporter()),
            lambda texts: store(texts, "series", cache),
            specs=specs,
            version=version,
        )

    assert (chosen("").source, chosen("").warnings) == (specs[0], ())
    with pytest.raises(BuildError, match="has this change already"):
        find_base(
            series(kernels, tmp_path / "again", "c1", [("kernel/freezer.c", *LEAVE)]),
            Sources(cache, SilentReporter()),
            lambda texts: store(texts, "series", cache),
            specs=specs,
            version="6.12",
        )
    assert (chosen("6.1").source, chosen("6.1").warnings) == (specs[1], ())
    other = chosen("5.15")
    assert other.source == specs[0]
    assert [line for line in other.warnings if line.startswith("NOT FOR THIS VERSION")]


def test_a_source_that_never_had_what_is_removed_is_not_said_to_have_the_change(
    kernels: Path, tmp_path: Path
) -> None:
    """Nothing tells a removal that was made from code that was never there."""
    patches = series(
        kernels, tmp_path, "c1", [("kernel/freezer.c", "		frozen = true;\n", "")]
    )
    (kernels / "kernel/freezer.c").write_text(FREEZER.replace("		frozen = true;\n", ""))
    git(kernels, "commit", "-qam", "c4")
    git(kernels, "tag", "c4")
    with pytest.raises(BuildError, match="or never had them"):
        base(patches, kernels, tmp_path, "c4")
