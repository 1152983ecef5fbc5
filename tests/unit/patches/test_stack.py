"""Series that are made on top of others."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.kernels import source as kernel_source
from kteardown.kernels.source import Sources
from kteardown.patches import posted
from kteardown.patches.stack import base_of_stack, read_stack
from kteardown.patches.tried_source import Base
from kteardown.progress import SilentReporter

FILE = "kernel/ours.c"


def git(tree: Path, *argv: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    return subprocess.run(
        ["git", "-C", str(tree), *identity, *argv], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a tag, v1, and three series: each changes what the one before it made."""
    tree = tmp_path / "linux"
    (tree / "kernel").mkdir(parents=True)
    for name in ("Kconfig", "Kbuild", "MAINTAINERS"):
        (tree / name).write_text("one\n")
    (tree / FILE).write_text("".join(f"line {n}\n" for n in range(9)))
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "v1")
    git(tree, "tag", "v1")
    for name in "ABC":
        for part in (1, 2):
            text = (tree / FILE).read_text()
            (tree / FILE).write_text(text.replace("line 4", f"line 4 {name}{part}"))
            git(tree, "commit", "-qam", f"ours: {name}{part}")
        written = git(tree, "format-patch", "-q", "--stdout", "HEAD~2")
        (tmp_path / f"{name}.mbox").write_text(written)
    git(tree, "checkout", "-q", "v1")
    return tree


def with_lines(tmp_path: Path, name: str, text: str) -> str:
    """Return the path of series ``name`` with ``text`` in the message of its first patch."""
    file = tmp_path / f"{name}-with.mbox"
    first, separator, rest = (tmp_path / f"{name}.mbox").read_text().partition("\n---\n")
    file.write_text(f"{first}\n{text}\n{separator}{rest}")
    return str(file)


def tried(
    whats: Sequence[str], tree: Path, tmp_path: Path
) -> tuple[posted.PostedSeries, Base, Sources]:
    cache, reporter = tmp_path / "cache", SilentReporter()
    stack = read_stack(whats, cache_dir=cache, reporter=reporter)
    sources = Sources(cache, reporter)
    return *base_of_stack(stack, sources, specs=[f"git:{tree}@v1"]), sources


def test_several_series_are_stacked_in_order(tree: Path, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{name}.mbox") for name in "ABC"]
    series, base, sources = tried(files, tree, tmp_path)
    assert series.subjects == ("ours: C1", "ours: C2")
    assert len(base.patches) == 2
    assert base.source.endswith(f"@git:{tree}@v1")
    assert base.id.startswith("patched:ours-b1-")
    assert base.chosen.sentence().startswith("git:linux@")
    assert [note.partition(" (")[0] for note in series.notes] == [
        "applied before it: ours: A1",
        "applied before it: ours: B1",
    ]
    unpacked = sources.tree(sources.identify(base.source))
    assert "line 4 B2 B1 A2 A1\n" in (unpacked / FILE).read_text()
    assert (tree / FILE).read_text().count("A1") == 0
    # The name is enough to have the same tree in another cache.
    again = Sources(tmp_path / "other", SilentReporter())
    assert again.identify(base.source).id == base.id
    assert (again.tree(again.identify(base.source)) / FILE).read_text() == (
        unpacked / FILE
    ).read_text()
    kernel_source.check_source(base.source)


def test_a_series_alone_has_the_plain_source(tree: Path, tmp_path: Path) -> None:
    series, base, _ = tried([str(tmp_path / "A.mbox")], tree, tmp_path)
    assert (base.source, series.notes) == (f"git:{tree}@v1", ())


def test_files_of_one_series_are_no_stack(tree: Path, tmp_path: Path) -> None:
    git(tree, "format-patch", "-q", "-o", str(tmp_path), "v1..main~4")
    files = sorted(map(str, tmp_path.glob("000*.patch")), reverse=True)
    assert len(files) == 2
    series, base, _ = tried(files, tree, tmp_path)
    assert (series.subjects, series.missing, len(base.patches)) == (("ours: A1", "ours: A2"), (), 2)
    assert (base.source, series.notes) == (f"git:{tree}@v1", ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "prerequisite-message-id: <20260501-a-v1-0@example.org>",
            ("20260501-a-v1-0@example.org",),
        ),
        ("prerequisite-message-id: a@example.org\nprerequisite-patch-id: 12ab", ("a@example.org",)),
        (
            "prerequisite-change-id: 20260501-ours:v2\nprerequisite-patch-id: 12ab",
            ("change-id 20260501-ours:v2",),
        ),
        (
            "prerequisite-patch-id: 12ab\nprerequisite-patch-id: 34cd",
            ("patch-id 12ab", "patch-id 34cd"),
        ),
        ("Based-on: <a@example.org>\n^ (ours: A)", ("a@example.org",)),
        ("This depends on https://lore.kernel.org/all/a@example.org/.", ("a@example.org",)),
        ("It applies on top of\n<a-1@example.org>, which frees them.", ("a-1@example.org",)),
        (
            "Depends on [2] and is on top of [1].\n\n[1] https://lore.kernel.org/r/a@example.org\n"
            "[2]: https://lore.kernel.org/linux-mm/b@example.org/T/#u",
            ("b@example.org", "a@example.org"),
        ),
        (
            "Depends on:\npatch 2/2:\n- theirs [1]\npatch 1/2:\n- <b-1@example.org>\n\nSee [2].\n\n"
            "[1] https://lore.kernel.org/r/a@example.org\n[2] "
            "https://lore.kernel.org/r/c@example.org",
            ("a@example.org", "b-1@example.org"),
        ),
        ("Depends on:\nCONFIG_OURS\n\nSee https://lore.kernel.org/all/a@example.org/", ()),
        ("It depends on CONFIG_OURS. See https://lore.kernel.org/all/a@example.org/", ()),
        ("On top of v6.19 it is faster, says\n\nhttps://lore.kernel.org/all/a@example.org/", ()),
        ("Rebased on top of v6.19\nv4: https://lore.kernel.org/all/a@example.org/", ()),
        ("This was suggested in <a@example.org>.", ()),
        ("It is on top of what A. Author <author@example.org> sent.", ()),
        ("It depends on 1/2, as discussed in https://lore.kernel.org/all/a@example.org/", ()),
    ],
)
def test_what_a_series_is_made_on_is_read(
    text: str, names: Sequence[str], tree: Path, tmp_path: Path
) -> None:
    file = with_lines(tmp_path, "B", text)
    found = posted.read_series(file, cache_dir=tmp_path / "cache", reporter=SilentReporter())
    assert found.made_on == names


