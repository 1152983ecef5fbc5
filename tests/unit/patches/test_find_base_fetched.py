"""Which sources are fetched until one takes a series, and what a dry run says of the others."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.errors import BuildError, LabError
from kteardown.kernels.git import store
from kteardown.kernels.source import Source, Sources
from kteardown.patches.find_base import find_base
from kteardown.patches.no_base import NoSourceError
from kteardown.patches.tried_source import Base
from kteardown.progress import Reporter, SilentReporter
from unit.patches.test_find_base import STAMP, git, kernels, series, tree

__all__ = ["kernels", "tree"]


class FetchedSources(Sources):
    """Releases of kernel.org that are fetched from tags of a git tree, which counts the fetches."""

    def __init__(self, cache: Path, tree: Path, tags: dict[str, str]) -> None:
        super().__init__(cache, SilentReporter())
        self._tags = tags
        self._git_tree = tree
        self.fetches: list[str] = []

    def _unpack(self, source: Source, folder: Path) -> None:
        self.fetches.append(source.id)
        git(self._git_tree, "checkout", "-q", self._tags[source.id])
        shutil.copytree(self._git_tree, folder, dirs_exist_ok=True)
        git(self._git_tree, "checkout", "-q", "main")


@pytest.mark.parametrize(
    ("start", "version", "tags", "fetched", "chosen"),
    [
        # The first one is exactly that from which the series was made.
        ("c1", "", ("c1", "c2", "c1"), ["7.2"], "7.2"),
        # One that takes it at other lines is enough, too.
        ("c1", "", ("c2", "c1", "c1"), ["7.2"], "7.2"),
        # The first one has another text.
        ("c1", "", ("other", "c1", "c2"), ["7.2", "6.12"], "6.12"),
        # The version of the subject comes first.
        ("c1", "6.1", ("c1", "c1", "c2"), ["6.1"], "6.1"),
    ],
)
def test_no_more_is_fetched_than_until_a_source_takes_the_series(
    kernels: Path,
    tmp_path: Path,
    start: str,
    version: str,
    tags: Sequence[str],
    fetched: Sequence[str],
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patches = series(kernels, tmp_path, start, [("kernel/freezer.c", *STAMP)])
    (kernels / "kernel/freezer.c").write_text("another text\n")
    git(kernels, "commit", "-qam", "other")
    git(kernels, "tag", "other")
    specs = [f"kernel.org:{name}" for name in ("7.2", "6.12", "6.1")]
    sources = FetchedSources(tmp_path / "cache", kernels, dict(zip(specs, tags, strict=True)))
    notes: list[str] = []
    reporter = Reporter()
    monkeypatch.setattr(reporter, "note", notes.append)

    def find(*, fetch: bool) -> Base:
        return find_base(
            patches,
            sources,
            lambda texts: store(texts, "series", tmp_path / "cache"),
            specs=specs,
            version=version,
            fetch=fetch,
            reporter=reporter,
        )

    with pytest.raises(NoSourceError) as absent:
        find(fetch=False)
    assert absent.value.exit_code == 5
    # That which would be fetched first.
    assert f"fetches kernel.org:{fetched[0]} (" in absent.value.hint
    assert (sources.fetches, notes) == ([], [])
    assert find(fetch=True).source == f"kernel.org:{chosen}"
    assert sources.fetches == [f"kernel.org:{name}" for name in fetched]
    # The size is said before each fetch, and a source that is here is not fetched again.
    assert len(notes) == len(fetched) and all("MB" in note and "GB" in note for note in notes)
    assert find(fetch=True).source == f"kernel.org:{chosen}"
    assert len(sources.fetches) == len(fetched)


def test_what_cannot_be_fetched_is_no_answer_about_the_series(
    kernels: Path, tmp_path: Path
) -> None:
    class Unreachable(Sources):
        def _unpack(self, source: Source, folder: Path) -> None:
            if source.kind == "git":
                return super()._unpack(source, folder)
            raise LabError("the archive is out of reach", hint="wait.")

    patches = series(kernels, tmp_path, "c1", [("kernel/freezer.c", *STAMP)])
    sources = Unreachable(tmp_path / "cache", SilentReporter())
    with pytest.raises(NoSourceError) as caught:
        find_base(patches, sources, lambda _: (), specs=["kernel.org:7.2"])
    assert "7.2: cannot be fetched: the archive is out of reach" in caught.value.message
    # A dry run does not say that no source takes it before all are there.
    (kernels / "kernel/freezer.c").write_text("another text\n")
    git(kernels, "commit", "-qam", "other")
    with pytest.raises(BuildError) as tried:
        find_base(
            patches,
            sources,
            lambda _: (),
            specs=["kernel.org:7.2", f"git:{kernels}@HEAD"],
            fetch=False,
        )
    assert tried.value.hint.endswith("leave out --dry-run, which does not fetch kernel.org:7.2.")


@pytest.mark.parametrize(("version", "named"), [("", False), ("7.2", True), ("6.1", False)])
def test_a_dry_run_says_which_source_would_come_first(
    kernels: Path, tmp_path: Path, version: str, named: bool
) -> None:
    patches = series(kernels, tmp_path, "c1", [("kernel/freezer.c", *STAMP)])
    sources = Sources(tmp_path / "cache", SilentReporter())
    base = find_base(
        patches,
        sources,
        lambda _: (),
        specs=["kernel.org:7.2", f"git:{kernels}@c1"],
        version=version,
        fetch=False,
    )
    assert base.how == "exactly"
    fetched_first = [text for text in base.warnings if "kernel.org:7.2 first" in text]
    assert bool(fetched_first) == named