def test_without_what_it_is_made_on_the_error_names_that(tree: Path, tmp_path: Path) -> None:
    file = with_lines(tmp_path, "B", "prerequisite-message-id: <a@example.org>")
    with pytest.raises(BuildError) as caught:
        tried([file], tree, tmp_path)
    assert caught.value.message.endswith("made on top of <a@example.org>")
    assert "kteardown try lore:a@example.org" in caught.value.hint
    assert "hunk" not in caught.value.message
    # It is not asked for where the user gave another series, nor where it is not needed.
    assert tried([str(tmp_path / "A.mbox"), file], tree, tmp_path)[0].notes[1:] == ()
    git(tree, "am", "-q", str(tmp_path / "A.mbox"))
    git(tree, "tag", "-f", "v1")
    series, base, _ = tried([file], tree, tmp_path)
    assert base.source == f"git:{tree}@v1"
    assert series.notes == ("made on top of <a@example.org>, which is not applied",)


@pytest.fixture
def archive(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive with the three series: each names the one before it."""
    files = {}
    for name, needs in (("A", ""), ("B", "A"), ("C", "B")):
        text = (
            f"prerequisite-message-id: <{needs}@x>\nprerequisite-patch-id: 12ab"
            if needs
            else "Why."
        )
        files[f"{name}@x"] = Path(with_lines(tmp_path, name, text))

    def fetch(message_id: str, *_: object) -> Path:
        if message_id not in files:
            raise InputError(f"the archive has no mail {message_id}", hint="check it.")
        return files[message_id]

    monkeypatch.setattr("kteardown.patches.posted.fetch", fetch)


@pytest.mark.usefixtures("archive")
def test_of_the_archive_what_is_needed_comes_with_it(tree: Path, tmp_path: Path) -> None:
    series, base, sources = tried(["lore:C@x"], tree, tmp_path)
    unpacked = sources.tree(sources.identify(base.source))
    assert "line 4 B2 B1 A2 A1\n" in (unpacked / FILE).read_text()
    assert [note[:19] for note in series.notes] == ["applied before it: "] * 2


@pytest.mark.usefixtures("archive")
def test_what_the_source_has_already_is_not_applied_again(tree: Path, tmp_path: Path) -> None:
    git(tree, "am", "-q", str(tmp_path / "A.mbox"), str(tmp_path / "B.mbox"))
    git(tree, "tag", "-f", "v1")
    series, base, _ = tried(["lore:C@x"], tree, tmp_path)
    assert base.source == f"git:{tree}@v1"
    assert len(series.notes) == 1


def test_series_that_name_each_other_end(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"{name}@x": Path(with_lines(tmp_path, name, f"Based-on: <{other}@x>"))
        for name, other in ("AB", "BA")
    }
    monkeypatch.setattr("kteardown.patches.posted.fetch", lambda named, *_: files[named])
    stack = read_stack(["lore:B@x"], cache_dir=tmp_path / "cache", reporter=SilentReporter())
    assert [one.title for one in (*stack.below, stack.top)] == ["ours: A1", "ours: B1"]


@pytest.mark.parametrize("spec", ["patched:/none@debian:7.3", "patched:/tmp", "patched:x@image:y"])
def test_a_patched_source_needs_a_folder_of_patches_and_a_source(spec: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder of patches"):
        Sources(tmp_path, SilentReporter()).identify(spec)
    with pytest.raises(InputError, match="no folder of patches"):
        kernel_source.check_source(spec)


def test_a_diff_without_a_mail_is_named_without_an_author(tree: Path, tmp_path: Path) -> None:
    diff = tmp_path / "plain.diff"
    diff.write_text(f"--- a/{FILE}\n+++ b/{FILE}\n@@ -1,2 +1,2 @@\n-another\n+other\n line 1\n")
    with pytest.raises(BuildError) as error:
        tried([str(diff)], tree, tmp_path)
    assert error.value.message.splitlines()[-1] == "  the series is 'plain'"
